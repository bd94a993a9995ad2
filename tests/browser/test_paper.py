# SPDX-License-Identifier: MIT
"""What is on paper when the page is printed: what the window shows, whole, in light colours.

"small": see test_flamegraph.py; "stall" has a heat map and the CPU use over time.
"""

import pytest

from test_drawn import fragment

# Note where things are while the page is laid out for a sheet.
LOOK = """
    const box = (one) => { const { left, top, right, bottom } = one.getBoundingClientRect(); return [left, top, right, bottom]; };
    const sheet = document.getElementById("ljspy");
    window.onPaper = [];
    matchMedia("print").addEventListener("change", (event) => event.matches && onPaper.push({
        sheet: box(sheet),
        frames: Object.fromEntries(Array.from(document.querySelectorAll("[data-frame]"), (frame) => [frame.getAttribute("aria-label"), box(frame.querySelector("rect"))])),
        others: Object.fromEntries(Array.from(document.querySelectorAll(arguments[0]), (one) => [one.className.baseVal || one.className, box(one)])),
        lines: Array.from(document.querySelectorAll(".lines [data-line]"), box),
        ink: getComputedStyle(document.querySelector(".about h1")).color, isDark: sheet.classList.contains("dark"),
    }));"""


def printed(page, *others, landscape=False):
    page.script(LOOK, ", ".join((".about", ".legend", *others)))
    page.browser.execute_cdp_cmd("Page.printToPDF", {"landscape": landscape})
    return page.script("return onPaper.at(-1);")


def is_on(sheet, box):
    return box[0] >= sheet[0] and box[1] >= sheet[1] and box[2] <= sheet[2] and box[3] <= sheet[3] and box[2] > box[0] and box[3] > box[1]


@pytest.mark.parametrize("name, address, width, height, landscape, others", [
    ("small", "", 1400, 800, False, []), ("small", "#list=1", 1400, 800, True, ["[aria-label='Hottest functions']"]), ("small", "#flipped=1", 800, 700, False, []), ("small", "", 390, 800, True, []),
    ("stall", "#map=1", 1280, 950, False, [".cells", ".cpu"]), ("worker", "#ordered=1", 2560, 1200, True, [".minimap", ".ruler", ".cpu"])])
def test_picture_is_whole_on_paper(open_page, name, address, width, height, landscape, others):
    page = open_page(name, "page", width=width, height=height, address=address, mobile=width < 500)
    in_window = {frame["label"] for frame in page.frames()}
    paper = printed(page, *others, landscape=landscape)
    assert {label.rpartition(",")[0] for label in paper["frames"]} >= in_window and len(paper["others"]) == 2 + len(others)
    for box in [*paper["frames"].values(), *paper["others"].values()]:
        assert is_on(paper["sheet"], box)
    whole = next(box for label, box in paper["frames"].items() if label.startswith("all,"))
    for label, box in paper["frames"].items():
        if name == "small":
            share = float(label.rpartition(", ")[2].split("\u00a0")[0])
            assert 100 * (box[2] - box[0]) / (whole[2] - whole[0]) == pytest.approx(share, abs=0.5)


def test_rows_out_of_sight_are_on_paper_up_to_a_sheet(open_page):
    page = open_page("deep", "page", width=1000, height=400)
    assert 10 < len(page.frames()) < 40
    paper = printed(page)
    rows = sorted(box[3] for box in paper["frames"].values() if is_on(paper["sheet"], box))
    assert 60 < len(rows) < 90 and "all, 100.00\u00a0%" in paper["frames"]
    assert is_on(paper["sheet"], paper["frames"]["all, 100.00\u00a0%"])
    page = open_page("small", "page", "source", width=1000, height=300)
    paper = printed(page)
    assert len(paper["lines"]) == 5 and all(is_on(paper["sheet"], box) for box in paper["lines"])


def test_paper_has_dark_ink_and_the_window_is_as_before(open_page):
    page = open_page("stall", "page", scheme="dark", address="#map=1&from=1000000&to=2000000")
    frames, heat, address = page.frames(), page.heat(1.5), fragment(page)
    paper = printed(page)
    assert not paper["isDark"] and paper["ink"] == "rgb(29, 31, 36)"
    assert (page.frames(), page.heat(1.5), fragment(page)) == (frames, heat, address)
    assert page.script("return document.getElementById('ljspy').classList.contains('dark') && !document.getElementById('ljspy').hasAttribute('viewBox');")
    page.press("d")
    printed(page)
    assert not page.script("return document.getElementById('ljspy').classList.contains('dark');")
