# SPDX-License-Identifier: MIT
"""Where one way to show something ends and another begins: small shares, narrow frames, lines that are nearly known, short times."""

import pytest

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from test_address import open_made
from test_drawn import drawn, fragment

GIVEN_UP_S = 30     # by then a search that takes too long is given up, even beside others: see SEARCH_MS in view.js

# Counts the workers, and keeps what they answer until the test calls answer().
HELD_WORKERS = """
    const Real = window.Worker, held = [];
    window.started = 0;
    window.Worker = class extends Real {
        constructor(script) { super(script); window.started++; }
        set onmessage(act) { super.onmessage = (event) => event.data === "begun" || held.push(() => act(event)); }
    };
    window.answers = () => held.length;
    window.answer = () => { for (const act of held.splice(0)) act(); };
"""


def made(open_made, weights, address="", name="small", **more):
    """Opens functions of these weights on the root: one, of ns, and the look and text of each."""
    rows = [f"1 {k + 1} 0 1 0 i{weight}" for k, (_, weight) in enumerate(weights)]
    return open_made(name, address, functions=["a all", *(label for label, _ in weights)], lines=["0 all", *(f"{k + 1} {label[2:]}" for k, (label, _) in enumerate(weights))],
                     frames=["0 0", *rows], **more)


def test_shares_are_told_with_the_digits_that_they_need(open_made):
    page = made(open_made, [("l a", 899200), ("b b", 99400), ("c c", 700), ("v d", 500), ("n e", 200)], "#list=1")
    assert [" ".join(row.text.split()) for row in page.all(".hottest tbody tr")] == ["90 % 90 % a", "9.9 % 9.9 % b", "< 0.1 % < 0.1 % c", "< 0.1 % < 0.1 % d",
                                                                                     "< 0.1 % < 0.1 % e"]
    page = made(open_made, [("l a", 899000), ("b b", 100000), ("c c", 1000)], "#list=1")
    assert [row.text.split()[0] for row in page.all(".hottest tbody tr")] == ["90", "10", "0.1"]


def test_sandwich_of_the_root_is_not_of_what_is_unknown(open_made):
    page = made(open_made, [("x [lost: frame chain broken]", 90), ("l f", 10)])
    page.press("s")
    assert page.labels() == {"f"}


def test_what_is_allocated_on_the_root_is_its_own(open_made):
    page = made(open_made, [("m [alloc: table]", 90), ("l f", 10)], "#list=1")
    assert [" ".join(row.text.split()) for row in page.all(".hottest tbody tr")] == ["90 % 90 % [alloc: table]", "10 % 10 % f"]


def test_a_line_is_marked_if_most_of_its_time_was_at_a_nearest_one(open_made):
    functions, lines = ["a all", "l f\tx.lua:1", "l g\tx.lua:5", "l h\tx.lua:9"], ["0 all", "1 f\tx.lua:2", "2 g\tx.lua:6", "3 h\tx.lua:10"]
    frames = ["0 0", "1 1 2 40 0 i40", "1 1 0 60 0 i60", "1 2 2 60 0 i60", "1 2 0 40 0 i40", "1 3 2 50 0 i50", "1 3 0 50 0 i50"]
    page = open_made("small", "#lines=1", functions=functions, lines=lines, frames=frames)
    texts = page.script("return Array.from(document.querySelectorAll('.frames .f text'), (text) => text.textContent);")
    assert texts == ["all", "f x.lua:2", "≈ g x.lua:6", "h x.lua:10"]


def test_a_single_narrow_frame_tells_of_itself(open_made):
    page = made(open_made, [("l wide", 99990), ("l narrow", 5), ("l other", 99990)])
    box = page.find("other")[0]
    tell = """document.querySelector(".frames").dispatchEvent(new PointerEvent("pointermove", { clientX: arguments[0], clientY: arguments[1], bubbles: true }));
        return document.querySelector(".card").innerText.split("\\n")[0];"""
    assert {page.script(tell, box["x"] - x, box["y"] + 8) for x in (0.01, 0.02)} == {"narrow"}
    page = made(open_made, [("l wide", 99990), ("l narrow", 5), ("l thin", 5), ("l other", 99990)])
    box = page.find("other")[0]
    assert page.script(tell, box["x"] - 0.02, box["y"] + 8) == "2 frames too narrow to show"


