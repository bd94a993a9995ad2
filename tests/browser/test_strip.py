# SPDX-License-Identifier: MIT
"""The CPU use over time above the frames.

The truth (tests/browser/make_flamegraph.c): in "stall", a process uses a whole core for ten seconds, in Lua
but from 4.2 to 4.7 s, in C, and sleeps from 7 to 8 s. "part" is what it does from 6.5 to 8.25 s. In "worker", pid 100 uses a core for four seconds, and pid
101 a core and a tenth.
"""

import re

import pytest

from selenium.webdriver.common.keys import Keys

from test_address import open_made
from test_drawn import fragment, strip_texts

LEFT = 46


def words(page):
    return page.one(".cpu").get_attribute("aria-label")


def point(page, seconds, whole):
    box = page.script("const b = document.querySelector('.cpu').getBoundingClientRect(); return [b.x, b.y, b.width];")
    return round(box[0] + LEFT + (box[2] - LEFT) * seconds / whole), round(box[1] + 10)


def drag(page, first, last, whole):
    chain = page.actions()
    chain.w3c_actions.pointer_action.move_to_location(*point(page, first, whole))
    chain.w3c_actions.pointer_action.pointer_down()
    chain.w3c_actions.pointer_action.move_to_location(*point(page, last, whole))
    chain.w3c_actions.pointer_action.pointer_up()
    chain.perform()


def hover(page, seconds, whole):
    chain = page.actions()
    chain.w3c_actions.pointer_action.move_to_location(*point(page, seconds, whole))
    chain.perform()
    return page.tip()


def looks(page):
    """The classes of what is drawn, from the bottom up."""
    return page.script("return Array.from(document.querySelectorAll('.cpu path'), (path) => path.getAttribute('class'));")


@pytest.mark.every_browser
def test_it_shows_states_and_how_much(open_page):
    page = open_page("stall", address="#map=0")
    assert page.one(".cpu").is_displayed()
    assert looks(page) == ["f l", "f c"]
    assert words(page).startswith("CPU 90 % of a core, GC 0.0 % of it, 100 % sampled")
    assert hover(page, 4.5, 10).split("\n") == ["4.4 to 4.6 s", "CPU use 100 % of a core", "C 100 %"]
    assert hover(page, 2.5, 10).split("\n") == ["2.4 to 2.6 s", "CPU use 100 % of a core", "interpreted 100 %"]
    assert hover(page, 7.5, 10).split("\n")[1] == "CPU use 1.0 % of a core"
    page.press("p")
    assert not page.one(".cpu").is_displayed()
    page.browser.refresh()
    assert not page.one(".cpu").is_displayed()
    page.press("p")
    assert page.one(".cpu").is_displayed()


def test_time_that_is_dragged_over_is_what_the_frames_show(open_page):
    page = open_page("stall", address="#map=0")
    drag(page, 4.65, 4.25, 10)
    assert page.script("return location.hash").endswith("from=4200000&to=4800000")
    assert page.find("os.execute")[0]["share"] == pytest.approx(100 * 50 / 60, abs=0.01)
    assert words(page).startswith("CPU 100 % of a core, GC 0.0 % of it, overall 100 % sampled")
    assert page.script("return document.querySelectorAll('.cpu .outside').length") == 2
    page.press(Keys.ESCAPE)
    assert words(page).startswith("CPU 90 % of a core")


def test_keys_choose_a_time(open_page):
    page = open_page("stall", address="#map=0")
    page.script("document.querySelector('.cpu').focus();")
    page.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ENTER)
    assert page.script("return location.hash").endswith("from=400000&to=600000")
    page.press_with_shift(Keys.ARROW_RIGHT)
    assert page.script("return location.hash").endswith("from=400000&to=800000")
    page.press_with_shift(Keys.ARROW_LEFT)
    assert page.script("return location.hash").endswith("from=400000&to=600000")


def test_first_key_with_shift_chooses_the_first_step(open_page):
    page = open_page("stall", address="#map=0")
    page.script("document.querySelector('.cpu').focus();")
    page.press_with_shift(Keys.ARROW_RIGHT)
    assert page.script("return location.hash").endswith("to=200000") and "from" not in page.script("return location.hash")


def test_time_is_marked_while_it_is_dragged_over(open_page):
    page = open_page("stall", address="#map=0")
    chain = page.actions()
    chain.w3c_actions.pointer_action.move_to_location(*point(page, 4.25, 10))
    chain.w3c_actions.pointer_action.pointer_down()
    chain.w3c_actions.pointer_action.move_to_location(*point(page, 4.65, 10))
    chain.perform()
    assert words(page).startswith("CPU 100 % of a core") and page.tip().startswith("4.2 to 4.8 s")
    assert page.script("return document.querySelectorAll('.cpu .outside').length") == 2
    assert "from" not in page.script("return location.hash")
    page.actions().release().perform()
    assert page.script("return location.hash").endswith("from=4200000&to=4800000")


