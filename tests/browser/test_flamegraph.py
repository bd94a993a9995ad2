# SPDX-License-Identifier: MIT
"""Use the flame graph as readers do.

The shares in "small" (tests/browser/make_flamegraph.c) are round. Of 100 samples: main
chunk 95 (own 5), heavy 60 (including nested heavy 20, gsub 10, own 20 in line 8 and 10
in line 9), light 20 (sqrt 15, gsub 5 with malloc in it), lj_BC_ADDVV 10, lost 5. The
source lists the shares of "compare". "stall" lasts 10 seconds: heavy and light
alternate every 10 ms, but os.execute runs from 4.2 to 4.7 s, and nothing from 7.01 to
8 s.
"""

import json
import re
import signal
import subprocess
import xml.etree.ElementTree

import ljspy
import pytest

from selenium.webdriver.common.keys import Keys

PROFILES = ["small", "compare", "nginx", "hostile", "deep", "wide", "empty", "stall"]
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
    assert not any(element.get("class") == "live" for element in tree.iter())

    page = tmp_path / "page.html"
    page.write_text('<img src="%s">' % make_flamegraph("small").as_uri())
    browser.get(page.as_uri())
    assert browser.execute_script("return document.images[0].naturalWidth") == 1200


@pytest.mark.parametrize("name", ["small", "worker"])
def test_picture_can_be_read_where_styles_and_scripts_are_forbidden(make_flamegraph, browser, tmp_path, name):
    """As by Jenkins, which shows files with style-src 'self'."""
    looks = []
    for kept in ("style", "neither"):
        page = tmp_path / (kept + ".svg")
        page.write_text(re.sub(r"<(?!%s)(script|style)>.*?</\1>" % kept, "", make_flamegraph(name).read_text(encoding="utf-8"), flags=re.DOTALL),
                        encoding="utf-8")
        browser.get(page.as_uri())
        looks.append(browser.execute_script("""
            const look = (element) => [getComputedStyle(element).fill !== "none", getComputedStyle(element).stroke !== "none"];
            const of = (selector) => Array.from(document.querySelectorAll("#static " + selector), look);
            const room = (text) => text.parentNode.querySelector("rect").getBBox().width - text.getBBox().width;
            return [of("text"), of("g.f rect, .f:not(g)"), Array.from(document.querySelectorAll("#static g.f text"), room)];"""))
    for (texts, shapes, room), (is_filled, is_outlined) in zip(looks, [(True, False), (False, True)]):
        assert len(texts) > 8 and len(shapes) > 8 and len(room) > 3
        assert all(text == [is_filled, is_outlined] for text in texts) and min(room) >= 0
        assert all(shape[0] == is_filled for shape in shapes) and sum(shape[1] == is_outlined for shape in shapes) >= len(shapes) - 2


@pytest.mark.parametrize("options", [("small",), ("small", "inverted"), ("small", "lines"),
                                     ("small", "inverted", "lines"), ("compare",), ("compare", "inverted")])
def test_static_and_scripted_picture_agree(make_flamegraph, open_page, options):
    tree = xml.etree.ElementTree.parse(make_flamegraph(*options))
    static = next(group for group in tree.iter(SVG + "g") if group.get("id") == "static")
    shown = []
    for group in static.iter(SVG + "g"):
        title = group.find(SVG + "title")
        if title is not None:
            box = group.find(SVG + "rect")
            shown.append((float(box.get("y")), float(box.get("x")), title.text.split("\n")[0], group.get("class")[-1]))
    page = open_page(*options, address="#flipped=1" if "inverted" in options else "")
    drawn = page.frames()
    whole = [frame for frame in drawn if frame["label"] == "all"][0]
    drawn.sort(key=lambda frame: (frame["y"], frame["x"]))
    assert len(shown) == len(drawn)
    for (y, x, label, look), frame in zip(sorted(shown), drawn):
        if label != "all":
            assert (label, look) == (frame["label"], frame["look"])
        assert (x - 12) / 1176 == pytest.approx((frame["x"] - whole["x"]) / whole["width"], abs=0.002)


@pytest.mark.every_browser
def test_page_shows_the_same_picture(open_page):
    shapes = []
    for options in ((), ("page",)):
        page = open_page("small", *options)
        shapes.append([(frame["label"], frame["look"], frame["x"], frame["y"], frame["width"]) for frame in page.frames()])
        page.click("light")
        page.search("gsub")
        assert page.result() == "Matched 15.00 % of all, 25.00 % of this view"
    assert shapes[0] == shapes[1]
    assert page.script("return document.compatMode") == "CSS1Compat"
    assert page.browser.title == "CPU time of luajit test.lua (pid 4242)"


