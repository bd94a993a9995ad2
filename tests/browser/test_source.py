# SPDX-License-Identifier: MIT
"""The source view: files, their lines with time, callers and callees, and the way to the flame graph and back.

The truth of "small" (tests/browser/make_flamegraph.c), in samples of 100 in all: line 1 of test.lua has 95,
5 of which end at it while a trace is recorded, and 10 in a handler of the VM; line 6, in heavy, has 30 with
string.gsub or itself on it; line 8 has 20 and line 9 has 10, both in heavy; line 13, in light, has 20, all in C.
"""

import pytest

from test_address import make
from test_drawn import fragment


def rows(page):
    """For each line with time: its shares, own and total, as they are shown."""
    return page.script("""
        return Object.fromEntries(Array.from(document.querySelectorAll(".lines [data-line]"), (row) =>
            [row.dataset.line, Array.from(row.querySelectorAll(".share"), (cell) => cell.textContent)]));""")


def codes(page):
    return page.script("return Array.from(document.querySelectorAll('.lines .code'), (cell) => cell.textContent);")


def choose_line(page, line):
    page.one(f".lines [data-line='{line}'] button").click()


def detail(page):
    return page.one(".lines .detail").text


@pytest.mark.every_browser
def test_lines_have_own_and_total_time_with_what_is_no_lua(open_page):
    page = open_page("small", "page", "source")
    assert rows(page) == {"1": ["15 %", "95 %"], "6": ["30 %", "30 %"], "8": ["20 %", "20 %"], "9": ["10 %", "10 %"],
                          "13": ["20 %", "20 %"]}
    assert not page.one(".graph").is_displayed()


def test_every_line_of_the_file_is_there_as_text(open_page):
    page = open_page("small", "page", "source")
    code = codes(page)
    assert code[0] == "--</metadata><script>document.documentElement.dataset.owned = 1</script>]]>"
    assert code[8] == "\treturn 9" and code[1] == "local l2"
    folded = next(button for button in page.all(".lines button") if "without time" in button.text)
    assert folded.text == "… 1,167 lines without time"
    folded.click()
    page.wait(lambda: len(codes(page)) == 1200)


def test_states_of_a_line_are_told_apart(open_page):
    page = open_page("small", "page", "source")
    looks = page.script("""
        return Object.fromEntries(Array.from(document.querySelectorAll(".lines [data-line]"), (row) =>
            [row.dataset.line, Array.from(row.querySelectorAll(".states rect"), (bar) => bar.classList[1])]));""")
    assert looks == {"1": ["g", "k"], "6": ["j", "c"], "8": ["j"], "9": ["j"], "13": ["c"]}
    assert [entry.split(" ")[0] for entry in page.legend()] == ["compiled", "C", "garbage", "compiling", "unknown"]


def test_a_line_has_callers_and_callees_that_lead_on(open_page):
    page = open_page("small", "page", "source")
    choose_line(page, 13)
    assert detail(page).split("\n")[0] == "total 20.00 % (200 ms), own 20.00 % (200 ms): C 100.00 %"
    assert "Callers\n20.00 % main chunk test.lua:1" in detail(page)
    assert "15.00 % sqrt [libm.so.6]\n5.00 % string.gsub [builtin]" in detail(page)
    page.choose("main chunk test.lua:1")
    assert "line=1" in page.browser.current_url and "heavy test.lua:6" in detail(page)
    page.choose("Callers and callees of main chunk")
    page.wait(lambda: page.one(".graph").is_displayed() and page.find("light test.lua"))
    page.browser.back()
    page.wait(lambda: page.one(".source").is_displayed())


def test_a_line_leads_to_its_frame_and_the_frame_back_to_its_line(open_page):
    page = open_page("small", "page", "source")
    choose_line(page, 9)
    page.choose("Show in the flame graph")
    page.wait(lambda: page.is_zoomed_to("heavy test.lua:9"))
    assert "return 9" in page.hover("heavy test.lua:9")
    page.menu("heavy test.lua:9")
    page.choose("Source")
    page.wait(lambda: page.one(".source").is_displayed())
    assert "own 10.00" in detail(page)


def test_keys_show_it_and_the_list_has_every_file(open_page):
    page = open_page("worker", "page", "source", address="#source=0")
    assert page.one(".graph").is_displayed()
    page.press("v")
    page.wait(lambda: page.one(".source").is_displayed())
    names = [button.text for button in page.all(".files button")]
    assert len(names) >= 3 and "/opt/site/lua/init.lua" in names
    assert not page.one(".graph").is_displayed()
    page.press("v")
    page.wait(lambda: page.find("render"))


