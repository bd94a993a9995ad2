# SPDX-License-Identifier: MIT
"""What the frames of each kind of view say: inverted, of one function, sandwich, lines, and of a comparison.

The truth of "small" is in test_flamegraph.py, that of "compare" in make_flamegraph.c.
"""

import pytest

from selenium.webdriver.common.keys import Keys

from test_address import open_made
from test_drawn import fragment
from test_picture import dispatch


def told(page, label, *lines):
    """Does the card of the lowest frame of that label have these lines?"""
    tip = page.hover(label).replace("\u00a0", " ").split("\n")
    return set(lines) <= set(tip)


def test_inverted_frames_have_the_samples_that_end_in_their_function(open_page):
    page = open_page("small", "inverted")
    assert told(page, "heavy", "total 50.00 % of all 500 ms 50 samples", "compiled 100.00 % of its time", "VM compiled 100.00 %")
    assert told(page, "sqrt", "total 15.00 % of all 150 ms 15 samples", "own time", "VM C 100.00 %", "kind C function")
    assert told(page, "main chunk", "total 5.00 % of all 50 ms 5 samples", "VM recording a trace 100.00 %")
    assert told(page, "[lost", "total 5.00 % of all 50 ms 5 samples", "VM unknown 100.00 %")
    lowest = sorted((frame for frame in page.frames() if (frame["label"] != "all") and abs(frame["y"] - page.find("heavy")[0]["y"]) < 1),
                    key=lambda frame: frame["x"])
    assert [frame["share"] for frame in lowest] == [50, 15, 10, 10, 5, 5, 5]
    page.press("l")
    assert {path[0]: share for path, share in page.shares().items() if len(path) == 1 and "heavy" in path[0]} == {
        "heavy test.lua:6": 20, "heavy test.lua:8": 20, "heavy test.lua:9": 10}
    assert told(page, "heavy test.lua:9", "certainty nearest known line in 100.00 %")


@pytest.mark.parametrize("inverted", [0, 1])
def test_one_function_has_its_own_states_and_samples(open_page, inverted):
    page = open_page("small", address=f"#focus=2&inverted={inverted}")
    assert told(page, "all", "total 100.00 % of all 600 ms 60 samples", "VM compiled 83.33 %, C 16.67 %")
    assert told(page, "heavy", "total 100.00 % of all 600 ms 60 samples", "VM compiled 83.33 %, C 16.67 %", "compiled 83.33 % of its time")
    assert page.find("main chunk") if inverted else told(page, "string.gsub", "total 16.67 % of all 100 ms 10 samples", "VM C 100.00 %")
    if inverted:
        assert told(page, "main chunk", "total 100.00 % of all 600 ms 60 samples", "VM compiled 83.33 %, C 16.67 %")


@pytest.mark.parametrize("address, keys", [("", ""), ("#focus=2&inverted=1", "ri")])
def test_the_root_has_the_states_of_all_samples(open_page, address, keys):
    """Also after a view of some of them."""
    page = open_page("small", address=address)
    dispatch(page, *keys)
    assert told(page, "all", "total 100.00 % of all 1 s 100 samples",
                "VM compiled 50.00 %, C 30.00 %, garbage collection 10.00 %, recording a trace 5.00 %, …")


def test_sandwich_has_samples_and_states_on_both_sides(open_page):
    page = open_page("small", address="#focus=2&sandwich=1")
    [root] = [frame for frame in page.frames() if frame["id"] == "frame0"]
    assert (root["label"], root["share"], root["look"]) == ("heavy test.lua:5", 100, "j")
    assert told(page, "main chunk", "total 100.00 % of all 600 ms 60 samples", "VM compiled 83.33 %, C 16.67 %")
    assert told(page, "string.gsub", "total 16.67 % of all 100 ms 10 samples", "VM C 100.00 %")
    assert page.find("string.gsub")[0]["y"] > root["y"] > page.find("main chunk")[0]["y"]
    page = open_page("small", address="#focus=2&sandwich=1&lines=1")
    [root] = [frame for frame in page.frames() if frame["id"] == "frame0"]
    assert root["label"] == "heavy test.lua:5"
    assert sorted((frame["label"], frame["share"]) for frame in page.frames() if frame["y"] > root["y"]) == [
        ("heavy test.lua:6", 33.33), ("string.gsub [builtin]", 16.67)]
    assert {frame["share"] for frame in page.find("main chunk test.lua:1")} == {100}