def test_page_is_as_wide_as_a_phone(open_page):
    page = open_page("nginx", "page", width=400, height=800, mobile=True)
    assert page.script("return innerWidth") == 400
    assert page.script("return document.documentElement.scrollHeight") == 800


# -- Reading --


@pytest.mark.every_browser
@pytest.mark.parametrize("view", ["", "#source=1"])
def test_page_follows_the_width_of_the_window(open_page, view):
    page = open_page("small", "page", "source", address=view)
    for width, is_small in ((1280, False), (640, True), (641, False), (390, True), (1280, False)):
        page.resize(width, 800)
        page.wait(lambda: page.one(".menu").is_displayed() == is_small and page.one(".tools").is_displayed() != is_small)


def test_browsers_without_container_queries_know_a_phone(make_flamegraph):
    assert "@container" not in make_flamegraph("small").read_text(encoding="utf-8")


def test_header_tells_what_was_recorded_and_what_was_lost(open_page):
    page = open_page("small")
    assert page.one(".about").text.startswith("CPU time of luajit test.lua (pid 4242)")
    about = page.about()
    assert "$ ljspy record -p 4242 -d 30s -o profile.svg" in about
    assert "30.0 s, 100 samples, 99.8 Hz reached of 100 asked" in about
    assert "2 ticks missed, 5 samples lost (5.00 %): frame chain broken 5" in about
    assert "paused p50 12." in about and "max 137." in about
    assert "lines 94.0 % exact, 5.0 % nearest known, 1.0 % unknown" in about
    assert page.browser.title == "CPU time of luajit test.lua (pid 4242)"


@pytest.mark.every_browser
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


@pytest.mark.parametrize("width", [400, 1280])
def test_header_folds_to_what_matters(open_page, width):
    page = open_page("small", width=width)
    assert "100 samples" in page.one(".about").text
    assert "ticks missed" not in page.one(".about").text
    page.one(".about summary").click()
    assert "ticks missed" in page.one(".about").text


def test_legend_names_the_kinds_that_occur_and_their_own_shares(open_page):
    page = open_page("small")
    assert page.legend() == ["Lua, interpreted 5.0 %", "Lua, compiled 50 %", "builtin 10 %", "C function 15 %",
                             "native 5.0 %", "VM 10 %", "lost 5.0 %"]
    assert page.find("heavy")[0]["look"] == "j"
    assert page.find("light")[0]["look"] == "l"


def test_short_times_are_in_short_units(open_page):
    page = open_page("brief")
    assert "2.5 \u00b5s 1 sample" in page.hover("microseconds brief.lua:1")
    assert "999 ns 1 sample" in page.hover("nanoseconds brief.lua:2")
    assert "3.5 \u00b5s 2 samples" in page.hover("all")


@pytest.mark.every_browser
def test_hover_tells_the_label_and_the_shares(open_page):
    page = open_page("small")
    tip = page.hover("heavy")
    assert tip.startswith("heavy test.lua:5")
    assert "total 60.00 % of all 600 ms 60 samples" in tip
    assert "own 30.00 % of all 300 ms 30 samples" in tip
    assert "compiled 83.33 % of its time" in tip
    assert "VM compiled 83.33 %, C 16.67 %" in tip
    assert "lines 6: 50.00 %, 8: 33.33 %, 9: 16.67 %" in tip
    assert "certainty nearest known line in 16.67 %" in tip
    assert "everywhere 15.00 % of all" in page.hover("string.gsub")


@pytest.mark.parametrize("width", [400, 1280])
def test_what_is_told_stays_in_the_window(open_page, width):
    page = open_page("nginx", width=width)
    for label in ("all", "main chunk", "lj_BC"):
        page.hover(label)
        card = page.one(".card").rect
        assert card["x"] >= 0 and card["x"] + card["width"] <= width
        assert card["y"] >= 0 and card["y"] + card["height"] <= 800


# -- Colours --


def test_colours_can_tell_the_state_of_the_vm(open_page):
    page = open_page("small")
    page.press("k")
    assert page.legend() == ["compiled 50 %", "C 30 %", "garbage collection 10 %", "compiling 5.0 %",
                             "unknown 5.0 %"]
    assert page.find("heavy")[0]["look"] == "j"
    assert page.find("sqrt")[0]["look"] == "c"
    assert page.find("lj_BC")[0]["look"] == "g"
    strip = page.script("""
        return Array.from(document.querySelectorAll("#frame0 .part"), (part) => [
            part.classList[1], Math.round(100 * part.getBBox().width / part.parentNode.getBBox().width)]);""")
    assert strip[:3] == [["j", 50], ["c", 30], ["g", 10]]
    assert sorted(strip[3:]) == [["k", 5], ["u", 5]]
    assert "VM recording a trace" not in page.hover("heavy")
    assert "recording a trace" in page.hover("main chunk")
    page.press("k")
    assert page.legend()[0] == "Lua, interpreted 5.0 %"