def test_of_a_part_it_shows_that_time_only(open_page):
    page = open_page("part", address="#map=0")
    assert words(page).startswith("CPU 43 % of a core")             # 0.755 s of 1.75 s
    assert hover(page, 6.8 - 6.5, 1.75).split("\n")[:2] == ["6.7 to 6.9 s", "CPU use 100 % of a core"]
    assert hover(page, 8.2 - 6.5, 1.75).split("\n")[:2] == ["8.1 to 8.25 s", "CPU use 97 % of a core"]
    labels = page.script("return Array.from(document.querySelectorAll('.cpu text'), (text) => text.textContent);")
    times = [float(label[:-2]) for label in labels if label.endswith(" s")]
    assert times and 6.5 <= min(times) < 6.7 and max(times) < 8.25
    drag(page, 7.95 - 6.5, 8.2 - 6.5, 1.75)
    assert page.script("return location.hash").endswith("from=7900000&to=8250000")
    assert words(page).startswith("CPU 69 % of a core")             # 0.241 s of 0.35 s
    assert page.script("return document.querySelectorAll('.cpu .outside').length") == 2


def test_several_workers_have_a_line_each(open_page):
    page = open_page("worker")
    assert looks(page) == ["w w0", "w w1"]
    assert words(page).startswith("CPU 210 % of a core")
    assert hover(page, 2.1, 4).split("\n")[1:] == ["CPU use 210 % of a core", "nginx (pid 101) 110 %", "nginx (pid 100) 100 %"]
    page.script("""
        const chooser = document.querySelector("[data-choose=process]");
        chooser.value = "100";
        chooser.dispatchEvent(new Event("change"));""")
    assert looks(page) == ["f l", "f j"]
    assert words(page).startswith("CPU 100 % of a core, GC 0.0 % of it, overall 100 % sampled")


@pytest.mark.parametrize("right, down", [(150, 0), (0, 60)])
def test_finger_chooses_a_time_or_scrolls(open_page, right, down):
    page = open_page("stall", "page", address="#map=0", width=390, mobile=True)
    x, y = point(page, 4.1, 10)
    page.swipe(x, y, right, down)
    if right:
        assert fragment(page)["from"] == "4000000" and int(fragment(page)["to"]) > 8000000
    else:
        assert not {"from", "to"} & set(fragment(page)) and page.script("return document.querySelectorAll('.cpu .outside').length") == 0


def test_two_fingers_choose_no_time(open_page):
    page = open_page("stall", "page", address="#map=0", width=390, mobile=True)
    page.pinch(*point(page, 4.1, 10), 60)
    assert not {"from", "to"} & set(fragment(page)) and page.script("return document.querySelectorAll('.cpu .outside').length") == 0


def test_process_without_a_line_of_its_own_has_not_that_of_all(open_made):
    """From the 64th on they count as one."""
    sections = {"cpu": ["200000 20 1000 0 4000000", "100 nginx", "i 500 500", "0 others", "i 700 700"]}
    page = open_made("worker", **sections)
    assert looks(page) == ["w w0", "w w1"] and page.one(".cpu").is_displayed()
    page = open_made("worker", "#process=101", **sections)
    assert not page.one(".cpu").is_displayed() and page.find("render")
    assert page.result() == "CPU use of this process is known only in the sum of others"
    page.press("p")
    assert page.result() == ""
    page = open_made("worker", "#process=100", **sections)
    assert page.one(".cpu").is_displayed() and words(page).startswith("CPU 5.0 % of a core") and page.result() == ""


def test_without_times_of_samples_it_only_shows(open_page):
    page = open_page("many")
    assert page.one(".cpu").aria_role in ("img", "image")
    # The last step is longer than the recording.
    assert re.match("CPU (209|210) % of a core", words(page)) and "choose" not in words(page)
    drag(page, 100, 200, 600)
    assert "from=" not in page.script("return location.hash")


@pytest.mark.parametrize("width, height", [(1440, 900), (1024, 657), (390, 657), (390, 844)])
def test_frames_come_first(open_page, width, height):
    page = open_page("worker", "page", width=width, height=height, mobile=width < 500)
    strip, main = page.one(".strip").rect, page.one(".main").rect
    assert page.one(".cpu").is_displayed() and strip["height"] < 60
    assert strip["y"] + strip["height"] <= main["y"] < height / 3
    assert page.one(".scroll").rect["height"] > height / 2
    assert page.one(".cpu").rect["width"] <= width
    page.press("m")
    assert page.one(".cells").is_displayed()
    assert page.one(".strip").is_displayed() == (height >= 900)


@pytest.mark.parametrize("name, text, shapes", [
    ("stall", "CPU use over 10.0 s, up to 100 % of a core: 90 % on average, 0.0 % of it garbage collection; 100.0 % of it sampled", '<g class="f c"><path d="M'),
    ("part", "CPU use over 1.8 s, up to 100 % of a core: 43 % on average", '<g class="f l"><path d="M'),
    ("worker", "CPU use over 4.0 s, up to 150 % of a core each: 210 % on average", '<path class="w w1" d="M'),
])
def test_picture_without_scripts_has_it_too(make_flamegraph, name, text, shapes):
    source = make_flamegraph(name).read_text(encoding="utf-8").split("<metadata")[0]
    assert text in source and shapes in source
    path = re.search(r'<path[^>]* d="([^"]*)"', source)[1]
    assert re.fullmatch(r"([ML]\d+\.\d,\d+\.\d)+z?", path)
    assert "CPU use over" not in make_flamegraph("small").read_text(encoding="utf-8").split("<script")[0]


