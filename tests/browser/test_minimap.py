# SPDX-License-Identifier: MIT
"""The minimap and the ruler above the frames, and moving in time by mouse and wheel.

"small": see test_flamegraph.py; "worker", which lasts 4 s: see test_views.py.
"""

import pytest

from test_address import visit
from test_drawn import drawn, fragment
from test_picture import boxes, dispatch

WHOLE_US = 4000001


def shown_time(page):
    """What the address says is shown, in µs."""
    parts = fragment(page)
    return int(parts.get("from", 0)), int(parts.get("to", 0))


def point(page, selector, kind, x, y=9, **more):
    """Send an event of the pointer or wheel to a place of an element; returns whether the page leaves it to the browser."""
    return page.script("""
        const [selector, kind, x, y, more] = arguments;
        const made = document.querySelector(selector), box = made.getBoundingClientRect();
        made.setPointerCapture = () => {};
        return made.dispatchEvent(new (kind === "wheel" ? WheelEvent : PointerEvent)(kind,
            { clientX: box.x + x, clientY: box.y + y, pointerId: 1, isPrimary: true, bubbles: true, cancelable: true, ...more }));""",
        selector, kind, x, y, more)


def drag(page, first, last):
    point(page, ".minimap", "pointerdown", first)
    point(page, ".minimap", "pointerup", last)


def width_of(page, selector=".minimap"):
    return boxes(page, selector)[0]["width"]


def open_time(open_page, first, last):
    return open_page("worker", address=f"#ordered=1&list=0&from={first}&to={last}")


def test_minimap_has_each_frame_in_little(open_page):
    page = open_page("small", address="#zoom=2")
    whole = width_of(page, ".frames")
    # Left edge and width of each frame; [lost] is at the left.
    rows = [[0, 1], [0, 0.05, 0.05, 0.95], [0.05, 0.6, 0.65, 0.2, 0.85, 0.1], [0.05, 0.2, 0.25, 0.1, 0.65, 0.15, 0.8, 0.05], [0.8, 0.05]]
    shapes = [shape[1:] for shape in drawn(page, "minimap") if shape[0] == "fillRect"]
    assert shapes[0] == [0, 0, pytest.approx(whole, abs=1), 30]         # the background
    expected = sorted((30 - 2 * (level + 1), row[k] * whole, row[k + 1] * whole - 0.3)
                      for level, row in enumerate(rows) for k in range(0, len(row), 2))
    assert len(shapes) - 1 == len(expected)
    for (x, y, width, height), (row, left, extent) in zip(sorted(shapes[1:], key=lambda shape: (shape[1], shape[0])), expected):
        assert (y, height) == (row, 1.5) and x == pytest.approx(left, abs=0.1) and width == pytest.approx(extent, abs=0.1)
    page.press("u")
    tops = {shape[2] for shape in drawn(page, "minimap") if shape[0] == "fillRect" and shape[4] == 1.5}
    assert tops == {0, 2, 4, 6, 8}
    assert page.script("const { width, height } = document.querySelector('.minimap'); return [width, height];") == [round(whole), 30]


@pytest.mark.parametrize("flipped", [0, 1])
def test_click_on_the_minimap_zooms_to_the_frame_there(open_page, flipped):
    """Above the frames of a stack, to its outermost one."""
    page = open_page("small", address=f"#zoom=1&flipped={flipped}")
    whole = width_of(page)
    for level, share, wanted in ((1, 0.5, "main chunk"), (2, 0.66, "light"), (2, 0.64, "heavy"), (3, 0.81, "string.gsub"), (4, 0.84, "malloc"),
                                 (3, 0.79, "sqrt"), (2, 0.86, "lj_BC"), (4, 0.1, "heavy"), (12, 0.94, "lj_BC"), (1, 0.04, "[lost")):
        y = 2 * level + 1
        point(page, ".minimap", "pointerdown", share * whole, y if flipped else 30 - y)
        point(page, ".minimap", "pointerup", share * whole, y if flipped else 30 - y)
        page.wait(lambda: page.is_zoomed_to(wanted))
        if (level, wanted) == (4, "heavy"):
            assert [frame["above"] for frame in page.find("heavy")] == [True, False]
    point(page, ".minimap", "pointerdown", 0.98 * whole, 1 if flipped else 29)
    point(page, ".minimap", "pointerup", 0.98 * whole, 1 if flipped else 29)
    page.wait(lambda: page.is_zoomed_to("all"))
    assert not page.one(".minimap").is_displayed()


