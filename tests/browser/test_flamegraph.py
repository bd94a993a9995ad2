"""The flame graph as its readers use it.

The shares in "small" (tests/browser/make_flamegraph.c) are round: of 100
samples, main chunk 95, heavy 60 (of these again heavy 20, gsub 10), light 20
(sqrt 15, gsub 5 with malloc in it), lj_BC_ADDVV 10, lost 5.
"""

import re
import xml.etree.ElementTree

import pytest

from selenium.webdriver.common.keys import Keys

PROFILES = ["small", "nginx", "hostile", "deep", "wide", "empty"]
SVG = "{http://www.w3.org/2000/svg}"


# -- The file --


@pytest.mark.parametrize("name", PROFILES)
def test_file_is_well_formed_and_needs_nothing_else(make_flamegraph, name):
    source = make_flamegraph(name).read_text(encoding="utf-8")
    tree = xml.etree.ElementTree.fromstring(source)
    assert tree.tag == SVG + "svg"
    assert len(list(tree.iter(SVG + "script"))) == 1
    for element in tree.iter():
        for attribute in element.attrib:
            assert "href" not in attribute and not attribute.startswith("on")
    addresses = set(re.findall(r"(?:src|href|url|import)\s*[=(]\s*[\"']?([^\"')\s]+)", source.split("<metadata")[0]))
    assert addresses <= {"#hatch"}


def test_picture_shows_where_scripts_do_not_run(make_flamegraph, browser, tmp_path):
    tree = xml.etree.ElementTree.parse(make_flamegraph("small"))
    static = next(group for group in tree.iter(SVG + "g") if group.get("id") == "static")
    texts = [text.text for text in static.iter(SVG + "text")]
    assert "CPU time of luajit test.lua (pid 4242)" in texts
    assert "heavy test.lua:5" in texts
    titles = [title.text for title in static.iter(SVG + "title")]
    assert "heavy test.lua:5\n60.00 %, 60 samples" in titles

    page = tmp_path / "page.html"
    page.write_text('<img src="%s">' % make_flamegraph("small").as_uri())
    browser.get(page.as_uri())
    assert browser.execute_script("return document.images[0].naturalWidth") == 1200


def test_static_and_scripted_picture_agree(make_flamegraph, open_page):
    tree = xml.etree.ElementTree.parse(make_flamegraph("small"))
    static = next(group for group in tree.iter(SVG + "g") if group.get("id") == "static")
    shown = []
    for group in static.iter(SVG + "g"):
        title = group.find(SVG + "title")
        if title is not None:
            box = group.find(SVG + "rect")
            shown.append((-float(box.get("y")), float(box.get("x")), title.text.split("\n")[0], group.get("class")[-1]))
    drawn = open_page("small").frames()
    whole = [frame for frame in drawn if frame["label"] == "all"][0]
    drawn.sort(key=lambda frame: (-frame["y"], frame["x"]))
    assert len(shown) == len(drawn)
    for (y, x, label, look), frame in zip(sorted(shown), drawn):
        assert (label, look) == (frame["label"], frame["look"])
        assert (x - 10) / 1180 == pytest.approx((frame["x"] - whole["x"]) / whole["width"], abs=0.002)


# -- Reading --


def test_header_tells_what_was_recorded_and_what_was_lost(open_page):
    page = open_page("small")
    about = page.one(".about").text
    assert "CPU time of luajit test.lua (pid 4242)" in about
    assert "$ ljspy record -p 4242 -d 30s -o profile.svg" in about
    assert "30.0 s, 100 samples, paused p50 12." in about
    assert "2 ticks missed, 5 samples lost (5.00 %): frame chain broken 5" in about
    assert page.browser.title == "CPU time of luajit test.lua (pid 4242)"


def test_frames_are_as_wide_as_their_share(open_page):
    page = open_page("small")
    whole = page.find("all")[0]["width"]
    for frame in page.frames():
        assert frame["width"] == pytest.approx(whole * frame["share"] / 100, abs=1.5)
    assert page.find("heavy")[0]["share"] == 60
    assert page.find("string.gsub")[0]["share"] == 10