def test_narrow_frames_of_different_callers_are_told_apart(open_made):
    names = ["left", "right", *(f"n{k}" for k in range(2000))]
    frames = ["0 0", "1 1", *(f"2 {3 + k} 0 1 0 i1" for k in range(1000)), "1 2", *(f"2 {1003 + k} 0 1 0 i1" for k in range(1000))]
    page = open_made("small", functions=["a all", *("l " + name for name in names)], lines=[f"{k} {name}" for k, name in enumerate(["all", *names])], frames=frames, width=800)
    assert [run.get_attribute("data-count") for run in page.all("[data-count]")] == ["1000", "1000"]
    page.search("n1500$")
    assert [run.get_attribute("class") for run in page.all("[data-count]")] == ["f r", "f r hit"]


def test_a_click_in_order_of_time_shows_at_least_a_tenth_of_a_millisecond(open_made):
    page = open_made("worker", "#ordered=1&cpu=0&from=500000&to=500100", functions=["a all", "l f", "l g"], lines=["0 all", "1 f", "2 g"], frames=["0 0", "1 1 0 2 0 i20000", "1 2 0 1 0 i20000"],
                     threads=["7 7 w\tw\t"], moments=["0 1000001", "500030 1 i 20000", "20 2 i 20000", "20 1 i 20000"])
    page.click("g")
    assert (fragment(page)["from"], fragment(page)["to"]) == ("500030", "500130")
    page = open_made("worker", "#ordered=1&cpu=0&from=900000&to=900100", functions=["a all", "l f"], lines=["0 all", "1 f"], frames=["0 0", "1 1 0 2 0 i20000"],
                     threads=["7 7 w\tw\t"], moments=["0 1000001", "500030 1 i 20000"])
    page.script("document.querySelector('.scroll').focus();")
    page.press(Keys.HOME)
    assert page.one(".scroll").get_attribute("aria-activedescendant") == "frame0"
    page.press(Keys.ARROW_UP)
    assert page.one(".scroll").get_attribute("aria-activedescendant") is None       # it is outside the shown time


def test_time_without_samples_says_so(open_made):
    page = open_made("worker", "#cpu=0&from=100000&to=200000", functions=["a all", "l f"], lines=["0 all", "1 f"], frames=["0 0", "1 1 0 2 0 i20000"],
                     threads=["7 7 w\tw\t"], moments=["0 1000001", "500030 1 i 20000"])
    assert page.one(".scroll").text == "No samples in this time"


@pytest.mark.parametrize("text, is_wrong", [("f", False), ("nothing", True), ("(", True)])
def test_search_without_a_match_is_marked(open_made, text, is_wrong):
    page = made(open_made, [("l f", 90), ("l g", 10)])
    page.search(text)
    assert ("wrong" in page.one("input").get_attribute("class").split()) == is_wrong


@pytest.mark.every_browser
@pytest.mark.parametrize("options", [[], ["page"]])
def test_an_expression_without_an_end_is_given_up(open_made, options):
    """From an address or typed. The page goes on meanwhile, and tells of no share."""
    page = made(open_made, [("l " + 60 * "a" + "!", 90), ("l g", 10)], "#search=(a|aa)%2B%24", options=options)
    trouble = "No result: this expression takes too much time or memory"
    assert page.result() in ("Searching …", trouble) and page.find("g") and not any(frame["hit"] for frame in page.frames())
    page.press("i")
    assert fragment(page)["inverted"] == "1"
    page.wait(lambda: page.result() == trouble, GIVEN_UP_S)
    assert "wrong" in page.one("input").get_attribute("class").split()
    page.press(Keys.ESCAPE)
    page.search("^g")
    assert page.result() == "Matched 10.00 %" and [frame["label"] for frame in page.frames() if frame["hit"]] == ["g"]
    page.press(Keys.ESCAPE, "/", "(a|aa)+$", Keys.ENTER)
    assert page.result() in ("Searching …", trouble)
    page.press(Keys.ESCAPE)
    assert page.result() == ""