def test_only_the_inverted_view_of_everything_tells_own_time(open_page):
    page = open_page("small", address="#focus=3&inverted=1")
    assert "own" not in page.hover("light") and told(page, "main chunk", "total time of light test.lua:12 called this way")
    for inverted in (0, 1):
        page = open_page("small", address=f"#focus=8&sandwich=1&inverted={inverted}")
        assert told(page, "string.gsub", "own 66.67 % of all 100 ms 10 samples")
        assert told(page, "malloc", "own 33.33 % of all 50 ms 5 samples")
        for caller in ("heavy", "main chunk"):
            assert told(page, caller, "total time of string.gsub [builtin] called this way") and "own" not in page.tip()


def test_function_of_a_single_stack_has_all_of_its_callers(open_page):
    page = open_page("small", address="#focus=6&inverted=1")
    assert page.shares() == {
        ("malloc [libc.so.6]",): 100, ("malloc [libc.so.6]", "string.gsub"): 100, ("malloc [libc.so.6]", "string.gsub", "light test.lua:12"): 100,
        ("malloc [libc.so.6]", "string.gsub", "light test.lua:12", "main chunk test.lua"): 100}
    page = open_page("small", address="#focus=6&sandwich=1")
    upwards = sorted(page.frames(), key=lambda frame: frame["y"])
    assert [frame["label"].split(" ")[0] for frame in upwards] == ["main", "light", "string.gsub", "malloc"]
    assert {frame["share"] for frame in upwards} == {100} and told(page, "malloc", "total 100.00 % of all 50 ms 5 samples")


@pytest.mark.parametrize("address, now, before", [
    ("", {"slower": 40, "faster": 10, "same": 30, "chance": 10.4, "fresh": 9.6}, {"slower": 20, "faster": 30, "same": 30, "chance": 10, "gone": 10}),
    ("#inverted=1", {"slower": 40, "faster": 10, "same": 30, "chance": 10.4, "fresh": 9.6},
     {"slower": 20, "faster": 30, "same": 30, "chance": 10, "gone": 10}),
    ("#sandwich=1&focus=5", {"slower": 40, "faster": 10, "same": 30, "chance": 10.4, "fresh": 9.6},
     {"slower": 20, "faster": 30, "same": 30, "chance": 10, "gone": 10}),
    ("#focus=7", {"slower": 100}, {"slower": 100}),
    ("#focus=7&inverted=1", {"slower": 100}, {"slower": 100}),
])
def test_each_view_of_a_comparison_has_both_sides(open_page, address, now, before):
    page = open_page("compare", address=address)

    def shares():
        return {frame["label"].split()[0]: frame["share"] for frame in page.frames() if frame["label"].split()[0] not in ("all", "main")}

    assert shares() == now
    assert told(page, "slower", "total 40.00 % of all 4 s 400 samples" if len(now) > 1 else "total 100.00 % of all 4 s 400 samples")
    page.press("b")
    assert shares() == before
    assert told(page, "slower", "total 20.00 % of all 2 s 200 samples" if len(now) > 1 else "total 100.00 % of all 2 s 200 samples")


def test_function_without_samples_on_one_side_has_them_on_the_other(open_page):
    page = open_page("compare", address="#focus=4")
    assert page.find("gone") == [] and page.one(".scroll").text == "No such samples"
    page.press("b")
    assert page.find("gone")[0]["share"] == 100


def test_list_of_functions_follows_the_side_of_a_comparison(open_page):
    page = open_page("compare", address="#list=1")

    def rows():
        return [" ".join(row.text.split()) for row in page.all("[aria-label='Hottest functions'] tbody tr")]

    assert rows()[:2] == ["40 % 40 % slower test.lua:1", "30 % 30 % same test.lua:21"] and not any("gone" in row for row in rows())
    page.press("b")
    assert "10 % 10 % gone test.lua:51" in rows() and not any("fresh" in row for row in rows()) and "20 % 20 % slower test.lua:1" in rows()


def test_source_view_leaves_the_flame_graph_as_it_was_at_first(open_page):
    page = open_page("small", "page", "source", address="#source=0")
    dispatch(page, "v")
    assert page.one(".source").is_displayed()
    dispatch(page, "v")
    assert page.one(".graph").is_displayed() and page.is_zoomed_to("all") and "zoom" not in fragment(page)


# -- What is too small, too alike, nested --