def test_callees_stand_on_their_callers(open_page):
    page = open_page("small")
    frame = {label: page.find(label)[0] for label in ("all", "main chunk", "heavy", "light", "sqrt")}
    assert frame["all"]["y"] > frame["main chunk"]["y"] > frame["heavy"]["y"]
    assert frame["heavy"]["y"] == frame["light"]["y"] > frame["sqrt"]["y"]
    assert frame["light"]["x"] - 1 <= frame["sqrt"]["x"]
    assert frame["sqrt"]["x"] + frame["sqrt"]["width"] <= frame["light"]["x"] + frame["light"]["width"] + 1


def test_legend_names_the_kinds_that_occur(open_page):
    page = open_page("small")
    names = [entry.text for entry in page.all(".legend span")]
    assert names == ["Lua, interpreted", "Lua, compiled", "builtin", "C function", "native", "VM", "lost"]
    assert page.find("heavy")[0]["look"] == "j"
    assert page.find("light")[0]["look"] == "l"


def test_hover_tells_the_label_and_the_shares(open_page):
    page = open_page("small")
    tip = page.hover("heavy")
    assert tip.startswith("heavy test.lua:5")
    assert "total 60.00 % of all 600 ms 60 samples" in tip
    assert "own 30.00 % of all 300 ms 30 samples" in tip
    assert "compiled 83.33 % of its time" in tip
    assert "everywhere 15.00 % of all" in page.hover("string.gsub")


def test_colours_follow_the_preferred_scheme(open_page):
    page = open_page("small")
    light = page.one(".app").value_of_css_property("background-color")
    page = open_page("small", scheme="dark")
    assert page.one(".app").value_of_css_property("background-color") != light


# -- Zoom --


def test_click_zooms_and_dims_the_callers(open_page):
    page = open_page("small")
    page.click("light")
    assert page.is_zoomed_to("light")
    assert page.labels() == {"all", "main chunk test.lua", "light test.lua:12", "sqrt [libm.so.6]",
                             "string.gsub [builtin]", "malloc [libc.so.6]"}
    assert {frame["label"] for frame in page.frames() if frame["above"]} == {"all", "main chunk test.lua"}
    for frame in page.frames():
        opacity = float(page.one("#" + frame["id"] + " rect").value_of_css_property("opacity"))
        assert opacity < 1 if frame["above"] else opacity == 1
    assert "75.00 % of this view" in page.hover("sqrt")


@pytest.mark.parametrize("key", [Keys.ESCAPE, Keys.BACKSPACE])
def test_keys_step_back_through_the_zooms(open_page, key):
    page = open_page("small")
    page.click("main chunk")
    page.click("light")
    page.press(key)
    page.wait(lambda: page.is_zoomed_to("main chunk"))
    page.press(key)
    page.wait(lambda: page.is_zoomed_to("all"))
    page.press(key)
    assert page.is_zoomed_to("all")
    assert page.browser.current_url.startswith("file:")


def test_browser_steps_back_and_forth(open_page):
    page = open_page("small")
    page.click("light")
    page.browser.back()
    page.wait(lambda: page.is_zoomed_to("all"))
    page.browser.forward()
    page.wait(lambda: page.is_zoomed_to("light"))


def test_address_leads_to_the_same_view(open_page):
    page = open_page("small")
    page.click("light")
    page.search("gsub")
    page = open_page("small", address="#" + page.browser.current_url.split("#")[1])
    assert page.is_zoomed_to("light")
    assert page.result() == "Matched 15.00 % of all, 25.00 % of this view"


def test_address_that_makes_no_sense_shows_everything(open_page):
    assert open_page("small", address="#zoom=999999&search=%FF&x").is_zoomed_to("all")


def test_reset_shows_everything(open_page):
    page = open_page("small")
    button = page.all(".tools button")[0]
    assert not button.is_enabled()
    page.click("light")
    page.search("gsub")
    button.click()
    page.wait(lambda: page.is_zoomed_to("all"))
    assert page.result() == ""
    assert page.one("input").get_attribute("value") == ""
    assert not button.is_enabled()


# -- Search --