def test_chosen_phase_counts_in_lines_too(open_page):
    page = open_page("worker", "page", "source", address="#source=1&phase=content")
    page.wait(lambda: page.all(".lines [data-line]"))
    assert [shares for shares in rows(page).values() if shares[0] == "100 %"]
    everything = open_page("worker", "page", "source")
    assert not [shares for shares in rows(everything).values() if shares[0] == "100 %"]


def test_without_sources_the_page_has_no_such_view(open_page):
    page = open_page("small", "page", address="#source=1")
    assert page.one(".graph").is_displayed() and "Source" not in [button.text for button in page.all(".tools button")]
    page.press("v")
    assert page.one(".graph").is_displayed() and page.find("heavy")


@pytest.mark.parametrize("options", [(), ("page",)])
def test_hostile_files_run_nothing(open_page, options):
    page = open_page("hostile", *options, "source")
    page.wait(lambda: page.all(".files button"))
    for button in range(len(page.all(".files button"))):
        page.script("document.querySelectorAll('.files button')[arguments[0]].click();", button)
        assert page.script("return document.querySelectorAll('.lines tr').length;")


# -- What the view says in detail --


def listing(page):
    """Each row of the lines: what it is, its number, and its text or that of its button."""
    return page.script("""
        return Array.from(document.querySelectorAll(".lines tbody > tr:not(.detail)"), (row) => row.cells.length === 1 ? row.textContent
            : (row.classList.contains("timed") ? "* " : "") + row.cells[0].textContent);""")


def open_made(page, path, tmp_path, *changes, address=""):
    """Open a copy of a page with other text in it."""
    text = path.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    made = tmp_path / f"made-{len(list(tmp_path.iterdir()))}.html"
    made.write_text(text, encoding="utf-8")
    page.browser.get(made.as_uri() + address)


def test_lines_without_time_are_folded_but_for_those_next_to_lines_with_time(open_page, make_flamegraph, tmp_path):
    page = open_page("small", "page", "source")
    assert listing(page) == [{1: "* 1", 6: "* 6", 8: "* 8", 9: "* 9", 13: "* 13"}.get(line, str(line)) for line in range(1, 34)] \
        + ["… 1,167 lines without time"]
    path = make_flamegraph("small", "page", "source")
    open_made(page, path, tmp_path, ("light\ttest.lua:13", "light\ttest.lua:700"), ("main chunk\ttest.lua:1\n", "main chunk\ttest.lua:410\n"))
    between = [{6: "* 6", 8: "* 8", 9: "* 9", 410: "* 410"}.get(line, str(line)) for line in range(1, 700)]
    assert listing(page) == between + ["* 700", *map(str, range(701, 721)), "… 480 lines without time"]      # 400 and fewer are shown
    open_made(page, path, tmp_path, ("light\ttest.lua:13", "light\ttest.lua:900"), ("main chunk\ttest.lua:1\n", "main chunk\ttest.lua:411\n"),
              ("test.lua:6", "test.lua:402"), ("test.lua:8", "test.lua:404"), ("test.lua:9\n", "test.lua:405\n"))
    rows = listing(page)
    assert rows[:21] == ["… 381 lines without time", *map(str, range(382, 402))] and rows[21] == "* 402"
    assert rows[30:52] == ["* 411", *map(str, range(412, 432)), "… 448 lines without time"]
    assert rows[52:73] == [*map(str, range(880, 900)), "* 900"]
    assert rows[73:] == list(map(str, range(901, 1201)))
    page.all(".lines td[colspan] button")[1].click()
    page.wait(lambda: len(listing(page)) > 500)
    assert listing(page)[30:520] == ["* 411", *map(str, range(412, 900)), "* 900"]
    page.press("v", "v")
    page.wait(lambda: len(listing(page)) > 500)             # they stay unfolded
    open_made(page, path, tmp_path, ("test.lua:6", "test.lua:500"), ("test.lua:8", "test.lua:508"), ("test.lua:9\n", "test.lua:509\n"),
              ("light\ttest.lua:13", "light\ttest.lua:513"))
    assert listing(page)[:23] == ["* 1", *map(str, range(2, 22)), "… 458 lines without time", "480"]
    open_made(page, path, tmp_path, ("light\ttest.lua:13", "light\ttest.lua:1300"))
    assert listing(page)[-21:] == [*map(str, range(1280, 1300)), "* 1300"]        # behind the end of the file as it is