def test_time_before_a_part_is_told_in_numbers(open_page):
    assert "NaN" not in words(open_page("part", address="#map=0&from=1000000&to=2000000"))


# -- Recordings made here --


@pytest.fixture
def open_strip(open_made):
    """Opens four steps of 0.2 s, with the lines of one process, and a sample in each step and one at the very end."""
    def open_strip(*lines, address="", until=800000):
        moments = ["0 800001", "100000 1 i 10000000", *["200000 1 i 10000000"] * 3, "100000 1 i 10000000"]
        return open_made("stall", "#map=0" + address, functions=["a all", "l f\tx.lua:1"], lines=["0 all", "1 f\tx.lua:2"],
                         frames=["0 0", "1 1 0 5 0 i50000000"], threads=["7 7 w\tw\t"], moments=moments,
                         cpu=[f"200000 4 1000 0 {until}", "7 w", *lines])
    return open_strip


def test_garbage_collection_is_told_as_a_part_of_the_cpu_time(open_strip):
    page = open_strip("i 500 300 0 400", "g 500 100 0 400")
    assert words(page).startswith("CPU 55 % of a core, GC 45.5 % of it")
    for address, told in (("&from=200000&to=400000", "CPU 40 % of a core, GC 25.0 % of it"), ("&from=400000&to=600000", "CPU 0.0 % of a core, GC 0.0 % of it"),
                          ("&from=210000&to=220000", "CPU 40 % of a core, GC 25.0 % of it"), ("&from=390000&to=410000", "CPU 20 % of a core, GC 25.0 % of it"),
                          ("&from=800000&to=900000", "CPU 80 % of a core, GC 50.0 % of it")):
        assert words(open_strip("i 500 300 0 400", "g 500 100 0 400", address=address)).startswith(told)


def test_a_step_tells_what_was_used_the_most_first(open_strip):
    page = open_strip("j 100 0 0 1", "i 500 300 0 400", "c 0.4 100 0 0", "g 300 500")
    assert hover(page, 0.1, 0.8).split("\n") == ["0 to 0.2 s", "CPU use 90 % of a core", "interpreted 50 %", "garbage collection 30 %", "compiled 10 %"]
    assert hover(page, 0.3, 0.8).split("\n") == ["0.2 to 0.4 s", "CPU use 90 % of a core", "garbage collection 50 %", "interpreted 30 %", "C 10 %"]
    assert hover(page, 0.5, 0.8).split("\n") == ["0.4 to 0.6 s", "CPU use 0.0 % of a core"]
    assert hover(page, 0.7, 0.8).split("\n")[2:] == ["interpreted 40 %", "compiled 0.1 %"]


@pytest.mark.parametrize("most, top", [(3, "1.0 %"), (50, "5.0 %"), (149, "15 %"), (310, "50 %"), (1015, "100 %"), (1030, "150 %"), (1600, "200 %"), (2100, "300 %"),
                                       (6000, "750 %"), (9000, "1000 %")])
def test_top_of_the_strip_is_the_next_round_number(open_strip, most, top):
    """A fiftieth above it is still at the top."""
    assert (top, LEFT - 6) in [tuple(text) for text in strip_texts(open_strip(f"i 1 {most}"))]


def test_last_step_has_the_samples_at_its_end(open_strip):
    page = open_strip("i 500 500 500 500")
    drag(page, 0.7, 0.78, 0.8)
    assert (fragment(page)["from"], fragment(page)["to"]) == ("600000", "800001") and "2 samples" in page.hover("all")
    page = open_strip("i 500 500 500 500")
    drag(page, 0.5, 0.55, 0.8)
    assert (fragment(page)["from"], fragment(page)["to"]) == ("400000", "600000") and "1 sample" in page.hover("all")


def test_keys_with_shift_move_the_end_that_the_cursor_is_at(open_page):
    page = open_page("stall", address="#map=0")
    page.script("document.querySelector('.cpu').focus();")
    page.press(*[Keys.ARROW_RIGHT] * 4)
    for key, chosen in ((Keys.ARROW_LEFT, (2, 4)), (Keys.ARROW_LEFT, (1, 4)), (Keys.ARROW_RIGHT, (2, 4)), (Keys.ARROW_RIGHT, (3, 4)),
                        (Keys.ARROW_RIGHT, (3, 5)), (Keys.ARROW_RIGHT, (3, 6)), (Keys.ARROW_LEFT, (3, 5)), (Keys.ARROW_LEFT, (3, 4)), (Keys.ARROW_LEFT, (2, 4))):
        page.press_with_shift(key)
        assert (int(fragment(page)["from"]), int(fragment(page)["to"])) == (chosen[0] * 200000, chosen[1] * 200000)
