# SPDX-License-Identifier: MIT
"""The heat map of recordings that are made here: its units, colours, marks and what the pointer and keys choose."""

import pytest

from selenium.webdriver.common.keys import Keys

from test_address import open_made
from test_drawn import LEFT, drawn, fragment


@pytest.fixture
def open_heat(open_made):
    """Opens the samples of these times, in µs, and weights."""
    def open_heat(samples, until, since=0, address="", width=1280, **more):
        moments, before = [f"{since} {until}"], 0
        for time, weight in samples:
            moments.append(f"{time - before} 1 i {weight}")
            before = time
        whole = sum(weight for _, weight in samples)
        return open_made("worker", "#map=1&cpu=0" + address, width=width, functions=["a all", "l f\tx.lua:1"], lines=["0 all", "1 f\tx.lua:2"],
                         frames=["0 0", f"1 1 0 {len(samples)} 0 i{whole}"], threads=["7 7 w\tw\t"], moments=moments, **more)
    return open_heat


def unit(page):
    return int(page.one(".cells").get_attribute("data-unit"))


@pytest.mark.parametrize("until, wanted", [(3999999, 100000), (4000000, 100000), (4000001, 1000000), (9000000, 1000000), (600000000, 1000000), (603000000, 10000000),
                                           (6500000000, 60000000), (400000000000, 3600000000)])
def test_columns_are_of_the_shortest_time_that_has_room(open_heat, until, wanted):
    """And of tenths of a second only if there are fewer than five seconds."""
    assert unit(open_heat([(1000, 5), (until - 1, 5)], until)) == wanted


def test_few_heavy_cells_do_not_pale_the_others(open_heat):
    page = open_heat([(20000 * k + 10000, 100 if k != 300 else 100000) for k in range(499)], 10000000)
    heaviest = page.heat(300 * 0.02 + 0.01)
    assert page.heat(1.01) == page.heat(9.01) == heaviest and "up to 100 ns in each 20 ms" in page.one(".scale").text
    page = open_heat([(20000 * k + 10000, 100 if k < 400 else 1000) for k in range(499)], 10000000)
    assert page.heat(1.01) != page.heat(9.01)


def test_axis_of_hours_has_minutes_of_two_digits(open_heat):
    page = open_heat([(1000, 5), (7499999999, 5)], 7500000000)
    assert unit(page) == 60000000
    texts = [shape[1] for shape in drawn(page, "cells") if shape[0] == "fillText"]
    hours = [text for text in texts if text.count(":") == 2]
    assert hours and hours[0] == "1:00:00" and all(60 <= int(text.split(":")[0]) * 60 + int(text.split(":")[1]) < 125 and len(text) == 7 for text in hours)
    assert all(len(text.split(":")[1]) == 2 and int(text.split(":")[0]) < 60 for text in texts if text.count(":") == 1)


def test_axis_names_parts_of_the_unit_where_they_are(open_heat):
    page = open_heat([(1000, 5), (8999999, 5)], 9000000)
    rows = {shape[1]: shape[3] for shape in drawn(page, "cells") if shape[0] == "fillText" and shape[2] == LEFT - 6}
    assert rows == {"0": 100, "250 ms": 79, "500 ms": 54, "750 ms": 29}


def test_chosen_time_ends_with_its_last_cell(open_heat):
    samples = [(20000 * k + 10000, 100) for k in range(499)]
    page = open_heat(samples, 10000000)
    shown = page.heat(3.01)
    page = open_heat(samples, 10000000, address="&from=3000000&to=4000000")
    assert page.heat(3.01) == page.heat(3.97) == shown
    assert page.heat(2.97) == page.heat(4.01) != shown


def test_cell_without_samples_says_so(open_heat):
    page = open_heat([(1000, 5), (8999999, 5)], 9000000)
    assert page.hover_time(5.01).replace("\u00a0", " ").endswith("0.00 % of all 0 ns 0 samples")
    assert page.hover_time(0.001).replace("\u00a0", " ").endswith("50.00 % of all 5 ns 1 sample")


def test_only_the_main_button_chooses_a_time(open_heat):
    page = open_heat([(1000, 5), (8999999, 5)], 9000000)
    chain = page.actions()
    page.move_to_time(chain, 2.01)
    chain.context_click().perform()
    assert "from" not in fragment(page)
    page.drag_time(2.01, 2.01)
    assert fragment(page)["from"] == "2000000"


def test_cursor_is_not_moved_to_another_time_by_the_width_of_the_window(open_heat):
    page = open_heat([(1000, 5), (299999999, 5)], 300000000)
    page.script("document.querySelector('.cells').focus();")
    page.press(*[Keys.ARROW_RIGHT] * 4)
    assert page.tip().startswith("3 to 3.02 s")
    page.resize(390, 800)
    page.wait(lambda: unit(page) == 10000000)
    page.press(Keys.ENTER)
    assert "from" not in fragment(page) and fragment(page)["to"] == "200000"


def test_keys_with_shift_move_one_end_of_the_time(open_heat):
    page = open_heat([(1000, 5), (8999999, 5)], 9000000)
    page.script("document.querySelector('.cells').focus();")
    page.press(*[Keys.ARROW_RIGHT] * 4)
    for key, first, last in ((Keys.ARROW_RIGHT, 3000000, 4020000), (Keys.ARROW_RIGHT, 3000000, 5020000), (Keys.ARROW_UP, 3000000, 5040000), (Keys.ARROW_LEFT, 3000000, 4040000),
                             (Keys.ARROW_LEFT, 3000000, 3040000), (Keys.ARROW_LEFT, 2020000, 3020000), (Keys.ARROW_LEFT, 1020000, 3020000)):
        page.press_with_shift(key)
        assert (int(fragment(page)["from"]), int(fragment(page)["to"])) == (first, last)


@pytest.mark.parametrize("columns, down", [(3, 0), (0, 40), (0, -30)])
def test_finger_chooses_a_time(open_heat, columns, down):
    page = open_heat([(1000, 5), (7999999, 5)], 8000000, width=390, mobile=True, options=("page",))
    box, width = page.one(".cells").rect, int(page.one(".cells").get_attribute("data-width"))
    page.swipe(box["x"] + LEFT + 1.5 * width, box["y"] + 50, columns * width, down)
    first, last = (int(fragment(page)[key]) for key in ("from", "to"))
    assert 1000000 < first < last < 5000000 and (last - first == 3020000 if columns else 200000 < last - first < 500000)


@pytest.mark.every_browser
def test_two_fingers_choose_no_time(open_heat):
    page = open_heat([(1000, 5), (7999999, 5)], 8000000, width=390, mobile=True, options=("page",))
    box, before = page.one(".cells").rect, page.heat(7.9)
    page.pinch(box["x"] + LEFT + 100, box["y"] + 50, 60)
    assert not {"from", "to"} & set(fragment(page)) and page.heat(7.9) == before


def test_finger_scrolls_a_map_that_is_wider_than_the_window(open_heat):
    """That chooses nothing."""
    page = open_heat([(1000, 5), (1999999999999, 5)], 2000000000000, width=390, mobile=True, options=("page",))
    box = page.one(".cells").rect
    assert box["width"] > 1000
    page.swipe(box["x"] + 250, box["y"] + 50, -120, 0)
    page.wait(lambda: page.script("return document.querySelector('.heat').scrollLeft;") > 0)
    assert not {"from", "to"} & set(fragment(page))