def test_bars_are_as_wide_as_shares_of_the_heaviest_line(open_page):
    page = open_page("small", "page", "source")
    parts = page.script("""return Object.fromEntries(Array.from(document.querySelectorAll(".lines [data-line]"), (row) => [row.dataset.line,
        [...Array.from(row.querySelectorAll(".share"), (cell) => cell.style.getPropertyValue("--part")),
         Array.from(row.querySelectorAll(".states rect"), (bar) => [Number(bar.getAttribute("x")), Number(bar.getAttribute("width"))]).flat(),
         row.querySelector(".vm").title]]));""")
    assert parts == {
        "1": ["50.0%", "100.0%", [0, 20, 20, 10], "garbage collection 66.67\u00a0%, recording a trace 33.33\u00a0%"],
        "6": ["100.0%", "31.6%", [0, 40, 40, 20], "compiled 66.67\u00a0%, C 33.33\u00a0%"],
        "8": ["66.7%", "21.1%", [0, 40], "compiled 100.00\u00a0%"],
        "9": ["33.3%", "10.5%", [0, 20], "compiled 100.00\u00a0%"],
        "13": ["66.7%", "21.1%", [0, 40], "C 100.00\u00a0%"]}


def test_a_chosen_line_opens_and_closes_where_it_is(open_page):
    page = open_page("small", "page", "source", height=300)
    assert page.all(".lines .chosen") == [] and page.all(".lines .detail") == []
    page.script("document.querySelector('.lines').scrollTop = 120;")
    choose_line(page, 13)
    top = page.script("return document.querySelector('.lines').scrollTop;")
    assert top > 0 and page.script("return document.activeElement.textContent") == "13"
    assert [row.get_attribute("data-line") for row in page.all(".lines .chosen")] == ["13"]
    assert [button.get_attribute("aria-expanded") for button in page.all(".lines [data-line] button")] == ["false"] * 4 + ["true"]
    page.script("document.querySelector(\".lines [data-line='13'] button\").click();")
    assert page.all(".lines .chosen") == [] and page.all(".lines .detail") == []
    assert page.script("return document.querySelector('.lines').scrollTop;") == top
    assert page.browser.current_url.endswith("#")


def test_view_scrolls_to_the_hottest_or_the_chosen_line(open_page, make_flamegraph, tmp_path):
    """A third of the view is above the line, below what is always there."""
    path = make_flamegraph("small", "page", "source")
    changes = [("test.lua:6", "test.lua:106"), ("light\ttest.lua:13", "light\ttest.lua:213")]
    above = {}
    for height in (800, 500):
        page = open_page("small", "page", "source", height=height)

        def place(line):
            """Of a line from the top of the view, and the height of the view."""
            return page.script("""
                const box = document.querySelector(".lines"), row = box.querySelector("[data-line='" + arguments[0] + "']");
                return [row.getBoundingClientRect().top - box.getBoundingClientRect().top, box.clientHeight];""", line)

        open_made(page, path, tmp_path, *changes)
        above[height] = place(106)                      # 30 % own
        open_made(page, path, tmp_path, *changes, address="#line=213")
        assert place(213) == pytest.approx(above[height], abs=1)
    assert above[800][0] - above[500][0] == pytest.approx((above[800][1] - above[500][1]) / 3, abs=2)
    assert 0 < above[500][0] < above[500][1] / 2 and above[800][1] - above[500][1] > 200
    page.script("document.querySelector('.lines').scrollTop = 0;")
    choose_line(page, 1)
    page.choose("light test.lua:213")
    assert place(213) == pytest.approx(above[500], abs=1)
    page.choose("main chunk test.lua:1")
    assert page.script("return document.querySelector('.lines').scrollTop;") == 0


def details(page):
    return detail(page).replace("\u00a0", " ").split("\n")


def detail_of(page, line):
    choose_line(page, line)
    return details(page)