def test_colours_can_be_chosen_from_a_list(open_page):
    page = open_page("small")
    options = page.all("select option")
    assert [option.text for option in options] == ["Colour: kind", "Colour: VM state"]
    options[1].click()
    assert page.find("lj_BC")[0]["look"] == "g"


def test_letters_typed_on_a_list_are_no_commands(open_page):
    page = open_page("small")
    pressed = page.one("button[data-key=i]").get_attribute("aria-pressed")
    page.script("document.querySelector('select').focus()")
    page.press("i")
    assert page.one("button[data-key=i]").get_attribute("aria-pressed") == pressed
    page.press(Keys.ESCAPE, "i")
    assert page.one("button[data-key=i]").get_attribute("aria-pressed") != pressed


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name, colour", [("nginx", "kind"), ("nginx", "state"), ("compare", "change")])
def test_text_can_be_read_on_every_colour(open_page, name, colour, scheme):
    page = open_page(name, scheme=scheme, address="#colour=" + colour)
    pairs = page.script("""
        return Array.from(document.querySelectorAll(".frames .f:not(.x) > text"), (text) =>
            [getComputedStyle(text).fill, getComputedStyle(text.parentNode.firstChild).fill]);""")
    assert len({fill for _, fill in pairs}) >= 2
    assert all(contrast(text, fill) >= 4.5 for text, fill in pairs)
    style = page.script("""
        return Array.from(document.querySelectorAll(".about p, .legend span, .tools button:enabled"), (element) => [
            getComputedStyle(element).color, getComputedStyle(document.querySelector(".app")).backgroundColor]);""")
    assert all(contrast(ink, paper) >= 4.5 for ink, paper in style)


def contrast(one, other):
    """The contrast of two colours, as the accessibility guidelines (WCAG 2) define it."""
    def luminance(colour):
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def paper(page):
    return page.one(".app").value_of_css_property("background-color")


@pytest.mark.every_browser
def test_colours_follow_the_preferred_scheme(open_page):
    light = paper(open_page("small"))
    assert paper(open_page("small", scheme="dark")) != light


@pytest.mark.every_browser
def test_dark_and_light_can_be_chosen_and_are_kept(open_page):
    page = open_page("small")
    light = paper(page)
    page.press("d")
    dark = paper(page)
    assert dark != light
    page = open_page("small")
    assert paper(page) == dark
    page.choose("Dark")
    assert paper(page) == light
    assert paper(open_page("small", scheme="dark")) == light


# -- Other views --


@pytest.mark.every_browser
def test_inverted_view_merges_callees_and_shows_who_called_them(open_page):
    page = open_page("small")
    page.press("i")
    shares = page.shares()
    assert {path: share for path, share in shares.items() if len(path) == 1} == {
        ("heavy test.lua:5",): 50, ("sqrt [libm.so.6]",): 15, ("string.gsub",): 10, ("lj_BC_ADDVV [vm]",): 10,
        ("malloc [libc.so.6]",): 5, ("main chunk test.lua",): 5, ("[lost: frame chain broken]",): 5}
    assert shares[("heavy test.lua:5", "main chunk test.lua")] == 30
    assert shares[("heavy test.lua:5", "heavy test.lua:5")] == 20
    assert shares[("heavy test.lua:5", "heavy test.lua:5", "main chunk test.lua")] == 20
    assert shares[("malloc [libc.so.6]", "string.gsub", "light test.lua:12")] == 5
    widest = max((frame for frame in page.frames() if frame["label"] != "all"), key=lambda frame: frame["width"])
    assert widest["x"] == page.find("all")[0]["x"]      # the heaviest comes first
    page.search("heavy")
    assert page.result() == "Matched 60.00 %"           # as in the other view


def test_inverted_view_tells_whose_time_it_is(open_page):
    page = open_page("small", "inverted")
    assert "own time" in page.hover("sqrt")
    assert "own time of sqrt [libm.so.6] called this way" in page.hover("light")