@pytest.mark.parametrize("trouble", ["throw new Error('denied');", "setTimeout(() => this.onerror(new Event('error')));"])
def test_an_expression_that_cannot_be_searched_says_so(open_made, trouble):
    """One that cannot take long needs no worker."""
    page = made(open_made, [("l f", 90), ("l g", 10)])
    page.script("window.Worker = class { constructor() { " + trouble + " } postMessage() {} terminate() {} };")
    for expression in ("^f+", "^f{1,2}$", "^.*f", "^(f?f?f?f?f?f?f?f?|f)$"):
        page.press("/", expression)
        page.wait(lambda: page.result() == "No result: where this page is shown, expressions with *, +, { or many ? and | cannot be searched")
        page.press(Keys.ESCAPE)
    for expression in ("f", "^f", "^(f|x)$", "(f)\\1?$"):
        page.press("/", expression)
        page.wait(lambda: page.result() == "Matched 90.00 %")
        page.press(Keys.ESCAPE)


def test_enter_leads_to_the_first_match_of_an_expression(open_made):
    page = made(open_made, [("l f", 90), ("l g", 10)])
    page.press("/")
    page.press("^g+", Keys.ENTER)
    page.wait(lambda: page.one(".scroll").get_attribute("aria-activedescendant") == page.find("g")[0]["id"])
    assert page.script("return document.activeElement === document.querySelector('.scroll')")


@pytest.fixture
def held(open_made):
    """A page that has searched for ^g+, has found the match, and does not show it before answer()."""
    page = made(open_made, [("l f", 90), ("l g", 10)])
    page.script(HELD_WORKERS)
    return page


def hold(page, *keys):
    page.press("/")
    page.press("^g+", *keys)
    page.wait(lambda: page.script("return answers()") == 1 and page.result() == "Searching …")


def in_search(page):
    return page.script("return document.activeElement === document.querySelector('input')")


@pytest.mark.every_browser
def test_letters_typed_while_a_search_ends_stay(held):
    hold(held)
    value = held.script("""const search = document.querySelector("input");
        search.value += "h";
        search.dispatchEvent(new InputEvent("input", { bubbles: true }));
        answer();
        return search.value;""")
    assert value == "^g+h" and held.result() == "Matched 10.00 %"
    held.wait(lambda: fragment(held).get("search") == "^g+h")


TYPE = """
    const search = document.querySelector("input"), frame = (label) => document.querySelector(`[data-frame][aria-label^="${label},"]`);
    search.focus();
    search.value += "g";
    search.dispatchEvent(new InputEvent("input", { bubbles: true }));
"""


@pytest.mark.every_browser
def test_letters_typed_right_before_a_click_are_searched(open_made):
    page = made(open_made, [("l f", 90), ("l g", 10)])
    page.script(TYPE + """
        const box = frame("f").getBoundingClientRect(), at = { clientX: box.x + box.width / 2, clientY: box.y + box.height / 2 };
        frame("f").dispatchEvent(new MouseEvent("click", { bubbles: true, ...at }));""")
    page.wait(lambda: page.result() == "Matched 10.00 % of all, 0.00 % of this view")
    assert page.one("input").get_attribute("value") == "g" and fragment(page)["search"] == "g" and "zoom" in fragment(page)
    # The search is no step of its own: the one back leads to the whole picture, searched.
    page.browser.back()
    page.wait(lambda: page.result() == "Matched 10.00 %")


