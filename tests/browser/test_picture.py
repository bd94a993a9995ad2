# SPDX-License-Identifier: MIT
"""Where the flame graph draws each frame, what the pointer finds there, and how far the picture scrolls.

"small", "deep" and "wide": see test_flamegraph.py; "worker": see test_views.py.
"""

import collections

import pytest

from selenium.webdriver.common.keys import Keys

ROW, GAP, INDENT = 18, 1, 3     # pixels: from row to row, between frames, before a text

# At points of the picture, 3 pixels from the edges of frames: what is drawn there, and what the pointer finds.
POINT = """
    const picture = document.querySelector(".frames"), card = document.querySelector(".card");
    const area = picture.getBoundingClientRect();
    const frames = Array.from(document.querySelectorAll("[data-frame]"), (group) => {
        const { left, right, top, bottom } = group.querySelector("rect").getBoundingClientRect();
        return { name: group.getAttribute("aria-label").match(/^(.*), /s)[1], left, right, top, bottom: bottom + 1 };
    });
    const ys = new Set(frames.flatMap(({ top }) => [top + 0.5, top + 17.5]));
    const xs = new Set(frames.flatMap(({ left, right }) => [left - 3, left + 3, (left + right) / 2, right - 3, right + 4]));
    const found = [];
    for (const y of [...ys, area.top - 4, Math.min(...ys) - 5, Math.max(...ys) + 5]) {
        for (const x of xs) {
            const frame = frames.find(({ left, right, top, bottom }) => x > left && x < right && y > top && y < bottom);
            if (!frame && frames.some(({ left, right }) => Math.min(Math.abs(x - left), Math.abs(x - right)) < 2.5))
                continue;
            picture.dispatchEvent(new PointerEvent("pointermove", { clientX: x, clientY: y, bubbles: true }));
            const told = card.style.visibility === "visible" ? card.querySelector("b").textContent : null;
            const mark = document.querySelector(".hovered");
            const box = mark && mark.getBoundingClientRect();
            const marked = mark ? frames.find(({ left, top, right }) => Math.abs(left - box.left) + Math.abs(top - box.top) + Math.abs(right - box.right) < 0.1) : null;
            found.push([frame ? frame.name : null, told, frame ? marked === frame : !mark, picture.style.cursor]);
        }
    }
    return found;"""


def judge_points(page):
    found = page.script(POINT)
    assert len(found) > 30 and {drawn for drawn, _, _, _ in found} >= {None}
    for drawn, told, is_marked, cursor in found:
        assert (told, cursor) == (drawn, "pointer" if drawn else "default") and is_marked


def boxes(page, selector):
    return page.script("""
        return Array.from(document.querySelectorAll(arguments[0]), (shape) => {
            const { x, y, width, height } = shape.getBoundingClientRect();
            return { x, y, width, height };
        });""", selector)


def metadata(page, name):
    return page.script("return document.getElementById(arguments[0]).textContent;", name).strip("\n").split("\n")


def dispatch(page, *keys):
    page.script("""
        for (const key of arguments[0])
            document.querySelector(".scroll").dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));""", keys)


# -- What is under the pointer --


@pytest.mark.parametrize("name, keys", [
    ("small", ""), ("small", "u"), ("small", "i"), ("small", "s"), ("compare", "b"), ("worker", "e"),
])
def test_pointer_finds_the_frame_that_is_drawn_there(open_page, name, keys):
    page = open_page(name)
    dispatch(page, *keys)
    judge_points(page)


def test_pointer_finds_the_frames_of_a_zoomed_view(open_page):
    page = open_page("small")
    for label in ("sqrt", "light", "heavy"):
        page.click(label)
        page.wait(lambda: page.is_zoomed_to(label))
        judge_points(page)
        dispatch(page, "u")
        judge_points(page)
        dispatch(page, "r")


def test_pointer_finds_frames_in_order_of_time(open_page):
    page = open_page("worker", address="#ordered=1&from=1005000&to=1195000&list=0")
    judge_points(page)
    page = open_page("stall", address="#ordered=1&from=7990000&to=8040000&list=0")     # nothing runs up to 8 s
    judge_points(page)


# -- Where frames are --