def test_a_line_says_who_calls_it_and_what_it_calls_with_their_weights(open_page):
    page = open_page("small", "page", "source", address="#line=6")
    assert details(page) == [
        "total 30.00 % (300 ms), own 30.00 % (300 ms): compiled 66.67 %, C 33.33 %", "Callers", "30.00 % main chunk test.lua:1",
        "Calls", "20.00 % heavy test.lua:6", "10.00 % string.gsub [builtin]", "Show in the flame graph", "Callers and callees of heavy"]
    choose_line(page, 1)
    assert details(page) == [
        "total 95.00 % (950 ms), own 15.00 % (150 ms): garbage collection 66.67 %, recording a trace 33.33 %", "Callers", "none",
        "Calls", "30.00 % heavy test.lua:6", "20.00 % heavy test.lua:8", "20.00 % light test.lua:13", "10.00 % heavy test.lua:9",
        "10.00 % lj_BC_ADDVV [vm]", "Show in the flame graph", "Callers and callees of main chunk"]
    page.choose("lj_BC_ADDVV [vm]")             # it has no line: to the flame graph
    page.wait(lambda: page.one(".graph").is_displayed())
    assert fragment(page)["sandwich"] == "1" and page.find("lj_BC_ADDVV")[0]["share"] == 100


def test_lines_without_own_time_and_with_many_callees(open_page, make_flamegraph, tmp_path):
    page = open_page("small", "page", "source")
    callees = [f"2 {8 + k} 0 {10 - k} 0 c{10 - k}0" for k in range(10)]
    old = make_flamegraph("small", "page", "source").read_text(encoding="utf-8")
    frames = old[old.index('<metadata id="frames">'):].split("</metadata>")[0]
    lines = old[old.index('<metadata id="lines">'):].split("</metadata>")[0]
    made = '<metadata id="lines">0 [lost: frame chain broken]\n1 all\n5 main chunk\ttest.lua:1\n2 heavy\ttest.lua:?\n' \
        + "".join(f"6 unused{k}\n" for k in range(4)) + "".join(f"{6 + k % 3} callee{k}\n" for k in range(10))
    open_made(page, make_flamegraph("small", "page", "source"), tmp_path, (lines, made),
              (frames, '<metadata id="frames">' + "\n".join(["0 1", "1 2", *callees, "1 3 0 5 0 i50"]) + "\n"), address="#line=1")
    assert details(page)[3:] == ["Calls", *(f"{100 * (10 - k) / 60:.2f} % callee{k}" for k in range(8)), "… 2 more",
                                 "Show in the flame graph", "Callers and callees of main chunk"]
    assert details(page)[:3] == ["total 91.67 % (550 ns), own 91.67 % (550 ns): C 100.00 %", "Callers", "none"]
    assert rows(page) == {"0": ["8.3 %", "8.3 %"], "1": ["92 %", "92 %"]}
    open_made(page, make_flamegraph("small", "page", "source"), tmp_path, (lines, made),
              (frames, '<metadata id="frames">' + "\n".join(["0 1", "1 2", "2 3 0 5 0 i50"]) + "\n"), address="#line=1")
    assert details(page)[:5] == ["total 100.00 % (50 ns), own none", "Callers", "none", "Calls", "100.00 % heavy test.lua:?"]
    assert rows(page) == {"0": ["100 %", "100 %"], "1": ["", "100 %"]}
    assert page.all(".lines [data-line='1'] .states") == []
    open_made(page, make_flamegraph("small", "page", "source"), tmp_path, (lines, made),
              (frames, '<metadata id="frames">' + "\n".join(["0 1", "1 2", "2 3 0 5 0 i50"]) + "\n"))
    assert page.all(".lines .chosen") == [] and page.all(".lines .detail") == []
    choose_line(page, 0)
    assert page.browser.current_url.endswith("#line=0")
    assert details(page)[:3] == ["total 100.00 % (50 ns), own 100.00 % (50 ns): interpreted 100.00 %", "Callers", "100.00 % main chunk test.lua:1"]
    choose_line(page, 0)
    assert page.all(".lines .chosen") == [] and page.all(".lines .detail") == []


def test_each_neighbour_of_a_line_leads_to_its_own_line(open_page):
    page = open_page("small", "page", "source", address="#line=1")
    neighbours = [button.text for button in page.all(".lines .neighbours button") if "test.lua:" in button.text]
    assert len(neighbours) == 4
    for neighbour in neighbours:
        page.choose(neighbour)
        assert page.one(".source").is_displayed() and fragment(page)["line"] == neighbour.rpartition(":")[2]
        page.choose("main chunk test.lua:1")
        assert page.one(".source").is_displayed() and fragment(page)["line"] == "1"


def listed(page):
    """The rows of the list of files: own, total, name, and class."""
    return page.script("return Array.from(document.querySelectorAll('.files tbody tr'), (row) => Array.from(row.cells, (cell) => cell.textContent).concat(row.className));")


def test_a_file_that_calls_itself_has_its_time_once(open_page):
    page = open_page("small", "page", "source")
    assert "20.00 % heavy test.lua:6" in detail_of(page, 6)         # both in the file
    assert listed(page) == [["95 %", "95 %", "test.lua", "chosen"]]


