# SPDX-License-Identifier: MIT
"""Time order, sandwich, processes, threads and phases, labels and folded frames of the flame graph.

The truth of "worker" (tests/browser/make_flamegraph.c): of each 10 samples of 10 ms, 3 are in the
handler of rate-limiting (phase access), 2 in that of rate-limiting-advanced (access), 4 in render
(content), 1 in tick (no phase), in this order. pid 100 and pid 101 have 400 such samples each; tid
102 of pid 101 has 40, all in the handler of rate-limiting. In "waits", heavy and light by turns run
for 20 ms and wait for a CPU for 80 ms.
"""

import pytest

from selenium.webdriver.common.keys import Keys

BASE = 12  # native frames at the bottom


def texts(page):
    """The texts that stand in frames."""
    return page.script("return Array.from(document.querySelectorAll('.frames .f text'), (text) => text.textContent);")


def share(page, label):
    return page.find(label)[0]["share"]


def choose(page, key, value):
    page.script("""
        const chooser = document.querySelector("[data-choose=" + arguments[0] + "]");
        chooser.value = arguments[1];
        chooser.dispatchEvent(new Event("change"));""", key, value)


# -- Labels --


@pytest.mark.parametrize("width, wanted", [
    (2000, {"handler kong/plugins/rate-limiting/handler.lua:12", "handler …/rate-limiting-advanced/handler.lua:12"}),
    (1000, {"handler …/rate-limiting/handler.lua:12", "handler …/handler.lua:12"}),
    (700, {"handler …/handler.lua:12", "handler ….lua:12"}),
])
def test_labels_have_the_name_and_the_end_of_the_file(open_page, width, wanted):
    page = open_page("worker", width=width, address="#list=0")
    assert {text for text in texts(page) if text.startswith("handler")} == wanted


def test_picture_without_scripts_shortens_labels_as_well(make_flamegraph):
    source = make_flamegraph("worker").read_text(encoding="utf-8").split("<metadata")[0]
    assert ">handler kong/plugins/rate-limiting/handler.lua:12</text>" in source
    assert ">handler …/handler.lua:12</text>" in source
    assert "handler /usr/local/share/lua/5.1/kong/plugins/rate-limiting/handler.lua:12\n" in source


def test_whole_label_is_told_and_can_be_searched(open_page):
    page = open_page("worker")
    assert page.hover("rate-limiting/").startswith("handler /usr/local/share/lua/5.1/kong/plugins/rate-limiting/handler.lua:12")
    page.search("share/lua/5.1/kong/plugins/rate-limiting/")
    assert page.result() == "Matched %.2f %%" % (100 * 280 / 840)


# -- Folded frames --


def test_frames_that_all_samples_share_are_one_row_which_opens(open_page):
    page = open_page("worker")
    natives = [label for label in page.labels() if "[nginx]" in label]
    assert natives == [f"_start [nginx] … ngx_http_core_run_phases [nginx] ({BASE} frames)"]
    folded = page.find("_start")[0]
    assert share(page, "_start") == 100 and page.find("all")[0]["y"] - folded["y"] == page.find("main chunk")[0]["height"] + 1
    page.press(Keys.ARROW_UP, Keys.ARROW_UP)
    assert page.active() == "main chunk /opt/site/lua/init.lua"
    page.press(Keys.ARROW_DOWN)
    assert page.active().startswith("_start")
    page.click("_start")
    page.wait(lambda: len([label for label in page.labels() if "[nginx]" in label]) == BASE)
    page.press("e")
    page.wait(lambda: len([label for label in page.labels() if "[nginx]" in label]) == 1)
    page.search("ngx_spawn")
    assert page.find("_start")[0]["hit"] and page.result() == "Matched 100.00 %"


def test_frames_with_siblings_or_own_time_are_not_folded(open_page):
    assert "main [nginx]" in open_page("nginx").labels()


# -- Process, thread, phase --


