# SPDX-License-Identifier: MIT
"""The source view: files, their lines with time, callers and callees, and the way to the flame graph and back.

The truth of "small" (tests/browser/make_flamegraph.c), in samples of 100 in all: line 1 of test.lua has 95,
5 of which end at it while a trace is recorded, and 10 in a handler of the VM; line 6, in heavy, has 30 with
string.gsub or itself on it; line 8 has 20 and line 9 has 10, both in heavy; line 13, in light, has 20, all in C.
"""

import pytest


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