def test_escape_and_reset_take_back_letters_that_are_not_searched_yet(open_made):
    page = made(open_made, [("l f", 90), ("l g", 10)])
    escape = "search.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }));"
    page.click("f")  # there is something to reset
    reset = "document.querySelector('button[data-key=r]').click();"
    for end in (escape, reset):
        page.script(TYPE + end + "window.isLater = false; setTimeout(() => { window.isLater = true; }, 300);")
        page.wait(lambda: page.script("return isLater"))
        assert page.one("input").get_attribute("value") == "" and not page.result().startswith("Matched")
        assert "search" not in fragment(page)


PRESS = "document.querySelector('{}').dispatchEvent(new KeyboardEvent('keydown', {{ key: '{}', bubbles: true }}));"
LATER = "window.isLater = false; setTimeout(() => { window.isLater = true; }, 300);"


def test_escape_outside_of_the_search_takes_back_letters_that_are_not_searched_yet(open_made):
    page = made(open_made, [("l f", 90), ("l g", 10)])
    page.click("f")
    page.script(TYPE + PRESS.format(".frames", "Escape") + LATER)
    page.wait(lambda: page.script("return isLater"))
    assert page.one("input").get_attribute("value") == "" and "search" not in fragment(page)
    assert "zoom" in fragment(page)  # a second Escape would step back


@pytest.mark.parametrize("step", [PRESS.format(".frames", "Backspace"), "history.back();"], ids=["key", "browser"])
@pytest.mark.every_browser
def test_letters_typed_right_before_a_step_back_are_not_of_the_view_before(step, open_made):
    page = made(open_made, [("l f", 90), ("l g", 10)])
    page.click("f")
    page.script(TYPE + "addEventListener('popstate', () => {" + LATER + "});" + step)
    page.wait(lambda: page.script("return window.isLater"))
    assert page.one("input").get_attribute("value") == "" and not page.result().startswith("Matched")
    assert "search" not in fragment(page) and "zoom" not in fragment(page)
    page.browser.forward()
    page.wait(lambda: page.result() == "Matched 10.00 % of all, 0.00 % of this view")
    assert "zoom" in fragment(page) and fragment(page)["search"] == page.one("input").get_attribute("value") == "g"


def test_letters_typed_slowly_stay(open_made):
    """A search begins after each of them, and its end comes while the next is typed."""
    page = made(open_made, [("l " + name, 10) for name in ("gsub", "gmatch")])
    page.press("/")
    for letter in "^g.*[su]+b":
        ActionChains(page.browser, duration=0).send_keys(letter).pause(0.14).perform()
    page.wait(lambda: page.result() == "Matched 50.00 %")
    assert page.one("input").get_attribute("value") == "^g.*[su]+b"


@pytest.mark.every_browser
def test_what_is_done_after_enter_is_not_disturbed_by_the_first_match(held):
    hold(held, Keys.ENTER, Keys.ARROW_LEFT)
    held.script("answer();")
    assert held.result() == "Matched 10.00 %" and in_search(held)
    held.press("i")
    assert held.one("input").get_attribute("value") == "^gi+" and "inverted" not in fragment(held)


def test_a_press_after_enter_revokes_it(held):
    hold(held, Keys.ENTER)
    held.hover("f")
    held.actions().context_click().perform()
    held.one("input").click()
    held.script("answer();")
    assert held.result() == "Matched 10.00 %" and in_search(held)


def test_enter_without_a_match_leaves_the_search_as_it_is(open_made):
    page = made(open_made, [("l f", 90), ("l g", 10)])
    for text in ("x", "^x+"):
        page.press("/")
        page.press(text, Keys.ENTER)
        page.wait(lambda: page.result() == "Matched 0.00 %")
        assert in_search(page)
        page.press(Keys.ESCAPE)


@pytest.mark.every_browser
def test_the_end_of_a_search_closes_no_menu(held):
    hold(held)
    held.menu("f")
    assert held.tip()
    held.script("answer();")
    assert held.result() == "Matched 10.00 %" and held.tip().startswith("f")