@pytest.mark.every_browser
def test_process_thread_and_phase_can_be_chosen(open_page):
    page = open_page("worker")
    assert share(page, "render") == pytest.approx(100 * 320 / 840, abs=0.01)
    choose(page, "process", "100")
    assert share(page, "render") == 40 and "400 samples" in page.hover("all")
    choose(page, "process", "")
    choose(page, "thread", "102")
    assert page.find("render") == [] and "40 samples" in page.hover("all")
    choose(page, "thread", "")
    choose(page, "phase", "access")
    assert "440 samples" in page.hover("all")
    assert share(page, "rate-limiting-advanced") == pytest.approx(100 * 160 / 440, abs=0.01)
    page.browser.refresh()
    assert "440 samples" in page.hover("all")
    choose(page, "phase", "no phase")
    assert share(page, "tick") == 100
    page.choose("Reset")
    assert "840 samples" in page.hover("all")


def test_a_choice_without_samples_can_be_undone(open_page):
    page = open_page("worker", address="#process=100&thread=102")
    assert page.frames() == [] and page.one(".scroll").text == "No such samples"
    page.choose("Reset")
    assert "840 samples" in page.hover("all")
    choose(page, "process", "100")
    choose(page, "thread", "102")
    assert page.one(".scroll").text == "No such samples"
    page.browser.refresh()
    assert page.one(".scroll").text == "No such samples"
    choose(page, "process", "")
    assert "40 samples" in page.hover("all")


def test_names_of_threads_are_shown_as_text(open_page):
    page = open_page("worker")
    options = [option.text for option in page.all("[data-choose=thread] option")]
    assert options == ["all threads", "nginx (tid 100)", "nginx (tid 101)", "<b>pool\\t&amp; (tid 102)"]


def test_what_is_but_one_is_no_choice(open_page):
    assert open_page("stall").all("[data-choose]") == []


def test_many_samples_have_no_times_but_can_be_chosen(open_page):
    page = open_page("many")
    assert page.all("button[data-key=o]") == [] and "126,000 samples" in page.hover("all")
    choose(page, "phase", "content")
    assert "48,000 samples" in page.hover("all") and share(page, "render") == 100


# -- Time order --


def spans(page):
    """The drawn frames above main chunk in time order: the name, and where it begins and ends, of 1."""
    whole = page.find("all")[0]
    top = page.find("main chunk")[0]["y"] - whole["height"] - 1
    return [(frame["label"].split()[0], round((frame["x"] - whole["x"]) / whole["width"], 2),
             round((frame["x"] + frame["width"] + 1 - whole["x"]) / whole["width"], 2))
            for frame in sorted(page.frames(), key=lambda frame: frame["x"]) if abs(frame["y"] - top) < 2]


def test_time_order_shows_what_ran_when(open_page):
    page = open_page("worker", address="#from=1000000&to=1100000")
    page.press("o")
    assert spans(page) == [("handler", 0, 0.3), ("handler", 0.3, 0.5), ("render", 0.5, 0.9), ("tick", 0.9, 1)]
    tip = page.hover("render")
    assert "when 1.05s to 1.09s" in tip and "40 ms 4 samples" in tip
    assert "400 samples" in page.hover("all")           # one thread
    choose(page, "thread", "102")
    assert {name for name, _, _ in spans(page)} == {"handler"}


def test_time_order_leaves_out_time_without_samples(open_page):
    page = open_page("stall", address="#from=6900000&to=8100000&ordered=1")
    chunks = sorted(page.find("main chunk"), key=lambda frame: frame["x"])
    whole = page.find("all")[0]
    gap = [(chunks[0]["x"] + chunks[0]["width"] - whole["x"]) / whole["width"], (chunks[1]["x"] - whole["x"]) / whole["width"]]
    assert len(chunks) == 2
    assert gap == [pytest.approx((7.005 - 6.9) / 1.2, abs=0.01), pytest.approx((7.995 - 6.9) / 1.2, abs=0.01)]