def test_line_view_tells_lines_apart(open_page):
    page = open_page("small")
    page.press("l")
    shares = page.shares()
    assert shares[("main chunk test.lua:1", "heavy test.lua:6")] == 30
    assert shares[("main chunk test.lua:1", "heavy test.lua:8")] == 20
    assert shares[("main chunk test.lua:1", "heavy test.lua:9")] == 10
    nearest = page.element("heavy test.lua:9")
    assert nearest.text.startswith("≈ ")
    assert not page.element("heavy test.lua:8").text.startswith("≈")
    tip = page.hover("heavy test.lua:9")
    assert "in heavy test.lua:5" in tip
    assert "nearest known line in 100.00 %" in tip
    page.press("l")
    assert page.find("heavy")[0]["label"] == "heavy test.lua:5"


def test_file_can_ask_for_lines_and_inversion(open_page):
    page = open_page("small", "lines", "inverted")
    assert page.shares()[("heavy test.lua:8", "main chunk test.lua:1")] == 20
    page.press("l", "i")
    assert page.shares()[("main chunk test.lua", "heavy test.lua:5")] == 60


def test_one_function_can_be_looked_at_wherever_it_is_called(open_page):
    page = open_page("small")
    page.menu("string.gsub")
    page.choose("Only this function")
    assert page.shares() == {("string.gsub",): 100, ("string.gsub", "malloc [libc.so.6]"): 33.33}
    page.press("i")
    assert page.shares() == {
        ("string.gsub",): 100,
        ("string.gsub", "heavy test.lua:5"): 66.67, ("string.gsub", "heavy test.lua:5", "main chunk test.lua"): 66.67,
        ("string.gsub", "light test.lua:12"): 33.33, ("string.gsub", "light test.lua:12", "main chunk test.lua"): 33.33}
    page.choose("only string.gsub [builtin]")
    assert ("heavy test.lua:5",) in page.shares()


def test_recursion_counts_once_when_looking_at_one_function(open_page):
    page = open_page("small")
    page.hover("heavy")
    page.press(Keys.ARROW_UP, Keys.ARROW_UP, "f")
    assert page.shares()[("heavy test.lua:5",)] == 100
    assert page.shares()[("heavy test.lua:5", "heavy test.lua:5")] == 33.33
    assert "60 samples" in page.hover("all")
    page.press("f")
    assert "100 samples" in page.hover("all")


@pytest.mark.every_browser
def test_history_leads_back_through_the_views(open_page):
    page = open_page("small")
    before = page.shares()
    page.press("i")
    page.click("sqrt")
    page.press(Keys.ESCAPE)
    page.wait(lambda: page.find("[lost"))
    page.press(Keys.ESCAPE)
    page.wait(lambda: page.shares() == before)


def test_root_can_be_on_top(open_page):
    page = open_page("small")
    page.press("u")
    assert page.find("all")[0]["y"] < page.find("main chunk")[0]["y"] < page.find("heavy")[0]["y"]
    page.press("u")
    assert page.find("all")[0]["y"] > page.find("main chunk")[0]["y"]


# -- Comparison --


def test_comparison_colours_by_change_of_share(open_page):
    page = open_page("compare")
    assert "Compared with before.ljspy, 1000 samples" in page.about()
    assert page.legend() == ["half or less", "less", "no clear change", "more", "double or more"]
    looks = {frame["label"].split()[0]: frame["look"] for frame in page.frames()}
    assert looks == {"all": "a", "main": "s", "slower": "z", "faster": "p", "same": "s", "chance": "s", "fresh": "z"}


def test_comparison_tells_both_shares(open_page):
    page = open_page("compare")
    assert "change 20.00 % before, 40.00 % now (+20.00 points)" in page.hover("slower")
    assert "change 30.00 % before, 10.00 % now (-20.00 points)" in page.hover("faster")
    assert "change 10.00 % before, 10.40 % now (+0.40 points, no clear change)" in page.hover("chance")
    assert "change 0.00 % before, 9.60 % now" in page.hover("fresh")


def test_comparison_can_show_the_widths_of_before(open_page):
    page = open_page("compare")
    assert not page.find("gone") and page.find("fresh")
    page.press("b")
    assert not page.find("fresh")
    assert page.find("gone")[0]["share"] == 10
    assert page.find("faster")[0]["share"] == 30
    assert "10.00 % before, 0.00 % now (-10.00 points)" in page.hover("gone")
    page.press("k")
    assert page.legend()[0].startswith("Lua, interpreted")


# -- Zoom --


@pytest.mark.every_browser
def test_click_zooms_and_dims_the_callers(open_page):
    page = open_page("small")
    page.click("light")
    assert page.is_zoomed_to("light")
    assert page.labels() == {"all", "main chunk test.lua", "light test.lua:12", "sqrt [libm.so.6]",
                             "string.gsub [builtin]", "malloc [libc.so.6]"}
    assert {frame["label"] for frame in page.frames() if frame["above"]} == {"all", "main chunk test.lua"}
    for frame in page.frames():
        opacity = float(page.one("#" + frame["id"]).value_of_css_property("opacity"))
        assert opacity < 1 if frame["above"] else opacity == 1
    assert "75.00 % of this view" in page.hover("sqrt")