def expected_shapes(page, width):
    """Level, left edge and width of each frame of half a pixel and more, from the data in the file, and the number of rows."""
    functions = [int(line.split(" ")[0]) for line in metadata(page, "lines")]
    root = {"weight": 0, "callees": {}}
    path = []
    for line in metadata(page, "frames"):
        depth, label, _, _, left_out, *states = (line.split(" ") + ["", "", ""])[:max(5, line.count(" ") + 1)]
        caller = path[int(depth) - 1] if int(depth) else None
        node = root if caller is None else caller["callees"].setdefault(functions[int(label)], {"weight": 0, "callees": {}})
        path[int(depth):] = [node]
        weight = sum(int(state[1:]) for state in states)
        for node in path:
            node["weight"] += weight + int(left_out or 0)
    shapes, levels = collections.Counter(), set()

    def add(node, level, left):
        drawn = node["weight"] / root["weight"] * width
        levels.add(level)
        if drawn < 0.5:
            return
        gap = GAP if drawn > (4 if drawn >= 20 else 3) else 0
        shapes[level, round(left, 1), round(drawn - gap, 1)] += 1
        for _, callee in sorted(node["callees"].items()):
            add(callee, level + 1, left)
            left += callee["weight"] / root["weight"] * width

    add(root, 0, 0)
    return shapes, len(levels)


def test_every_frame_is_where_its_weight_puts_it(open_page):
    page = open_page("nginx", height=1200)
    whole, height = page.script("const p = document.querySelector('.frames'); return [p.getBoundingClientRect().width, Number(p.getAttribute('height'))];")
    expected, rows = expected_shapes(page, whole)
    drawn = page.script("""
        return Array.from(document.querySelectorAll("[data-frame] rect:first-child"), (rect) => ["y", "x", "width", "height"].map((name) => Number(rect.getAttribute(name))))
            .concat(Array.from(document.querySelectorAll("path.f:not(.r)"), (path) => Array.from(path.getAttribute("d").matchAll(
                /M([\\d.]+),([\\d.]+)h([\\d.]+)v(\\d+)h(-[\\d.]+)z/g), ([, x, y, width, down, back]) => [Number(y), Number(x), Number(width), Number(down)])).flat());""")
    assert len(drawn) > 500 and height == rows * ROW + 2
    assert {shape[3] for shape in drawn} == {ROW - GAP}
    shapes = sorted((round((height - y) / ROW) - 1, x, width) for y, x, width, _ in drawn)
    assert {y for y, _, _, _ in drawn} == {height - (level + 1) * ROW for level, _, _ in expected}
    assert len(shapes) == expected.total()
    for (level, x, width), (other_level, other_x, other_width) in zip(shapes, sorted(expected.elements())):
        assert level == other_level and x == pytest.approx(other_x, abs=0.11) and width == pytest.approx(other_width, abs=0.11)


def test_picture_keeps_its_height_when_zoomed(open_page):
    page = open_page("small")
    rows = 5
    assert page.one(".frames").get_attribute("height") == str(rows * ROW + 2)
    assert page.find("all")[0]["y"] == boxes(page, ".frames")[0]["y"] + (rows - 1) * ROW + 2
    page.click("sqrt")
    assert page.one(".frames").get_attribute("height") == str(rows * ROW + 2)
    page.press("u")
    assert page.find("all")[0]["y"] == boxes(page, ".frames")[0]["y"]
    page = open_page("nginx", height=400)
    assert page.script("const s = document.querySelector('.scroll'); return s.scrollHeight > s.clientHeight;")
    page.search("^string.format")
    page.press(Keys.ENTER, Keys.ENTER)
    page.wait(lambda: page.script("const s = document.querySelector('.scroll'); return s.scrollHeight < s.clientHeight + 20 * 18;"))


def test_order_of_time_has_a_row_for_each_frame(open_page):
    page = open_page("worker", address="#ordered=1&from=1000000&to=1100000&list=0")
    assert page.one(".frames").get_attribute("height") == str(15 * ROW + 2)
    assert len({frame["y"] for frame in page.frames()}) == 15
    # The frames outside the shown time are not drawn.
    assert sorted(frame["label"].split()[0] for frame in page.find("lua")) == ["handler", "handler", "main", "render", "tick"]


# -- Texts, strips, marks --