def test_inverted_view_has_the_callers_of_what_is_not_too_small(open_made):
    """One part in 100,000 is too small; on either side of a comparison is enough."""
    functions = ["a all", "l one", "l two", "l rest", "l caller"]
    lines = [f"{k} {name[2:]}" for k, name in enumerate(functions)]
    page = open_made("small", "#inverted=1", functions=functions, lines=lines, frames=["0 0", "1 4", "2 1 0 1 0 i1", "2 2 0 2 0 i2", "2 3 0 99997 0 i99997"])
    shares = {}
    for zoom in range(1, 6):
        page.browser.get(page.browser.current_url.split("#")[0] + f"#inverted=1&zoom={zoom}")
        page.wait(lambda zoom=zoom: fragment(page).get("zoom") == str(zoom))
        shares[zoom] = {frame["label"] for frame in page.frames() if not frame["above"]}
    assert {"rest", "caller"} in shares.values() and {"two", "caller"} in shares.values() and {"one"} in shares.values()
    sides = {side: open_made("compare", f"#inverted=1&side={side}", functions=functions, lines=lines, frames=["0 0", "1 4", "2 1 0 100 0 i100", "2 3 0 100 0 i100"],
                             baseline=["0 0", "1 4", "2 2 0 100 0 i100", "2 3 0 100 0 i100"]).shares() for side in (0, 1)}
    assert sides[0] == {("one",): 50, ("one", "caller"): 50, ("rest",): 50, ("rest", "caller"): 50}
    assert sides[1] == {("two",): 50, ("two", "caller"): 50, ("rest",): 50, ("rest", "caller"): 50}


@pytest.mark.parametrize("before, is_folded", [(["1 1", "2 2", "3 3", "4 4 0 7 0 i7"], True), (["1 1", "2 2 0 2 0 n2", "3 3", "4 4 0 5 0 i5"], False),
                                               (["1 1", "2 2", "3 5 0 7 0 n7"], False)])
def test_frames_are_folded_if_both_sides_share_them(open_made, before, is_folded):
    functions = ["a all", "n n1", "n n2", "n n3", "l lua", "l other"]
    page = open_made("compare", functions=functions, lines=[f"{k} {name[2:]}" for k, name in enumerate(functions)],
                     frames=["0 0", "1 1", "2 2", "3 3", "4 4 0 9 0 i9"], baseline=["0 0", *before])
    assert page.labels() == ({"all", "n1 … n3 (3 frames)", "lua"} if is_folded else {"all", "n1", "n2", "n3", "lua"})


@pytest.mark.parametrize("zoomed, text, told", [
    ("main chunk", "lost", "5.00 % of all, 0.00 % of this view"), ("main chunk", "ADDVV", "10.00 % of all, 10.53 % of this view"),
    ("main chunk", "heavy", "60.00 % of all, 63.16 % of this view"), ("light", "sqrt", "15.00 % of all, 75.00 % of this view"),
    ("light", "gsub|malloc", "15.00 % of all, 25.00 % of this view"), ("light", "light", "20.00 % of all, 100.00 % of this view")])
def test_search_counts_each_match_of_the_view_once(open_page, zoomed, text, told):
    page = open_page("small")
    page.click(zoomed)
    page.wait(lambda: page.is_zoomed_to(zoomed))
    page.search(text)
    assert page.result().replace("\u00a0", " ") == "Matched " + told
    page.press(Keys.ESCAPE, Keys.ESCAPE)
    page.wait(lambda: page.is_zoomed_to("all"))
    assert told_everywhere(page) == {"heavy": None, "string.gsub": "15.00 % of all 150 ms", "sqrt": None}


def told_everywhere(page):
    """What cards say of all calls of a function, if there are others."""
    cards = {label: page.hover(label).replace("\u00a0", " ").split("\n") for label in ("heavy", "string.gsub", "sqrt")}
    return {label: next((line.removeprefix("everywhere ") for line in lines if line.startswith("everywhere")), None) for label, lines in cards.items()}


def test_change_of_a_share_has_its_sign(open_made):
    functions = ["a all", "l more", "l less", "l same"]
    page = open_made("compare", functions=functions, lines=[f"{k} {name[2:]}" for k, name in enumerate(functions)],
                     frames=["0 0", "1 1 0 500 0 i500", "1 2 0 200 0 i200", "1 3 0 300 0 i300"],
                     baseline=["0 0", "1 1 0 200 0 i200", "1 2 0 500 0 i500", "1 3 0 300 0 i300"])
    assert told(page, "more", "change 20.00 % before, 50.00 % now (+30.00 points)")
    assert told(page, "less", "change 50.00 % before, 20.00 % now (-30.00 points)")
    assert told(page, "same", "change 30.00 % before, 30.00 % now (0.00 points, no clear change)")
