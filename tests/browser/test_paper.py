# SPDX-License-Identifier: MIT
"""What is on paper when the page is printed: what the window shows, whole, in light colours.

"small": see test_flamegraph.py; "stall" has a heat map and the CPU use over time.
"""

import re

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
        scrolled: Array.from(document.querySelectorAll("#ljspy *")).filter((one) => one.scrollTop > 0).length,
        overlaid: Array.from(document.querySelectorAll(".keys, .card"), (one) => getComputedStyle(one).display),
        ink: getComputedStyle(document.querySelector(".about h1")).color, isDark: sheet.classList.contains("dark"),
    }));"""

SHEETS = {"A4": (8.27, 11.69), "Letter": (8.5, 11)}  # in inches


def printed(page, *others, landscape=False, sheet="Letter"):
    page.script(LOOK, ", ".join((".about", ".legend", *others)))
    page.browser.print_sheet(*SHEETS[sheet], landscape)
    return page.script("return onPaper.at(-1);")


def width(box):
    return box[2] - box[0]


def is_on(sheet, box):
    return box[0] >= sheet[0] and box[1] >= sheet[1] and box[2] <= sheet[2] and box[3] <= sheet[3] and box[2] > box[0] and box[3] > box[1]


@pytest.mark.parametrize("name, address, wide, high, landscape, others", [
    ("small page", "", 1400, 800, False, []), ("small page", "#list=1", 1400, 800, True, ["[aria-label='Hottest functions']"]), ("small page", "#flipped=1", 800, 700, False, []),
    ("small page", "", 390, 800, True, []), ("small", "", 1280, 800, False, []),
    ("stall page", "#map=1", 1280, 950, False, [".cells", ".cpu"]), ("worker page", "#ordered=1", 2560, 1200, True, [".minimap", ".ruler", ".cpu"])])
def test_picture_is_whole_on_paper(open_page, name, address, wide, high, landscape, others):
    page = open_page(*name.split(), width=wide, height=high, address=address, mobile=wide < 500)
    in_window = {frame["label"] for frame in page.frames()}
    paper = printed(page, *others, landscape=landscape)
    assert {label.rpartition(",")[0] for label in paper["frames"]} >= in_window and len(paper["others"]) == 2 + len(others)
    for box in [*paper["frames"].values(), *paper["others"].values()]:
        assert is_on(paper["sheet"], box)
    # What is lower than the sheet is as wide as it; what is higher is as high.
    assert width(paper["others"]["about"]) > 0.95 * width(paper["sheet"]) or wide < high
    whole = next(box for label, box in paper["frames"].items() if label.startswith("all,"))
    for label, box in paper["frames"].items():
        if name.startswith("small"):
            share = float(label.rpartition(", ")[2].split("\u00a0")[0])
            assert 100 * width(box) / width(whole) == pytest.approx(share, abs=0.5)


@pytest.mark.parametrize("sheet, landscape, least, most", [("A4", False, 70, 90), ("Letter", False, 60, 80), ("A4", True, 25, 40), ("Letter", True, 30, 45)])
def test_rows_out_of_sight_are_on_paper_where_the_sheet_has_room_below(open_page, sheet, landscape, least, most):
    page = open_page("deep", "page", width=1000, height=400)
    in_window = len(page.frames())
    paper = printed(page, landscape=landscape, sheet=sheet)
    rows = [box for box in paper["frames"].values() if is_on(paper["sheet"], box)]
    assert 10 < in_window < least < len(rows) < most
    assert is_on(paper["sheet"], paper["frames"]["all, 100.00\u00a0%"])
    assert width(paper["others"]["about"]) > 0.95 * width(paper["sheet"])


@pytest.mark.every_browser
@pytest.mark.parametrize("name", ["deep page", "small page source"])
def test_what_is_on_paper_needs_no_scrolling(open_page, name):
    """A copy of the page, which Firefox prints, is not scrolled."""
    page = open_page(*name.split(), width=1000, height=250)
    assert page.script("return Array.from(document.querySelectorAll('#ljspy *')).some((one) => one.scrollTop > 0);")
    paper = printed(page)
    assert paper["scrolled"] == 0
    shown = paper["lines"] if "source" in name else [paper["frames"]["all, 100.00\u00a0%"]]
    assert shown and all(is_on(paper["sheet"], box) for box in shown)


def test_lines_out_of_sight_are_on_paper(open_page):
    page = open_page("small", "page", "source", width=1000, height=300)
    paper = printed(page)
    assert len(paper["lines"]) == 5 and all(is_on(paper["sheet"], box) for box in paper["lines"])


@pytest.mark.parametrize("name, scrolled", [("small page source", ".lines"), ("deep page", ".scroll")])
def test_window_is_scrolled_as_before(open_page, name, scrolled):
    page = open_page(*name.split(), width=1000, height=300)
    top = page.script("const one = document.querySelector(arguments[0]); one.scrollTop = 40; return one.scrollTop;", scrolled)
    assert top == 40
    printed(page)
    assert page.script("return document.querySelector(arguments[0]).scrollTop;", scrolled) == top


def test_help_and_menus_are_not_on_paper(open_page):
    page = open_page("small", "page")
    page.press("?")
    page.menu("heavy")
    assert page.one(".keys").is_displayed() and page.tip()
    assert printed(page)["overlaid"] == ["none", "none"]
    assert page.one(".keys").is_displayed()


def test_every_browser_is_told_to_print_colours(make_flamegraph):
    assert re.search(r"[ ;]print-color-adjust: exact;", make_flamegraph("small").read_text(encoding="utf-8"))


@pytest.mark.every_browser
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


def test_theme_of_the_window_outlasts_what_happens_on_paper(open_page):
    page = open_page("small", "page", scheme="dark")
    is_dark = "return document.getElementById('ljspy').classList.contains('dark');"
    prints = "dispatchEvent(new Event(arguments[0]));" + is_dark
    assert not page.script(prints, "beforeprint") and not page.script(prints, "beforeprint")
    for scheme in ("light", "dark"):
        page.browser.prefer(scheme)
        assert page.script("return matchMedia('(prefers-color-scheme: dark)').matches") == (scheme == "dark")
        assert not page.script(is_dark)
    assert page.script(prints, "afterprint")