@pytest.mark.every_browser
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


@pytest.mark.every_browser
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
    button = page.one("button[data-key=r]")
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
    ("[lost: frame chain broken]", "5.00 %"),   # a name as it stands: as text, though it is one
    ("string.gsub [builtin]", "15.00 %"),
    ("sqrt [LIBM.so.6]", "0.00 %"),
    ("[xyz]qrt", "0.00 %"),
    ("[rst]qrt", "15.00 %"),
    ("lj_bc", "10.00 %"),           # small letters match capitals
    ("LJ_bc", "0.00 %"),            # capitals do not match small letters
    ("nowhere", "0.00 %"),
])
def test_search_tells_the_matched_share(open_page, text, share):
    page = open_page("small")
    page.search(text)
    assert page.result() == "Matched " + share


def test_a_name_is_searched_as_it_stands(open_page):
    page = open_page("small")
    page.menu("string.gsub")
    page.choose("Search it")
    assert page.one("input").get_attribute("value") == "string.gsub [builtin]"
    assert page.result() == "Matched 15.00 %"
    assert {frame["label"] for frame in page.frames() if frame["hit"]} == {"string.gsub [builtin]"}


def test_search_tells_the_share_of_the_view(open_page):
    """Of matches within matches, the outer ones: also below the frame that is zoomed to."""
    page = open_page("small")
    page.click("main chunk")
    page.wait(lambda: page.is_zoomed_to("main chunk"))
    page.search("heavy")
    assert page.result() == "Matched 60.00 % of all, 63.16 % of this view"
    page.press(Keys.ESCAPE)
    page.click("heavy")
    page.wait(lambda: page.is_zoomed_to("heavy"))
    page.search("heavy")
    assert page.result() == "Matched 60.00 % of all, 100.00 % of this view"


@pytest.mark.every_browser
def test_search_highlights_and_escape_ends_it(open_page):
    page = open_page("small")
    page.search("gsub")
    assert {frame["label"] for frame in page.frames() if frame["hit"]} == {"string.gsub [builtin]"}
    for frame in page.frames():
        opacity = float(page.one("#" + frame["id"]).value_of_css_property("opacity"))
        assert opacity == 1 if frame["hit"] else opacity < 0.5
    page.press(Keys.ESCAPE)
    page.wait(lambda: page.result() == "")
    assert not any(frame["hit"] for frame in page.frames())


@pytest.mark.every_browser
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


@pytest.mark.every_browser
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
    for _ in range(11):
        page.press(Keys.TAB)
        stops.append(page.script("return document.activeElement.dataset.key || document.activeElement.className"
                                 " || document.activeElement.localName"))
    # Reset has nothing to do yet.
    assert stops == ["summary", "input", "i", "s", "h", "l", "u", "select", "d", "?", "scroll"]
    assert page.one(".ring").value_of_css_property("visibility") == "visible"


@pytest.mark.parametrize("name", ["compare", "stall"])
def test_help_lists_every_key(open_page, name):
    page = open_page(name)
    assert not page.one(".keys").is_displayed()
    page.press("?")
    listed = page.one(".keys").text
    assert "Ctrl-F" in listed
    for button in page.all("button[data-key]"):
        assert re.search("^" + re.escape(button.get_attribute("data-key")) + " ", listed, re.MULTILINE)
    page.press(Keys.ESCAPE)
    assert not page.one(".keys").is_displayed()


def test_controls_and_frames_have_names_and_roles(open_page):
    page = open_page("small", "page")
    for control in page.all("button, input, select"):
        assert control.accessible_name or not control.is_displayed()
    assert page.one(".scroll").aria_role == "tree"
    frame = page.element("sqrt")
    assert frame.aria_role == "treeitem" and frame.accessible_name == "sqrt [libm.so.6], 15.00\u00a0%"
    page.press("i")
    assert page.one("button[data-key=i]").get_attribute("aria-pressed") == "true"


# -- When --


@pytest.mark.every_browser
def test_heat_map_tells_when_and_how_much(open_page):
    page = open_page("stall")
    assert page.heat(3.51) == page.heat(3.5) != page.heat(7.5)    # busy, idle
    tip = page.hover_time(3.51)
    assert tip.startswith("3.5 to 3.52 s\ntotal 0.22 % of all 20 ms 2 samples")
    assert page.hover_time(7.5).startswith("7.5 to 7.52 s\ntotal 0.00")