def test_texts_use_the_room_of_their_frames(open_page):
    page = open_page("nginx")
    texts = page.script("""
        return Array.from(document.querySelectorAll("[data-frame] > text"), (text) => {
            const frame = text.parentNode.querySelector("rect");
            return [text.textContent, text.getComputedTextLength(), Number(frame.getAttribute("width")),
                    text.getAttribute("x") - frame.getAttribute("x"), text.getAttribute("y") - frame.getAttribute("y")];
        });""")
    wide = next(text for text in texts if text[0] == "all")
    column = wide[1] / 3
    cut = [text for text in texts if text[0].endswith("…")]
    assert len(texts) > 50 and len(cut) > 10
    assert {(left, down) for *_, left, down in texts} == {(INDENT, 12.5)}
    for _, length, width, _, _ in texts:
        assert length <= width - 2 * INDENT + 0.1
    for _, length, width, _, _ in cut:
        assert length > width - 2 * INDENT - column - 0.1
    named = page.script("""return Array.from(document.querySelectorAll("[data-frame]"), (frame) =>
        [Number(frame.querySelector("rect").getAttribute("width")), frame.querySelector("text") !== null]);""")
    assert all(has_text == ((width - 2 * INDENT) // column >= 2) for width, has_text in named)


def test_strips_of_states_are_at_the_bottom_of_their_frames(open_page):
    page = open_page("small", address="#colour=state")
    strips = page.script("""
        return Array.from(document.querySelectorAll("[data-frame]"), (group) => {
            const frame = group.querySelector("rect").getBBox(), parts = Array.from(group.querySelectorAll(".part"), (part) => part.getBBox());
            return { name: group.getAttribute("aria-label"), left: frame.x, right: frame.x + frame.width, bottom: frame.y + frame.height,
                     parts: parts.map(({ x, y, width, height }) => [x, x + width, y, height]) };
        });""")
    with_parts = [strip for strip in strips if strip["parts"]]
    assert {strip["name"].split()[0].rstrip(",") for strip in with_parts} == {"all", "main", "heavy"}
    for strip in with_parts:
        edges = [strip["left"]]
        for left, right, top, height in strip["parts"]:
            assert left == pytest.approx(edges[-1], abs=0.05) and (top, height) == (strip["bottom"] - 3, 3)
            edges.append(right)
        assert edges[-1] == pytest.approx(strip["right"], abs=0.05)


def test_ring_is_around_the_frame_that_keys_act_on(open_page):
    page = open_page("small")
    for keys in ([Keys.ARROW_UP], [Keys.ARROW_UP], [Keys.ARROW_RIGHT], ["u"], [Keys.ARROW_DOWN]):
        page.press(*keys)
        frame, [ring] = page.find(page.active())[0], boxes(page, ".ring")
        assert (ring["x"], ring["y"], ring["height"]) == (frame["x"], frame["y"], ROW - GAP)
        assert ring["width"] == pytest.approx(frame["width"] + GAP, abs=0.01)
    page = open_page("worker", address="#ordered=1&from=1000000&to=1100000&list=0")
    dispatch(page, *["ArrowUp"] * 13)
    assert page.active().startswith("main chunk") and boxes(page, ".ring")[0]["y"] == page.find("main chunk")[0]["y"]
    dispatch(page, "ArrowUp")       # the widest is outside the shown time
    assert not boxes(page, ".ring") and page.one(".scroll").get_attribute("aria-activedescendant") is None
    dispatch(page, "ArrowDown")
    assert page.active().startswith("main chunk") and boxes(page, ".ring")


# -- Narrow frames --


def test_narrow_frames_are_told_and_marked_together(open_page):
    page = open_page("wide")
    [run] = boxes(page, "[data-count] rect")
    often, chunk = page.find("often")[0], page.find("main chunk")[0]
    assert run["x"] == pytest.approx(chunk["x"], abs=0.1) and run["y"] == often["y"] and run["height"] == ROW - GAP
    assert run["width"] == pytest.approx((chunk["width"] + GAP) / 2, abs=0.1)
    text = page.one("[data-count] text")
    assert float(text.get_attribute("x")) == INDENT
    told = page.script("""
        const picture = document.querySelector(".frames");
        return [3, arguments[0] / 2, arguments[0] - 3].map((x) => {
            picture.dispatchEvent(new PointerEvent("pointermove", { clientX: arguments[1] + x, clientY: arguments[2] + 5, bubbles: true }));
            const { x: left, y: top, width } = document.querySelector(".hovered").getBoundingClientRect();
            return [document.querySelector(".card").innerText.trim(), left, top, width];
        });""", run["width"], run["x"], run["y"])
    for words, left, top, width in told:
        assert words.split("\n") == ["50,000 frames too narrow to show", "called by main chunk wide.lua; a click zooms there, a search finds each"]
        assert left == pytest.approx(run["x"], abs=0.1) and top == run["y"] and width == pytest.approx(run["width"] - GAP, abs=0.1)
    page.search("callee00012")
    assert "hit" in page.one("[data-count]").get_attribute("class")
    page.press(Keys.ENTER)
    [ring] = boxes(page, ".ring")
    assert ring["width"] == 3 and ring["y"] == run["y"]
    assert page.one("#" + page.one(".scroll").get_attribute("aria-activedescendant")).get_attribute("aria-level") == "3"


# -- Scrolling --


def test_callers_stay_in_sight_of_a_zoomed_frame(open_page):
    page = open_page("deep", address="#zoom=2001")
    assert page.is_zoomed_to("level2000 ")
    area = boxes(page, ".scroll")[0]
    lowest = page.find("level1992 ")[0]
    assert lowest["y"] + ROW == pytest.approx(area["y"] + area["height"], abs=2)
    assert page.find("level1992 ")[0]["above"] and not page.find("level2000 ")[0]["above"]
    page.press("u")
    assert page.find("level1992 ")[0]["y"] == pytest.approx(area["y"], abs=2)
    page = open_page("deep", address="#zoom=5")
    assert page.find("all")[0]["y"] + ROW == pytest.approx(area["y"] + area["height"], abs=3)


def test_picture_scrolls_with_the_frame_that_keys_act_on(open_page):
    page = open_page("deep")
    area = boxes(page, ".scroll")[0]
    offsets = []
    dispatch(page, *["ArrowUp"] * 96)
    for level in range(96, 100):
        dispatch(page, "ArrowUp")
        page.wait(lambda: page.find(f"level{level} "))
        offsets.append(page.find(f"level{level} ")[0]["y"] - area["y"])
    assert sorted(map(round, offsets)) == [0, 0, ROW, ROW]          # at the top, or one row below
    before = page.find("level99 ")[0]["y"]
    dispatch(page, *["ArrowDown"] * 5)
    page.wait(lambda: page.active().startswith("level94 "))
    assert page.find("level99 ")[0]["y"] == before                  # it was in sight
    dispatch(page, *["ArrowDown"] * 60)
    page.wait(lambda: page.find("level34 "))
    assert page.find("level34 ")[0]["y"] + 2 * ROW == pytest.approx(area["y"] + area["height"], abs=1)


def test_sandwich_of_deep_stacks_begins_in_its_middle(open_page):
    page = open_page("deep", address="#sandwich=1&focus=2600")
    area = boxes(page, ".scroll")[0]
    [middle] = [frame for frame in page.frames() if frame["share"] == 100 and frame["id"] == "frame0"]
    assert middle["y"] + ROW / 2 == pytest.approx(area["y"] + area["height"] / 2, abs=2)
    assert len([frame for frame in page.frames() if frame["y"] < middle["y"]]) > 10


def test_all_rows_in_sight_are_drawn_and_few_others(open_page):
    page = open_page("deep")
    for top in (0, 20000, 45000.5):
        page.script("document.querySelector('.scroll').scrollTop = arguments[0];", top)
        area = boxes(page, ".scroll")[0]

        def rows():
            return sorted(frame["y"] for frame in page.frames())

        page.wait(lambda: rows()[0] <= area["y"] < rows()[0] + 5 * ROW or rows()[0] >= area["y"] and top == 0)
        drawn = rows()
        assert all(lower - upper == pytest.approx(ROW, abs=0.01) for upper, lower in zip(drawn, drawn[1:]) if lower < area["y"] + area["height"] + ROW)
        assert drawn[-1] + ROW >= area["y"] + area["height"]
        assert len(drawn) < area["height"] / ROW + 10