def test_files_are_listed_by_own_time(open_page):
    page = open_page("worker", "page", "source")
    plugins = "/usr/local/share/lua/5.1/kong/plugins/"
    files = [["38 %", "38 %", "/opt/site/lua/views/page.lua"], ["33 %", "33 %", plugins + "rate-limiting/handler.lua"],
             ["19 %", "19 %", plugins + "rate-limiting-advanced/handler.lua"], ["9.5 %", "9.5 %", "/opt/site/lua/timers.lua"],
             ["0", "100 %", "/opt/site/lua/init.lua"]]
    assert listed(page) == [[*file, "chosen" if k == 0 else ""] for k, file in enumerate(files)]
    assert page.one(".lines .note").text == files[0][2] and listing(page)[40] == "* 41"
    page.all(".files button")[4].click()
    assert listed(page) == [[*file, "chosen" if k == 4 else ""] for k, file in enumerate(files)]
    assert rows(page) == {"3": ["", "100 %"]}
    page.script("""
        const chooser = document.querySelector("[data-choose=phase]");
        chooser.value = "content";
        chooser.dispatchEvent(new Event("change"));""")
    assert listed(page) == [["100 %", "100 %", files[0][2], ""], ["0", "100 %", files[4][2], "chosen"]]
    page = open_page("worker", "page", "source", address="#file=0&phase=no+phase")
    assert len(listed(page)) == 3 and [row[:2] for row in listed(page) if row[3]] == [["0", "0"]]    # the chosen one stays, without time
    assert rows(page) == {}


def test_source_view_of_a_comparison_has_the_chosen_side(open_page):
    page = open_page("compare", "page", "source")
    assert rows(page) == {"1": ["", "100 %"], "2": ["40 %", "40 %"], "12": ["10 %", "10 %"], "22": ["30 %", "30 %"], "32": ["10 %", "10 %"],
                          "42": ["9.6 %", "9.6 %"]}
    choose_line(page, 1)
    assert "40.00 % slower test.lua:2" in details(page)
    page.press("b")
    assert rows(page) == {"1": ["", "100 %"], "2": ["20 %", "20 %"], "12": ["30 %", "30 %"], "22": ["30 %", "30 %"], "32": ["10 %", "10 %"],
                          "52": ["10 %", "10 %"]}
    assert "20.00 % slower test.lua:2" in details(page) and "10.00 % gone test.lua:52" in details(page)


def test_a_file_without_text_has_its_lines_with_time(open_page, make_flamegraph, tmp_path):
    page = open_page("small", "page", "source")
    open_made(page, make_flamegraph("small", "page", "source"), tmp_path, ('<metadata id="source-0">', '<metadata id="other">'),
              ('<metadata id="files">test.lua\t\t', '<metadata id="files">test.lua\tthere is no such file\t'))
    assert page.one(".lines .note").text == "test.lua (there is no such file)"
    assert listing(page) == ["* 1", "* 6", "* 8", "* 9", "* 13"] and set(codes(page)) == {""}
    choose_line(page, 8)
    page.choose("Show in the flame graph")
    page.wait(lambda: page.is_zoomed_to("heavy test.lua:8"))
    assert "line 8" not in page.hover("heavy test.lua:8")


def test_a_line_is_shown_where_it_is_heaviest_in_the_graph(open_page):
    page = open_page("small", "page", "source", address="#line=6&inverted=1&sandwich=0&focus=5")
    page.choose("Show in the flame graph")
    page.wait(lambda: page.is_zoomed_to("heavy test.lua:6"))
    assert page.active() == "heavy test.lua:6" and page.find("heavy test.lua:6")[0]["share"] == 30
    parts = fragment(page)
    assert (parts["source"], parts["lines"], parts["open"]) == ("0", "1", "1") and not {"inverted", "focus"} & set(parts)
    assert "line 6 local l6" in page.hover("heavy test.lua:6")
    page.press("l")
    assert "line 6 local l6" in page.hover("heavy test.lua:5")      # the heaviest of its lines
    assert "line 13 local l13" in page.hover("light")
    assert "line " not in page.hover("sqrt") and "line " not in page.hover("all")


# -- Sides, files --


