# SPDX-License-Identifier: MIT
"""The text in a frame is the longest that has room: the name and the end of the file, as output/flamegraph/label.js tells."""

import html

import pytest

from test_address import open_made

NAMES = [
    # name, place, and whether it starts in a file
    ("get_request_header{}", "kong/plugins/rate-limiting/handler.lua:12"),
    ("x{}", "/a_folder_with_a_long_name/b/c.lua:3"),
    ("handler{}", "/init.lua:4"),
    ("gsub{}", "[builtin]"),
    ("ngx_http_core_run_phases{}", "[nginx]"),
    ("function <kong/tools/table_of_{}/something.lua:1234>", ""),
    ("function <{}.lua:7>", ""),
    ("a_long_name_without_a_file_that_no_frame_of_this_picture_has_room_for_{}", ""),
]


def longest(texts, columns):
    """The first of them that fits; they come from the longest to the shortest."""
    return next((text for text in texts if len(text) <= columns), "")


def path_after(begin, path, columns):
    slashes = [begin + "…" + path[at:] for at in range(1, len(path)) if path[at] == "/"]
    name = path[path.rfind("/") + 1:]
    tails = [begin + "…" + name[-kept:] for kept in range(len(name), 3, -1)]
    return longest([begin + path, *slashes], columns) or longest(tails, columns)


def without_middle(text, columns):
    cuts = []
    for kept in range(len(text) - 1, 0, -1):
        tail = kept * 2 // 5 if kept >= 8 else 0
        cuts.append(text[:kept - tail] + "…" + text[len(text) - tail:])
    return longest(cuts, columns)


def shown_in(name, place, columns):
    whole = f"{name} {place}" if place else name
    if columns < 2:
        return ""
    if len(whole) <= columns:
        return whole
    if place and len(name) <= columns:
        return (path_after(name + " ", place, columns) if place[0] != "[" else "") or name
    unnamed = path_after("function <", name.removeprefix("function <"), columns) if name.startswith("function <") else ""
    return unnamed or without_middle(name, columns)


@pytest.mark.parametrize("name, place", NAMES)
def test_text_is_the_longest_that_has_room(open_made, name, place):
    """Frames of nearly every width, up to that of the whole label."""
    count = 52
    names = [name.format(chr(65 + k % 26) * 3 + chr(65 + k // 26)) for k in range(count)]
    labels = [html.escape(label + "\t" + place if place else label) for label in names]
    frames = ["0 0", *(f"1 {k + 1} 0 1 0 i{40 + 14 * k}" for k in range(count))]
    seen = set()
    for zoom in (0, 1):
        page = open_made("small", width=(2560, 9000)[zoom], functions=["a all", *("l " + label for label in labels)],
                         lines=["0 all", *(f"{k + 1} {label}" for k, label in enumerate(labels))], frames=frames)
        wide, shown = page.script("""
            const context = new OffscreenCanvas(1, 1).getContext("2d"), style = getComputedStyle(document.querySelector(".frames"));
            context.font = style.fontSize + " " + style.fontFamily;
            return [context.measureText("m".repeat(64)).width / 64, Array.from(document.querySelectorAll("[data-frame]"), (group) =>
                [group.getAttribute("aria-label").replace(/, [^,]*$/s, ""), Number(group.querySelector("rect").getAttribute("width")),
                 (group.querySelector("text") || { textContent: "" }).textContent])];""")
        whole = {f"{one} {place}" if place else one: one for one in names}
        assert len(shown) > 25
        for label, width, text in shown:
            if label != "all":
                columns = int((width - 6) / wide)
                assert (label, columns, text) == (label, columns, shown_in(whole[label], place, columns))
                seen.add(columns)
    assert len(seen) > 30