def test_a_change_of_the_view_does_not_search_again(open_made):
    """Functions and lines are searched once each, and the function of a sandwich by line with the functions."""
    page = open_made("small", functions=["a all", "l f\tx.lua:1", "l g\tx.lua:5"], lines=["0 all", "1 f\tx.lua:2", "2 g\tx.lua:6"],
                     frames=["0 0", "1 1 0 1 0 i90", "1 2 0 1 0 i10"])
    page.script(HELD_WORKERS)
    started = lambda: page.script("return started")

    def end():
        page.wait(lambda: page.script("return answers()") == 1)
        page.script("answer();")

    page.press("/")
    page.press("^g.+")
    page.wait(lambda: page.result() == "Searching …")
    page.one(".scroll").click()
    page.press("i", "i")
    assert page.result() == "Searching …" and started() == 1
    end()
    for key in "iisusp":
        page.press(key)
        assert page.result().startswith("Matched ")
    assert started() == 1
    page.press("l")
    assert page.result() == "Searching …" and started() == 2
    end()
    assert page.result() == "Matched 10.00 %"
    page.script("location.hash = '#search=^g.%2B&lines=1&sandwich=1&focus=2';")
    page.wait(lambda: page.result() == "Matched 100.00 %")
    assert [frame["hit"] for frame in page.find("g")] == [True] and started() == 2


def test_a_name_of_other_letters_stays_in_its_frame(open_made):
    page = made(open_made, [("l " + 20 * "\u4e2d\u6587", 100), ("l " + 9 * "\u540d", 50), ("l rest", 700)])
    for text, width in page.script("""return Array.from(document.querySelectorAll("[data-frame]"), (frame) => [frame.querySelector("text")?.getComputedTextLength() ?? 0,
            frame.querySelector("rect").getBoundingClientRect().width]);"""):
        assert text <= width


def test_zoom_to_the_first_frame_has_a_minimap(open_made):
    page = made(open_made, [("l f", 90), ("l g", 10)])
    page.click("f")
    assert fragment(page)["zoom"] == "1" and page.one(".minimap").is_displayed()


def test_states_that_are_too_narrow_to_see_are_not_drawn(open_made):
    page = open_made("small", "#colour=state", functions=["a all", "l f", "l g"], lines=["0 all", "1 f", "2 g"], frames=["0 0", "1 1 0 9 0 i499000 c1000", "1 2 0 9 0 i490000 c10000"])
    strips = page.script("return Object.fromEntries(Array.from(document.querySelectorAll('[data-frame]'), (frame) => [frame.dataset.frame, frame.querySelectorAll('.part').length]));")
    assert strips == {"0": 2, "1": 0, "2": 2}


def test_where_the_changed_functions_are_listed_the_others_have_not_changed(open_page, make_flamegraph, tmp_path):
    page = open_page("compare")
    text = make_flamegraph("compare").read_text(encoding="utf-8")
    functions = text.split('<metadata id="functions">')[1].split("</metadata>")[0].split("\n")
    slower = next(k for k, function in enumerate(functions) if "slower" in function)
    path = tmp_path / "changed.svg"
    path.write_text(text.replace('<metadata id="frames">', f'<metadata id="changed">{slower}\n</metadata>\n<metadata id="frames">'), encoding="utf-8")
    page.browser.get(path.as_uri())
    looks = {frame["label"].split()[0]: frame["look"] for frame in page.frames()}
    assert looks == {"all": "a", "main": "s", "slower": "z", "faster": "s", "same": "s", "chance": "s", "fresh": "s"}
    assert "no clear change" not in page.hover("slower") and "no clear change" in page.hover("faster")


def test_minimap_outlines_a_narrow_frame_so_that_it_can_be_seen(open_made):
    page = made(open_made, [("l wide", 99990), ("l narrow", 10), ("l other", 99990)], "#zoom=2")
    assert page.is_zoomed_to("narrow")
    [outline] = [shape for shape in drawn(page, "minimap") if shape[0] == "strokeRect"]
    assert outline[3] == 2