@pytest.mark.parametrize("text, share", [
    ("heavy", "60.00 %"),           # nested matches count once
    ("gsub", "15.00 %"),            # in two places
    ("sqrt|malloc", "20.00 %"),     # a regular expression
    ("^main", "95.00 %"),
    ("[lost", "5.00 %"),            # not a regular expression: as text
    ("lj_bc", "10.00 %"),           # small letters match capitals
    ("LJ_bc", "0.00 %"),            # capitals do not match small letters
    ("nowhere", "0.00 %"),
])
def test_search_tells_the_matched_share(open_page, text, share):
    page = open_page("small")
    page.search(text)
    assert page.result() == "Matched " + share


def test_search_highlights_and_escape_ends_it(open_page):
    page = open_page("small")
    page.search("gsub")
    assert {frame["label"] for frame in page.frames() if frame["hit"]} == {"string.gsub [builtin]"}
    for frame in page.frames():
        opacity = float(page.one("#" + frame["id"] + " rect").value_of_css_property("opacity"))
        assert opacity == 1 if frame["hit"] else opacity < 0.5
    page.press(Keys.ESCAPE)
    page.wait(lambda: page.result() == "")
    assert not any(frame["hit"] for frame in page.frames())


def test_search_goes_from_match_to_match(open_page):
    page = open_page("small")
    page.press("/")
    page.press("gsub", Keys.ENTER)
    first = page.one(".scroll").get_attribute("aria-activedescendant")
    assert page.active() == "string.gsub [builtin]"
    page.press("n")
    second = page.one(".scroll").get_attribute("aria-activedescendant")
    assert page.active() == "string.gsub [builtin]" and second != first
    page.press("n")
    assert page.one(".scroll").get_attribute("aria-activedescendant") == first
    page.press("N")
    assert page.one(".scroll").get_attribute("aria-activedescendant") == second


def test_letters_typed_into_the_search_are_not_commands(open_page):
    page = open_page("small")
    page.search("irn?/")
    assert page.one("input").get_attribute("value") == "irn?/"
    assert page.find("all")[0]["y"] > page.find("main")[0]["y"]


# -- Keyboard --


def test_arrows_move_and_enter_zooms(open_page):
    page = open_page("small")
    page.press(Keys.ARROW_UP)
    assert page.active() == "main chunk test.lua"
    assert page.tip().startswith("main chunk test.lua")
    page.press(Keys.ARROW_UP)
    assert page.active() == "heavy test.lua:5"      # the widest callee
    page.press(Keys.ARROW_RIGHT)
    assert page.active() == "light test.lua:12"
    page.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert page.active() == "lj_BC_ADDVV [vm]"      # nothing further right
    page.press(Keys.ARROW_LEFT, Keys.ENTER)
    assert page.is_zoomed_to("light")
    page.press(Keys.ARROW_DOWN)
    assert page.active() == "main chunk test.lua"
    page.press(Keys.HOME)
    assert page.active() == "light test.lua:12"


def test_focus_is_reachable_and_visible(open_page):
    page = open_page("small")
    stops = []
    for _ in range(4):
        page.press(Keys.TAB)
        stops.append(page.script("return document.activeElement.className || document.activeElement.localName"))
    assert stops == ["input", "button", "button", "scroll"]   # Reset has nothing to do yet
    assert page.one(".ring").value_of_css_property("visibility") == "visible"


def test_help_lists_the_keys(open_page):
    page = open_page("small")
    assert not page.one(".help").is_displayed()
    page.press("?")
    assert "Ctrl-F" in page.one(".help").text
    page.press(Keys.ESCAPE)
    assert not page.one(".help").is_displayed()


def test_root_can_be_on_top(open_page):
    page = open_page("small", "inverted")
    assert page.find("all")[0]["y"] < page.find("main chunk")[0]["y"] < page.find("heavy")[0]["y"]
    page.press("i")
    assert page.find("all")[0]["y"] > page.find("main chunk")[0]["y"]


# -- Sizes --