def test_time_order_shows_waits_for_a_cpu_beside_what_ran(open_page):
    page = open_page("waits", address="#ordered=1")
    assert spans(page) == [(("heavy", "light")[i % 2], i / 10, (i + 1) / 10) for i in range(10)]
    assert "when 0s to 0.1s" in page.hover("heavy") and "100 ms" in page.hover("heavy")
    page = open_page("waits", address="#ordered=1&from=500000&to=700000")
    assert spans(page) == [("light", 0, 0.5), ("heavy", 0.5, 1)]


@pytest.mark.every_browser
def test_time_order_zooms_to_the_millisecond_and_back(open_page):
    page = open_page("worker", address="#ordered=1")
    page.press(Keys.HOME)
    for _ in range(12):
        page.press("+")
    first, last = page.script("const parts = new URLSearchParams(location.hash.slice(1)); return [+parts.get('from'), +parts.get('to')];")
    assert last - first == pytest.approx(4e6 / 4096, abs=2)
    page.press_with_shift(Keys.ARROW_RIGHT)
    assert page.script("return new URLSearchParams(location.hash.slice(1)).get('from') - arguments[0]", first) > 0
    for _ in range(12):
        page.press("-")
    assert "from" not in page.script("return location.hash")
    page.script("""document.querySelector(".scroll").dispatchEvent(
        new WheelEvent("wheel", { deltaY: -500, ctrlKey: true, clientX: 600, clientY: 400, bubbles: true, cancelable: true }));""")
    assert "from" in page.script("return location.hash")
    page.press("-", "-")
    page.click("main chunk")                            # a click zooms to the frame's time
    page.press("o")
    assert page.find("_start")


def test_minimap_shows_where_the_view_is_and_leads_elsewhere(open_page):
    page = open_page("small")
    assert not page.one(".minimap").is_displayed()
    page.click("light")
    assert page.one(".minimap").is_displayed()
    box = page.one(".minimap").rect
    page.actions().move_to_element_with_offset(page.one(".minimap"), -int(box["width"] / 2) + 200, 9).click().perform()
    page.wait(lambda: page.is_zoomed_to("heavy"))       # heavy is at the left
    page = open_page("worker", address="#ordered=1")
    box = page.one(".minimap").rect
    chain = page.actions().move_to_element_with_offset(page.one(".minimap"), -int(box["width"] / 4), 0)
    chain.click_and_hold().move_by_offset(int(box["width"] / 2), 0).release().perform()
    first, last = page.script("const parts = new URLSearchParams(location.hash.slice(1)); return [+parts.get('from'), +parts.get('to')];")
    assert first == pytest.approx(1e6, abs=2e4) and last == pytest.approx(3e6, abs=2e4)


# -- Sandwich, list --


@pytest.mark.every_browser
def test_sandwich_has_callers_above_and_callees_below(open_page):
    page = open_page("small")
    page.menu("string.gsub")
    page.choose("Callers and callees")
    shown = {frame["label"]: frame for frame in page.frames()}
    middle = shown["string.gsub [builtin]"]
    assert middle["share"] == 100 and "15 samples" in page.hover("string.gsub")
    assert shown["heavy test.lua:5"]["share"] == 66.67 and shown["light test.lua:12"]["share"] == 33.33
    assert shown["malloc [libc.so.6]"]["share"] == 33.33
    assert page.find("main chunk")[0]["y"] < shown["heavy test.lua:5"]["y"] < middle["y"] < shown["malloc [libc.so.6]"]["y"]
    page.press(Keys.ARROW_UP)
    assert page.active() == "heavy test.lua:5"
    page.press(Keys.ARROW_UP)
    assert page.active() == "main chunk test.lua"
    page.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    assert page.active() == "malloc [libc.so.6]"
    page.click("light")                                 # a click puts another function into the middle
    page.wait(lambda: page.find("sqrt"))
    assert page.find("light")[0]["share"] == 100 and page.find("sqrt")[0]["share"] == 75
    page.press("s")
    assert page.find("all")