@pytest.mark.every_browser
def test_time_that_is_dragged_over_is_what_the_frames_show(open_page):
    page = open_page("stall")
    page.drag_time(4.31, 4.31)
    assert page.labels() == {"all", "main chunk test.lua", "os.execute [builtin]"}
    page.press("w")
    assert page.find("os.execute")[0]["share"] == pytest.approx(100 * 50 / 901, abs=0.01)
    page.drag_time(4.31, 3.91)                          # backwards, and from one second into another
    assert page.find("os.execute")[0]["share"] == pytest.approx(100 * 12 / 42, abs=0.01)
    page.click("main chunk")
    page.press("l")
    assert page.find("main chunk")[0]["share"] == 100
    page.browser.refresh()
    assert page.find("os.execute")[0]["share"] == pytest.approx(100 * 12 / 42, abs=0.01)
    page.drag_time(7.21, 7.61)
    assert page.one(".frames").text == "No samples in this time"
    page.press(Keys.ESCAPE)
    assert page.find("os.execute")[0]["share"] == pytest.approx(100 * 12 / 42, abs=0.01)
    page.press("r")
    assert page.find("os.execute")[0]["share"] == pytest.approx(100 * 50 / 901, abs=0.01)


def test_a_click_with_shift_chooses_the_time_from_the_last_click_on(open_page):
    page = open_page("stall")

    def choose(seconds):
        """The time that such a click chooses, in µs."""
        page.click_time_with_shift(seconds)
        return re.search(r"from=(\d+)&to=(\d+)", page.script("return location.hash")).groups()

    assert choose(4.31) == ("4300000", "4320000")           # there was none
    assert choose(4.51) == ("4300000", "4520000")
    assert choose(3.91) == ("3900000", "4320000")
    page.drag_time(8.51, 8.51)
    assert choose(8.71) == ("8500000", "8720000")


def test_inverted_view_is_whole_again_with_the_whole_time(open_page):
    """Its frames have other numbers than those of a range."""
    page = open_page("stall", "inverted")
    page.drag_time(4.31, 4.31)
    page.click("os.execute")
    assert "zoom=" in page.script("return location.hash") and page.is_zoomed_to("os.execute")
    page.press("w")
    assert page.find("os.execute")[0]["share"] == pytest.approx(100 * 50 / 901, abs=0.01)
    assert page.find("heavy") and page.find("light") and "zoom=" not in page.script("return location.hash")


def test_a_range_has_its_beginning_and_not_its_end(open_page):
    """A sample each 10 ms, 5 ms after the whole ones: os.execute from 4.205 s to 4.695 s."""
    def share(begin_us, end_us):
        page = open_page("stall", address=f"#from={begin_us}&to={end_us}")
        return page.find("os.execute")[0]["share"]

    assert share(4195000, 4215000) == pytest.approx(50, abs=0.01)           # 4.195, 4.205
    assert share(4195000, 4215001) == pytest.approx(100 * 2 / 3, abs=0.01)
    assert share(4195001, 4215000) == 100
    assert share(4685000, 4705000) == pytest.approx(100, abs=0.01)          # 4.685, 4.695
    assert share(4685000, 4705001) == pytest.approx(100 * 2 / 3, abs=0.01)


def test_whole_seconds_are_chosen_on_the_axis(open_page, clipboard):
    page = open_page("stall", "page")
    page.drag_time(4.5, 6.5, axis=True)
    assert page.find("os.execute")[0]["share"] == pytest.approx(100 * 50 / 300, abs=0.01)
    page.press("t")
    page.wait(lambda: page.result() == "Copied the time")
    assert clipboard() == "--since 4s --until 7s"


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """An archive of a busy program: recordings of a second, each with a beginning of its own."""
    if not ljspy.LJSPY.exists():
        pytest.skip(f"{ljspy.LJSPY} is not built")
    directory = tmp_path_factory.mktemp("archive") / "kept"
    with ljspy.busy() as target:
        argv = [ljspy.LJSPY, "record", "-p", target.pid, "--every", "1s", "-r", "199", "-o", directory]
        process = subprocess.Popen([str(argument) for argument in argv], stderr=subprocess.DEVNULL)
        try:
            assert ljspy.wait_until(lambda: len(list(directory.glob("*.ljspy"))) >= 5, seconds=60)
            process.send_signal(signal.SIGINT)
            process.wait(timeout=60)
        finally:
            process.kill()
            process.wait()
    return directory