@pytest.mark.every_browser
def test_drag_on_the_minimap_chooses_a_time_in_any_direction(open_page):
    page = open_page("worker", address="#ordered=1&list=0")
    whole = width_of(page)
    for first, last in ((0.25, 0.5), (0.75, 0.5), (0, 0.01)):
        drag(page, first * whole, last * whole)
        begin, end = shown_time(page)
        assert begin == pytest.approx(min(first, last) * WHOLE_US, abs=0.002 * WHOLE_US)
        assert end == pytest.approx(max(first, last) * WHOLE_US, abs=0.002 * WHOLE_US)
    point(page, ".minimap", "pointerdown", 100)
    point(page, ".minimap", "pointercancel", 100)
    point(page, ".minimap", "pointerup", 900)
    assert shown_time(page) == (begin, end)


def test_two_fingers_choose_no_time(open_page):
    page = open_time(open_page, 1000000, 2000000)
    drag(page, 0.5 * width_of(page), 0.75 * width_of(page))
    before = shown_time(page)
    point(page, ".minimap", "pointerdown", 100)
    point(page, ".minimap", "pointerdown", 300, isPrimary=False, pointerId=2)
    point(page, ".minimap", "pointerup", 400, isPrimary=False, pointerId=2)
    point(page, ".minimap", "pointerup", 50)
    assert shown_time(page) == before == (pytest.approx(2000000, rel=0.01), pytest.approx(3000000, rel=0.01))


def test_click_on_the_minimap_moves_the_shown_time_there(open_page):
    page = open_time(open_page, 1000000, 1400000)
    whole = width_of(page)
    for first, last, middle in ((0.75, 0.75, 3), (0.5, 0.5 + 1 / whole, 2), (0.1, 0.1, 0.4)):
        drag(page, first * whole, last * whole)
        begin, end = shown_time(page)
        assert end - begin == 400000 and (begin + end) / 2 == pytest.approx(middle * 1e6, abs=0.005 * WHOLE_US)
    drag(page, 1, 1)
    assert shown_time(page) == (0, 400000)      # not before the beginning
    drag(page, whole - 2, whole - 2)
    begin, end = shown_time(page)
    assert end - begin == 400000 and end == pytest.approx(WHOLE_US, abs=10001)


def test_keys_move_and_zoom_the_shown_time_within_the_recording(open_page):
    page = open_time(open_page, 1000000, 1400000)

    def press(key, shift=False):
        page.script("""document.querySelector(".scroll").dispatchEvent(new KeyboardEvent("keydown",
            { key: arguments[0], shiftKey: arguments[1], bubbles: true, cancelable: true }));""", key, shift)
        return shown_time(page)

    assert press("ArrowRight", True) == (1100000, 1500000)
    assert press("ArrowLeft", True) == (1000000, 1400000)
    assert press("+") == (1100000, 1300000)
    assert press("-") == (1000000, 1400000)
    assert press("-") == (800000, 1600000)
    for _ in range(20):
        first, last = press("+")
    assert last - first == 100                  # µs
    assert first == pytest.approx(1200000 - 50, abs=200)
    for _ in range(20):
        press("-")
    assert shown_time(page) == (0, 0)           # all
    page = open_time(open_page, 0, 400000)
    assert press("ArrowLeft", True) == (0, 400000)