@pytest.mark.parametrize("text, share", [
    ("main chunk|malloc", "100.00 %"),                  # above and below
    ("light|malloc", "33.33 %"),                        # where it calls malloc, light calls it
    ("light", "33.33 %"),
    ("gsub", "100.00 %"),
    ("sqrt", "0.00 %"),                                 # only in other stacks
])
def test_search_in_a_sandwich_counts_each_stack_once(open_page, text, share):
    page = open_page("small")
    page.menu("string.gsub")
    page.choose("Callers and callees")
    page.search(text)
    assert page.result() == "Matched " + share


def test_sandwich_of_recursion_counts_it_once(open_page):
    page = open_page("small")
    page.press("s")                                     # the hottest: heavy
    assert "60 samples" in page.hover("heavy")
    assert [frame["share"] for frame in sorted(page.find("heavy"), key=lambda frame: frame["y"])] == [100, 33.33]


@pytest.mark.every_browser
def test_list_has_the_hottest_functions(open_page):
    page = open_page("small", width=1280)
    page.press("h")
    rows = [" ".join(row.text.split()) for row in page.all(".hottest tbody tr")]
    assert rows[0] == "50 % 60 % heavy test.lua:5"      # nested calls count once
    assert rows[1] == "15 % 15 % sqrt [libm.so.6]"
    page.choose("total")
    rows = [" ".join(row.text.split()) for row in page.all(".hottest tbody tr")]
    assert rows[:2] == ["5.0 % 95 % main chunk test.lua", "50 % 60 % heavy test.lua:5"]
    page.all(".hottest tbody button")[1].click()
    assert page.find("heavy")[0]["share"] == 100 and page.find("string.gsub")
    page.choose("own")
    page.press("h")
    assert not page.one(".hottest").is_displayed()


# -- Room --


@pytest.mark.parametrize("width, height", [(1024, 657), (390, 657), (390, 844)])
def test_frames_have_most_of_the_window(open_page, width, height):
    page = open_page("worker", "page", "heatmap", width=width, height=height, mobile=width < 500)
    assert page.one(".cells").is_displayed()
    assert page.one(".main").rect["y"] < height / 3
    assert page.one(".scroll").rect["height"] > height / 2


@pytest.mark.parametrize("width", [390, 1280])
def test_first_scroll_ends_at_the_end(open_page, width):
    page = open_page("deep", "page", width=width)
    rest = page.script("const s = document.querySelector('.scroll'); return s.scrollHeight - s.clientHeight - s.scrollTop;")
    assert abs(rest) < 1


# -- Allocations --


def test_allocations_are_bytes_of_samples(open_page):
    page = open_page("alloc")
    assert "allocated 100 %" in page.legend()
    assert page.find("[alloc: table]")[0]["look"] == "m"
    tip = page.hover("[alloc: string]")
    assert "total 20.00 % of all 20 MB 20 samples" in tip
    assert "of its time" not in page.hover("rows test.lua:5")


def test_the_list_counts_what_was_allocated_as_its_allocators_own(open_page):
    page = open_page("alloc", address="#list=1")
    rows = [" ".join(row.text.split()) for row in page.all(".hottest tbody tr")]
    assert rows[:3] == ["70 % 90 % rows test.lua:5", "20 % 20 % table.concat [builtin]", "10 % 100 % main chunk test.lua"]
    assert "0 70 % [alloc: table]" in rows


def test_allocations_have_a_heat_map_and_no_order_of_time(open_page):
    page = open_page("alloc", address="#ordered=1")
    assert page.all("button[data-key=o]") == []
    assert page.find("rows")[0]["share"] == pytest.approx(90, abs=0.01)
    page.press("o")
    assert page.find("rows")[0]["share"] == pytest.approx(90, abs=0.01)
    assert "up to 1 MB in each 2 ms; drag" in page.one(".scale").text
    page.drag_time(0.11, 0.51)
    assert "MB" in page.hover("rows")