def open_sides(page, make_flamegraph, tmp_path, address=""):
    """A comparison: f has most time at line 8 now and had it at line 6 before; g calls it there, and before it so did h."""
    functions = ["a all", "l f\tx.lua:5", "l g\tx.lua:20", "l h\tx.lua:30"]
    lines = ["1 f\tx.lua:6", "1 f\tx.lua:8", "2 g\tx.lua:21", "3 h\tx.lua:31", "0 all"]
    path = make(make_flamegraph, "compare", tmp_path, "source", functions=functions, lines=lines, files=["x.lua\t\t1 2 3"],
                frames=["0 4", "1 2", "2 0 0 20 0 i20", "2 1 0 50 0 i50", "1 3", "2 0 0 15 0 i15", "2 1 0 15 0 i15"],
                baseline=["0 4", "1 2", "2 0 0 10 0 i10", "2 1 0 10 0 i10", "1 3", "2 0 0 70 0 i70", "2 1 0 10 0 i10"])
    page.browser.get(path.as_uri() + address)


def test_line_of_a_function_is_the_heaviest_of_the_shown_side(open_page, make_flamegraph, tmp_path):
    page = open_page("small")
    open_sides(page, make_flamegraph, tmp_path, "#source=0&focus=1")
    assert "line 8 local l8" in page.hover("f x.lua:5")
    page.press("b")
    assert "line 6 local l6" in page.hover("f x.lua:5")


@pytest.mark.parametrize("address, caller", [("", "g"), ("&side=1", "h")])
def test_a_line_is_shown_where_the_shown_side_has_most_of_it(open_page, make_flamegraph, tmp_path, address, caller):
    page = open_page("small")
    open_sides(page, make_flamegraph, tmp_path, "#source=1&line=6" + address)
    page.choose("Show in the flame graph")
    page.wait(lambda: page.is_zoomed_to("f x.lua:6"))
    assert {frame["label"] for frame in page.frames() if frame["above"]} == {"all", {"g": "g x.lua:21", "h": "h x.lua:31"}[caller]}


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_view_scrolls_to_the_line_with_most_time_if_none_has_its_own(open_page, make_flamegraph, tmp_path, order):
    """Then to that with most in all; else one with own time comes first, however much others have."""
    page = open_page("small", height=500)
    lines = [("1 f\tx.lua:100", 30), ("1 f\tx.lua:300", 50), ("1 f\tx.lua:500", 20)]
    for own, hottest in ((0, 300), (3, 500)):
        frames = ["0 3"]
        for k in order:
            total = lines[k][1]
            frames += [f"1 {order.index(k)}" + (f" 0 {own} 0 i{own}" if own and k == 2 else ""), f"2 4 0 {total} 0 i{total}"]
        path = make(make_flamegraph, "small", tmp_path, "source", functions=["a all", "l f\tx.lua:1", "l g\ty.lua:1"],
                    lines=[*(lines[k][0] for k in order), "0 all", "2 g\ty.lua:2"], files=["x.lua\t\t1", "y.lua\t\t2"], frames=frames)
        page.browser.get("about:blank")
        page.browser.get(path.as_uri() + "#source=1&file=0")
        top = page.script("""const box = document.querySelector(".lines"), row = box.querySelector("[data-line='" + arguments[0] + "']");
            return (row.getBoundingClientRect().top - box.getBoundingClientRect().top) / box.clientHeight;""", hottest)
        assert 0 < top < 0.5


def test_each_file_has_its_own_unfolded_lines(open_page):
    page = open_page("worker", "page", "source", address="#file=0")
    folded = listing(page)[-1]
    assert "lines without time" in folded
    page.choose(folded)
    page.wait(lambda: len(listing(page)) == 1200)
    next(button for button in page.all(".files button") if "rate-limiting/" in button.text).click()
    page.wait(lambda: page.one(".lines .note").text.endswith("rate-limiting/handler.lua"))
    assert listing(page)[-1] == folded


def test_folded_lines_are_told_beside_long_ones(open_page, make_flamegraph, tmp_path):
    page = open_page("small", width=390)
    open_made(page, make_flamegraph("small", "page", "source"), tmp_path, ("local l3\n", "local l3 = " + "x" * 900 + "\n"))
    box = page.script("const box = document.querySelector('.lines'); return [box.scrollWidth, box.clientWidth];")
    assert box[0] > 2 * box[1]
    for _ in range(2):
        left, right = page.script("""const { left, right } = Array.from(document.querySelectorAll(".lines button")).find((one) => one.textContent.startsWith("…"))
            .getBoundingClientRect(); return [left, right];""")
        assert 0 <= left < right <= 390
        page.script("document.querySelector('.lines').scrollLeft = 2000;")