@pytest.mark.parametrize("is_archive", [True, False])
@pytest.mark.parametrize("begin_us, end_us", [(0, 1234567), (500000, 1500000), (2100001, 2999999)])
def test_time_of_several_recordings_is_copied_by_the_clock(open_page, clipboard, archive, tmp_path, is_archive, begin_us, end_us):
    """The times of the picture count from the first recording, --since 1s from the beginning of each."""
    sources = [archive] if is_archive else sorted(archive.glob("*.ljspy"))
    path = tmp_path / "picture.html"
    assert ljspy.run("report", *sources, "-o", path).returncode == ljspy.OK
    page = open_page("small")
    page.browser.get(path.as_uri() + f"#from={begin_us}&to={end_us}")
    shown = int(re.search(r"([\d,]+) samples?\b", page.hover("all"))[1].replace(",", ""))
    page.press("t")
    page.wait(lambda: page.result() == "Copied the time")
    result = ljspy.run("report", *sources, *clipboard().split(" "), "-f", "json")
    assert result.returncode == ljspy.OK, result.stderr
    assert json.loads(result.stdout)["figures"]["samples"] == shown > 0
    assert ("--since" in clipboard()) == (begin_us > 0)


def test_search_shows_when_something_was_running(open_page):
    page = open_page("stall")
    busy = page.heat(4.31)
    page.search("execute")
    assert page.heat(4.31) == busy
    assert page.heat(3.51) == page.heat(7.5) != busy


def test_keys_choose_a_time(open_page):
    page = open_page("stall")
    page.one(".cells").click()
    page.press("w", Keys.ARROW_UP, Keys.ENTER)
    chosen = page.script("return location.hash")
    assert re.search(r"from=\d+&to=\d+", chosen)
    page.press_with_shift(Keys.ARROW_RIGHT)
    page.wait(lambda: page.script("return location.hash") != chosen)
    first, behind = map(int, re.search(r"from=(\d+)&to=(\d+)", page.script("return location.hash")).groups())
    assert behind - first == 1020000


# -- Copying, touch --


@pytest.fixture
def clipboard(browser):
    """Returns a function that reads the clipboard."""
    browser.allow_clipboard(True)
    yield lambda: browser.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    browser.allow_clipboard(False)


@pytest.mark.every_browser
def test_names_and_stacks_can_be_copied(open_page, clipboard):
    page = open_page("small")
    page.press(Keys.ARROW_UP, Keys.ARROW_UP, Keys.ARROW_UP, "c")
    page.wait(lambda: page.result() == "Copied the name")
    assert clipboard() == "heavy test.lua:5"
    page.menu("malloc")
    page.choose("Copy stack")
    page.wait(lambda: page.result() == "Copied the stack")
    stack = ["main chunk test.lua", "light test.lua:12", "string.gsub [builtin]", "malloc [libc.so.6]"]
    assert clipboard().splitlines() == stack
    page.press("i")                                     # the same from the other end
    page.menu("main chunk test.lua")
    page.press(Keys.ESCAPE)
    page.press("C")
    page.wait(lambda: page.result() == "Copied the stack")
    assert clipboard().splitlines()[0] == "main chunk test.lua"


@pytest.mark.parametrize("inverted", [0, 1])
@pytest.mark.parametrize("focus, label, stack", [
    (6, "main chunk", ["main chunk test.lua", "light test.lua:12", "string.gsub [builtin]", "malloc [libc.so.6]"]),
    (6, "malloc", ["malloc [libc.so.6]"]),
    (3, "malloc", ["light test.lua:12", "string.gsub [builtin]", "malloc [libc.so.6]"]),
])
def test_stacks_of_a_sandwich_begin_with_the_outermost_caller(open_page, clipboard, inverted, focus, label, stack):
    page = open_page("small", address=f"#focus={focus}&sandwich=1&inverted={inverted}")
    page.menu(label)
    page.choose("Copy stack")
    page.wait(lambda: page.result() == "Copied the stack")
    assert clipboard().splitlines() == stack


def test_what_may_not_be_copied_can_be_copied_by_hand(open_page):
    page = open_page("small")
    page.script("navigator.clipboard.writeText = () => Promise.reject(new Error('denied'))")
    page.menu("malloc")
    page.choose("Copy stack")
    page.wait(lambda: page.all("textarea"))
    assert page.script("return getSelection().toString() || document.activeElement.value").splitlines()[0] == "main chunk test.lua"
    page.press(Keys.ESCAPE)
    assert page.tip() is None


@pytest.mark.every_browser
def test_menu_stays_until_it_is_closed(open_page):
    page = open_page("small")
    page.menu("light")
    page.hover("heavy")
    assert page.tip().startswith("light test.lua:12")
    page.choose("Search it")
    assert page.tip() is None
    assert page.result() == "Matched 20.00 %"
    page.menu("sqrt")
    page.press(Keys.ESCAPE)
    assert page.tip() is None
    page.menu("sqrt")
    page.choose("Zoom")
    assert page.is_zoomed_to("sqrt")