@pytest.mark.parametrize("width", [400, 1280, 2560])
@pytest.mark.parametrize("name", ["nginx", "hostile"])
def test_text_stays_inside_its_frame(open_page, name, width):
    page = open_page(name, width=width)
    outside = page.script("""
        return Array.from(document.querySelectorAll(".frames .f text"))
            .filter((text) => {
                const box = text.getBoundingClientRect();
                const frame = text.previousSibling.getBoundingClientRect();
                return box.left < frame.left || box.right > frame.right + 1;
            }).map((text) => text.textContent);""")
    assert outside == []
    assert len(page.all(".frames text")) > 10


@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_is_cut_off_by_the_window(open_page, width):
    page = open_page("nginx", width=width)
    page.search("json")
    outside = page.script("""
        return Array.from(document.querySelectorAll(".app *"))
            .filter((element) => !element.closest(".tip, .help") && element.getBoundingClientRect().width > 0)
            .filter((element) => element.getBoundingClientRect().right > innerWidth + 1
                              || element.getBoundingClientRect().left < -1)
            .map((element) => element.outerHTML.slice(0, 200));""")
    assert outside == []
    assert page.one(".scroll").size["height"] > 300
    assert page.hover("main chunk").startswith("main chunk")
    tip = page.one(".tip").rect
    assert tip["x"] >= 0 and tip["x"] + tip["width"] <= width


def test_picture_follows_the_window(open_page):
    page = open_page("small", width=1280)
    page.resize(500, 700)
    page.wait(lambda: page.find("all")[0]["width"] < 500)
    assert page.find("heavy")[0]["width"] == pytest.approx(page.find("all")[0]["width"] * 0.6, abs=1.5)


def test_deep_stacks_scroll_and_start_at_the_root(open_page):
    page = open_page("deep")
    assert page.find("all") and page.find("level0 ")
    assert len(page.frames()) < 200                     # only what is in sight
    page.search("^level4999 ")
    page.press(Keys.ENTER)
    page.wait(lambda: page.find("level4999 "))
    box = page.find("level4999 ")[0]
    assert 0 < box["y"] < 800
    page.press(Keys.ENTER)
    assert page.is_zoomed_to("level4999 ")
    assert page.find("level4998 ")[0]["above"]


def test_narrow_frames_are_drawn_together_and_can_be_found(open_page):
    page = open_page("wide")
    assert page.one("[data-remainder]").text == "50,000 narrow frames"
    assert "7 frames of less than 0.0010 % each are left out" in page.one(".about").text
    assert len(page.frames()) < 10
    page.search("callee00012")
    page.press(Keys.ENTER)
    assert page.tip().startswith("callee00012 wide.lua:13")
    page.press(Keys.ENTER)
    assert page.is_zoomed_to("callee00012")


def test_profile_without_samples_says_so(open_page):
    page = open_page("empty")
    assert "No samples" in page.one(".scroll").text
    page.press(Keys.ARROW_UP, Keys.ENTER, "n", Keys.ESCAPE, "i", "r")


# -- Names nobody would choose --


def test_hostile_names_are_shown_as_text(open_page):
    page = open_page("hostile")
    assert len(page.all("script")) == 1
    labels = "\n".join(page.labels())
    assert "</script><script>document.documentElement.dataset.owned=1</script>" in labels
    assert "]]><script>" in labels
    assert "line one\\nline two\\r\\t\\x01\\x02\\x1b[31m" in labels
    assert "\\xff\\xfe\\xc0\\xaf\\xed\\xa0\\x80" in labels
    assert "\\u202egnp.exe" in labels
    assert "中文函数名字" in labels
    assert "</script><script>" in page.hover("</script><script>")
    assert "onmouseover=" in page.hover("onmouseover=")
    page.search("<script")
    page.press(Keys.ENTER, Keys.ENTER)
    assert len(page.all("script")) == 1
    assert "</title><script>" in page.one(".about").text


def test_huge_names_are_cut(open_page):
    page = open_page("hostile")
    huge = [label for label in page.labels() if label.startswith("HHHH")]
    assert huge and all(len(label) < 1100 and "…" in label for label in huge)
    page.hover("HHHH")
    assert page.one(".tip").size["height"] < 400