def test_shown_time_of_a_part_stays_in_it(open_page):
    """It is from 6.5 to 8.25 s of its recording."""
    page = open_page("part", address="#ordered=1&from=6600000&to=7000000")

    def press(key, shift=False):
        page.script("""document.querySelector(".scroll").dispatchEvent(new KeyboardEvent("keydown",
            { key: arguments[0], shiftKey: arguments[1], bubbles: true, cancelable: true }));""", key, shift)
        return shown_time(page)

    assert [press("ArrowLeft", True) for _ in range(3)][1:] == [(6500000, 6900000)] * 2
    assert [press("ArrowRight", True) for _ in range(20)][18:] == [(7850000, 8250000)] * 2
    assert [press("-") for _ in range(3)] == [(7450000, 8250000), (6650000, 8250000), (0, 0)]     # 0, 0: all


@pytest.mark.every_browser
def test_wheel_with_control_zooms_around_the_pointer(open_page):
    page = open_time(open_page, 1000000, 2000000)
    whole = width_of(page, ".frames")
    left = boxes(page, ".frames")[0]["x"] - boxes(page, ".scroll")[0]["x"]
    assert not point(page, ".scroll", "wheel", left + whole / 4, 100, deltaY=-346.5736, ctrlKey=True)
    assert shown_time(page) == (pytest.approx(1125000, abs=500), pytest.approx(1625000, abs=500))     # 1.002 ** -346.57 = 1 / 2
    assert not point(page, ".scroll", "wheel", left + whole / 4, 100, deltaY=346.5736, ctrlKey=True)
    assert shown_time(page) == (pytest.approx(1000000, abs=500), pytest.approx(2000000, abs=500))


def test_wheel_sideways_moves_and_downwards_scrolls(open_page):
    page = open_time(open_page, 1000000, 2000000)
    whole = width_of(page, ".frames")
    assert not point(page, ".scroll", "wheel", 300, 100, deltaX=whole / 10)
    assert shown_time(page) == (pytest.approx(1100000, abs=2), pytest.approx(2100000, abs=2))
    assert not point(page, ".scroll", "wheel", 300, 100, deltaY=-whole / 10, shiftKey=True)
    assert shown_time(page) == (pytest.approx(1000000, abs=2), pytest.approx(2000000, abs=2))
    before = shown_time(page)
    assert point(page, ".scroll", "wheel", 300, 100, deltaX=50, deltaY=50)
    assert point(page, ".scroll", "wheel", 300, 100, deltaY=100)
    assert shown_time(page) == before
    dispatch(page, "o")
    assert point(page, ".scroll", "wheel", 300, 100, deltaY=-300, ctrlKey=True)
    assert shown_time(page) == before


def test_ruler_has_round_times_with_room_between_them(open_page):
    page = open_page("worker", address="#ordered=1&list=0")
    whole = width_of(page, ".ruler")
    for extent_us, step_us in ((300, 20), (4000, 500), (10000, 1000), (200000, 20000), (300000, 20000), (2000000, 200000)):
        visit(page, [f"#ordered=1&list=0&from=1000000&to={1000000 + extent_us}"])
        shapes = drawn(page, "ruler")
        lines = [shape[1] for shape in shapes if shape[0] == "fillRect"]
        texts = [shape[1:3] for shape in shapes if shape[0] == "fillText"]
        distance = step_us / extent_us * whole
        assert 80 <= distance < 200
        assert {tuple(shape[2:]) for shape in shapes if shape[0] == "fillRect"} == {(0, 1, 16)}
        assert lines == [pytest.approx(k * distance, abs=0.5) for k in range(-(-extent_us // step_us))]
        assert [x for _, x in texts] == [pytest.approx(line + 3) for line in lines if line + 40 < whole]
        assert texts[0][0] == "1 s" and {shape[3] for shape in shapes if shape[0] == "fillText"} == {11}


def test_ruler_and_minimap_are_there_when_there_is_something_to_tell(open_page):
    def shown(page):
        return [page.one(selector).is_displayed() for selector in (".minimap", ".ruler")]

    page = open_page("worker", address="#list=0&open=1")
    assert shown(page) == [False, False]
    dispatch(page, "o")
    assert shown(page) == [True, True]
    dispatch(page, "o")
    assert shown(page) == [False, False]
    page.click("main chunk")
    assert shown(page) == [True, False]
    assert shown(open_page("empty", address="#ordered=1")) == [False, False]