@pytest.mark.every_browser
def test_first_tap_tells_and_second_one_zooms(open_page):
    page = open_page("small", "page", width=400, height=700, mobile=True)
    page.tap("light")
    page.wait(page.tip)
    assert page.tip().startswith("light test.lua:12")
    assert page.is_zoomed_to("all")
    card = page.one(".card").rect
    assert card["x"] >= 0 and card["x"] + card["width"] <= 400 and card["y"] + card["height"] <= 701
    page.tap("light")
    page.wait(lambda: page.is_zoomed_to("light"))


# -- Sizes --


@pytest.mark.every_browser
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


@pytest.mark.every_browser
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


@pytest.mark.parametrize("name", ["nginx", "compare", "stall"])
@pytest.mark.parametrize("width", [400, 640, 1280])
def test_nothing_lies_on_something_else(open_page, name, width):
    page = open_page(name, "page", width=width)
    overlaps = page.script("""
        const boxes = Array.from(document.querySelectorAll(".about h1, .about p, input, .tools > *, .legend span"))
            .filter((element) => element.checkVisibility())
            .map((element) => [element.outerHTML.slice(0, 80), element.getBoundingClientRect()])
            .filter(([, box]) => box.width > 0);
        return boxes.flatMap(([one, a], i) => boxes.slice(i + 1)
            .filter(([, b]) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1)
            .map(([other]) => [one, other]));""")
    assert overlaps == []


def test_picture_follows_the_window(open_page):
    page = open_page("small", width=1280)
    page.resize(500, 700)
    page.wait(lambda: page.find("all")[0]["width"] < 500)
    assert page.find("heavy")[0]["width"] == pytest.approx(page.find("all")[0]["width"] * 0.6, abs=1.5)


@pytest.mark.every_browser
def test_deep_stacks_scroll_and_start_at_the_root(open_page):
    page = open_page("deep")
    assert page.find("all") and page.find("level0 ")
    assert len(page.frames()) < 200                     # only visible frames
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
    assert page.one("[data-count]").text == "50,000 narrow frames"
    assert "7 frames of less than 0.0010 % each are left out" in page.about()
    assert len(page.frames()) < 10
    page.search("callee00012")
    page.press(Keys.ENTER)
    assert page.tip().startswith("callee00012 wide.lua:13")
    page.press(Keys.ENTER)
    assert page.is_zoomed_to("callee00012")


def test_number_of_elements_does_not_follow_the_number_of_frames(open_page):
    counts = {}
    for name in ("nginx", "big"):
        page = open_page(name)
        counts[name] = page.script("return document.querySelectorAll('.frames *').length")
        page.press("i")
        counts[name + " inverted"] = page.script("return document.querySelectorAll('.frames *').length")
    assert len(page.script("return document.getElementById('frames').textContent").splitlines()) > 50000
    assert counts["big"] < 2 * counts["nginx"] and max(counts.values()) < 3000


def test_many_frames_are_as_quick_as_few(open_page):
    """Redrawing after a key takes time for the visible frames, not for all."""
    fastest, frames = {}, {}
    for name in ("nginx", "big"):
        page = open_page(name)
        fastest[name], frames[name] = page.script("""
            const times = [];
            for (let i = 0; i < 10; i++) {
                const begin = performance.now();
                document.dispatchEvent(new KeyboardEvent("keydown", { key: "u" }));
                document.querySelector(".frames").getBoundingClientRect();
                times.push(performance.now() - begin);
            }
            return [Math.min(...times), document.getElementById("frames").textContent.split("\\n").length];""")
    assert fastest["big"] / fastest["nginx"] < 2 * frames["big"] / frames["nginx"]


def test_inverted_view_of_deep_stacks(open_page):
    page = open_page("deep", "inverted")
    assert page.find("level4999 ")[0]["share"] == 80
    assert page.find("level2499 ")[0]["share"] == 20
    assert len(page.frames()) < 200


def test_profile_without_samples_says_so(open_page):
    page = open_page("empty")
    assert "No samples" in page.one(".scroll").text
    page.press(Keys.ARROW_UP, Keys.ENTER, "n", Keys.ESCAPE, "i", "r", "l", "k", "f", "u", "d", "d")


# -- Hostile names --


@pytest.mark.every_browser
@pytest.mark.parametrize("options", [(), ("page",), ("lines", "inverted")])
def test_hostile_names_are_shown_as_text(open_page, options):
    page = open_page("hostile", *options)
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
    assert page.one(".card").size["height"] < 400
