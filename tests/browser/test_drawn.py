# SPDX-License-Identifier: MIT
"""What the heat map, the minimap, the ruler and the axes show, as the page draws it.

In "stall", the heat map has a column for each second, in rows of 20 ms. "small" and "worker": see test_flamegraph.py
and test_views.py.
"""

import pytest

from selenium.webdriver.common.keys import Keys

LEFT = 46   # pixels of the axis at the left
RECORD = """
    const shapes = [];
    const kinds = CanvasRenderingContext2D.prototype;
    for (const name of ["fillText", "fillRect", "strokeRect", "rect", "moveTo", "lineTo"]) {
        const draw = kinds[name];
        kinds[name] = function (...given) {
            shapes.push([this.canvas.className, name, ...given]);
            return draw.apply(this, given);
        };
    }
    for (let i = 0; i < 2; i++)
        document.dispatchEvent(new KeyboardEvent("keydown", { key: "d" }));
    return shapes.slice(shapes.length / 2);"""


def drawn(page, canvas):
    """What is drawn on a canvas: the name of each shape and its numbers."""
    return [shape[1:] for shape in page.script(RECORD) if shape[0] == canvas]


def fragment(page):
    return page.script("return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));")


# -- Heat map --


def test_heat_map_has_axes_and_outlines_what_is_chosen(open_page):
    page = open_page("stall", "page", "heatmap", address="#map=1&from=4200000&to=4700000")
    shapes = drawn(page, "cells")
    width, row = 48, 2                      # the columns are as wide as they may be
    texts = {shape[1]: shape[2:] for shape in shapes if shape[0] == "fillText"}
    assert {"0", "250 ms", "500 ms", "750 ms", "0 s", "2", "4"} <= set(texts) and "1" not in texts
    assert texts["4"][0] == LEFT + 4 * width + 3
    assert texts["500 ms"][1] < texts["250 ms"][1] < texts["0"][1] == 50 * row
    assert ["rect", LEFT + 4 * width, 100 - 35 * row, width, 25 * row] in shapes
    cells = [shape for shape in shapes if shape[0] == "fillRect" and shape[4] == row]
    assert len(cells) > 100 and {shape[3] for shape in cells} == {width - 1}
    assert {(shape[1] - LEFT) % width for shape in cells} == {0}
    page = open_page("stall", "page", "heatmap", address="#map=1&from=3900000&to=4300000")
    corners = [tuple(shape[1:]) for shape in drawn(page, "cells") if shape[0] in ("moveTo", "lineTo")]
    x = [LEFT + column * width for column in (3, 4, 5)]
    assert corners == [(x[0], 10), (x[0], 0), (x[1], 0), (x[1], 70), (x[2], 70), (x[2], 100), (x[1], 100), (x[1], 10)]


def test_keys_in_the_heat_map_stay_in_it_and_tell_each_cell(open_page):
    page = open_page("stall", "page", "heatmap", address="#map=1")
    assert page.hover_time(0.01).startswith("0 to 0.02 s")
    page.press(Keys.ARROW_UP)
    assert page.tip().startswith("main chunk")
    page.script("document.querySelector('.cells').focus();")
    page.press(Keys.ARROW_UP)
    assert page.tip().startswith("0 to 0.02 s")
    page.press(Keys.ARROW_DOWN)
    assert page.tip().startswith("0 to 0.02 s")         # nothing before
    page.press(Keys.ARROW_RIGHT)
    assert page.tip().startswith("1 to 1.02 s")
    page.press(*[Keys.ARROW_RIGHT] * 10)
    assert page.tip().startswith("9.98 to 10 s")        # nothing behind
    page.press(Keys.ENTER)
    assert (fragment(page)["from"], fragment(page)["to"]) == ("9980000", "10000000")
    page.press("w")
    assert page.hover("main chunk").startswith("main chunk")


# -- Minimap, ruler --


def test_heat_map_marks_a_time_while_it_is_dragged_over(open_page):
    page = open_page("stall")
    inside, outside = page.heat(4.5), page.heat(8.5)
    chain = page.actions()
    page.move_to_time(chain, 4.25)
    chain.w3c_actions.pointer_action.pointer_down()
    page.move_to_time(chain, 4.65)
    chain.perform()
    assert page.heat(4.5) == inside and page.heat(8.5) != outside
    assert page.tip().startswith("4.24 to 4.66 s") and "from" not in fragment(page)
    page.actions().release().perform()
    assert fragment(page)["from"] == "4240000" and fragment(page)["to"] == "4660000"


def test_minimap_outlines_what_is_shown(open_page):
    page = open_page("small")
    page.click("main chunk")
    assert page.one(".minimap").is_displayed()
    page.press(Keys.ESCAPE)
    page.wait(lambda: page.is_zoomed_to("all"))
    start, whole = page.find("light")[0], page.find("all")[0]
    page.click("light")
    [[_, x, y, width, height]] = [shape for shape in drawn(page, "minimap") if shape[0] == "strokeRect"]
    assert x == pytest.approx(start["x"] - whole["x"], abs=1.5) and width == pytest.approx(start["width"], abs=2)
    assert (y, height) == (1, 28)
    rows = {shape[2] for shape in drawn(page, "minimap") if shape[0] == "fillRect" and shape[4] == 1.5}
    assert rows == {28, 26, 24, 22, 20}                 # the root is at the bottom
    page.press("u")
    assert 0 in {shape[2] for shape in drawn(page, "minimap") if shape[0] == "fillRect"}


def test_ruler_names_the_times_that_are_shown(open_page):
    page = open_page("worker", address="#ordered=1&from=1000000&to=2000000&list=0")
    shapes = drawn(page, "ruler")
    texts = {shape[1]: shape[2] for shape in shapes if shape[0] == "fillText"}
    assert list(texts)[:3] == ["1 s", "1.1 s", "1.2 s"]
    width = page.one(".ruler").rect["width"]
    assert texts["1.2 s"] == pytest.approx(0.2 * width + 3, abs=1)
    lines = [shape[1] for shape in shapes if shape[0] == "fillRect"]
    assert lines[:3] == [pytest.approx(part * width, abs=1) for part in (0, 0.1, 0.2)]


# -- CPU use --


def strip_texts(page):
    return page.script("""return Array.from(document.querySelectorAll(".cpu text"), (text) => [text.textContent, Number(text.getAttribute("x"))]);""")


def test_strip_of_cpu_use_has_axes(open_page):
    page = open_page("stall", address="#map=0")
    width = page.one(".cpu").rect["width"]
    texts = dict(strip_texts(page))
    assert next(text for text in texts if text.startswith("CPU 90 %")).endswith("; drag to choose a time")
    assert texts["100 %"] == texts["0"] == LEFT - 6
    assert texts["0 s"] == LEFT + 3 and texts["2 s"] == pytest.approx(LEFT + 0.2 * (width - LEFT) + 3, abs=1)
    ticks = page.script("return Array.from(document.querySelectorAll('.cpu .tick'), (tick) => Number(tick.getAttribute('x')));")
    assert ticks[0] == LEFT and len(ticks) >= 3
    page.script("document.querySelector('.cpu').focus();")
    page.press(Keys.ENTER)                  # the first step, if none has been moved to
    assert fragment(page)["to"] == "200000" and "from" not in fragment(page)
    page.resize(390, 800)
    page.wait(lambda: not any("drag to choose" in text for text, _ in strip_texts(page)))


# -- List --


def test_list_is_sorted_says_by_what_and_ends(open_page):
    page = open_page("small", address="#list=1")

    def rows():
        return [" ".join(row.text.split()) for row in page.all(".hottest tbody tr")]

    def sorted_by():
        return [head.get_attribute("aria-sort") for head in page.all("[aria-label='Hottest functions'] thead th")][:2]

    own = rows()
    assert sorted_by() == ["descending", "none"]
    assert own[:3] == ["50 % 60 % heavy test.lua:5", "15 % 15 % sqrt [libm.so.6]", "10 % 15 % string.gsub [builtin]"]
    assert "10 % 10 % lj_BC_ADDVV [vm]" == own[3]       # of as much own time, the one with more in all is first
    assert "0 20 % light test.lua:12" == own[-1]
    page.choose("total")
    assert sorted_by() == ["none", "descending"]
    assert rows()[2:5] == ["0 20 % light test.lua:12", "15 % 15 % sqrt [libm.so.6]", "10 % 15 % string.gsub [builtin]"]
    page = open_page("wide", address="#list=1")
    assert len(page.all(".hottest tbody tr")) == 100


# -- Cards, keys --


def test_card_of_the_active_frame_points_at_its_middle(open_page):
    page = open_page("small")
    page.press(Keys.ARROW_UP)
    frame, card = page.find("main chunk")[0], page.one(".card").rect
    assert card["y"] - 18 == pytest.approx(frame["y"] + 9, abs=1)
    assert card["x"] == pytest.approx(frame["x"] + 200 + 14, abs=1)
    page.press(Keys.ARROW_DOWN)
    assert page.active() == "all"
    assert page.tip().startswith("all\ntotal 100.00 %")
    page.menu("all")
    assert {"Zoom", "Copy stack"} <= {button.text for button in page.all(".card button")}
    assert "Only this function" not in page.one(".card").text
    page.press(Keys.ESCAPE)
    page.click("light")
    page.click("all")
    assert page.is_zoomed_to("all")


def test_time_order_tells_own_time_and_leads_back_to_all(open_page):
    page = open_page("worker", address="#ordered=1&from=1000000&to=1100000&list=0")
    tip = page.hover("render")
    assert "total 1.00 % of the time 40 ms 4 samples" in tip
    assert "own 1.00 % of the time 40 ms 4 samples" in tip
    assert not page.script("""return document.querySelector(".scroll").dispatchEvent(
        new KeyboardEvent("keydown", { key: "ArrowRight", shiftKey: true, bubbles: true, cancelable: true }));""")
    page.click("all")
    assert "from" not in fragment(page) and "to" not in fragment(page)
    page.press("i")
    assert fragment(page).get("inverted") == "1" and "ordered" not in fragment(page)
    page.press("?")
    assert "source files" not in page.one(".keys").text


def test_source_of_a_function_is_its_heaviest_line(open_page):
    page = open_page("small", "page", "source", address="#source=0")
    page.press("?")
    assert "v source files, with the time of their lines" in page.one(".keys").text
    page.press(Keys.ESCAPE)
    page.menu("heavy")
    next(button for button in page.all(".card button") if button.text == "Source").click()
    page.wait(lambda: page.one(".source").is_displayed())
    assert page.one(".lines .chosen").get_attribute("data-line") == "6"


def test_scrolling_draws_the_rows_that_come_into_sight(open_page):
    page = open_page("deep")
    assert not page.find("level2000 ")
    page.script("const s = document.querySelector('.scroll'); s.scrollTop = s.scrollHeight - 2001 * 18 - 300;")
    page.wait(lambda: page.find("level2000 "))
    assert page.find("level1995 ") and page.find("level2010 ") and not page.find("level0 ")


def test_card_of_folded_frames_names_each(open_page):
    tip = open_page("worker").hover("_start")
    [names] = [line.removeprefix("folded ").split(", ") for line in tip.split("\n") if line.startswith("folded ")]
    assert len(names) == 12 and names[0].startswith("_start") and names[-1].startswith("ngx_http_core_run_phases")
    assert "a click opens them" in tip
