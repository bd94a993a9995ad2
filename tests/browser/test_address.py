# SPDX-License-Identifier: MIT
"""What the address of a page leads to, how it stays right, and which samples, frames and colours a view has.

"small": see test_flamegraph.py; "worker": see test_views.py. Some recordings are made here, from another one's page.
"""

import pytest

from selenium.webdriver.common.keys import Keys

from test_drawn import fragment
from test_picture import dispatch

# Go to each address in turn, and tell what it has become after the root went to the top and down again.
VISIT = """
    const [addresses, done] = arguments, kept = [];
    const settled = (address) => new Promise((then) => {
        window.addEventListener("popstate", () => setTimeout(then), { once: true });
        location.hash = address;
    });
    (async () => {
        for (const address of addresses) {
            await settled("#flipped=1&list=" + kept.length);
            await settled(address);
            for (let i = 0; i < 2; i++)
                document.dispatchEvent(new KeyboardEvent("keydown", { key: "u" }));
            kept.push(location.hash.slice(1));
        }
        done(kept);
    })();"""


def visit(page, addresses):
    return page.browser.execute_async_script(VISIT, addresses)


@pytest.mark.parametrize("name, options, kept, dropped", [
    ("small", ("page", "source"),
     ["inverted=1", "lines=1", "flipped=1", "open=1", "map=1", "cpu=0", "list=1", "source=0", "file=0", "line=13", "line=0", "colour=state",
      "focus=0", "focus=8", "zoom=2", "search=gsub", "sandwich=1&focus=2"],
     ["inverted=0", "lines=x", "flipped=2", "colour=change", "colour=x", "side=1", "side=2", "side=-1", "file=1", "file=-2", "line=-1", "line=-2", "line=1.5",
      "focus=10", "focus=-2", "focus=x", "zoom=-1", "zoom=x", "zoom=99", "sandwich=1", "ordered=1", "from=5&to=9", "process=1", "thread=1", "phase=x",
      "x=1"]),
    ("compare", (), ["side=1", "colour=kind", "colour=state"], ["side=0", "side=2", "colour=change", "source=1", "file=0"]),
    ("worker", (),
     ["ordered=1", "from=1&to=2", "to=1", "to=9000000", "from=4000000&to=4000001", "process=100", "thread=102", "phase=access", "phase=no+phase",
      "process=101&thread=102&phase=access", "from=4000001&to=4000002"],
     ["from=1", "from=5&to=5", "from=-1&to=0", "process=102", "thread=99", "phase=log", "process="]),
    ("alloc", (), ["from=5&to=9"], ["ordered=1"]),
])
def test_address_keeps_what_makes_sense_and_drops_the_rest(open_page, name, options, kept, dropped):
    page = open_page(name, *options)
    assert visit(page, ["#" + address for address in kept]) == kept
    for address, left in zip(dropped, visit(page, ["#" + address for address in dropped])):
        assert (address, left) == (address, "")


def test_sandwich_and_order_of_time_show_all_of_them(open_page):
    """A zoom is to a frame of another view."""
    page = open_page("worker")
    assert visit(page, ["#sandwich=1&focus=2&zoom=3", "#ordered=1&zoom=3", "#inverted=1&zoom=3"]) == ["sandwich=1&focus=2", "ordered=1", "inverted=1&zoom=3"]


def test_list_is_open_at_first_in_a_wide_window(open_page):
    assert not open_page("small", width=1599).one("[aria-label='Hottest functions']").is_displayed()
    assert open_page("small", width=1600).one("[aria-label='Hottest functions']").is_displayed()


def test_views_end_each_other(open_page):
    page = open_page("worker", address="#inverted=1")
    dispatch(page, "o")
    assert fragment(page) == {"ordered": "1"}
    dispatch(page, "i")
    assert fragment(page) == {"inverted": "1"}
    dispatch(page, "s")
    assert set(fragment(page)) == {"inverted", "sandwich", "focus"}
    dispatch(page, "o")
    assert fragment(page) == {"ordered": "1"}
    dispatch(page, "l")
    assert fragment(page) == {"lines": "1"}


def test_one_function_has_no_order_of_time(open_page):
    """A chart has all stacks of its thread: it does not say that it shows one function."""
    page = open_page("worker", address="#ordered=1&focus=3")
    dispatch(page, "u")
    assert fragment(page) == {"ordered": "1", "flipped": "1"}
    assert not [button for button in page.all("button") if button.text.startswith("only")]
    page = open_page("worker", address="#ordered=1")
    for key in ("ArrowUp", "ArrowUp", "f"):
        dispatch(page, key)
    assert set(fragment(page)) == {"focus"}
    assert [button for button in page.all("button") if button.text.startswith("only __libc_start_main")]


def test_quick_steps_back_stay_on_the_page(open_page):
    page = open_page("small")
    page.click("main chunk")
    page.wait(lambda: fragment(page))
    page.script("""for (let i = 0; i < 5; i++)
        document.dispatchEvent(new KeyboardEvent("keydown", { key: "Backspace" }));""")
    page.wait(lambda: page.browser.execute_script("return location.hash") == "")
    assert page.is_zoomed_to("all")
    page.click("heavy")
    page.wait(lambda: page.is_zoomed_to("heavy"))
    page.press(Keys.BACKSPACE)
    page.wait(lambda: page.is_zoomed_to("all"))


# As Safari, which lets an address change so often in half a minute.
LIMITED = """
    let left = arguments[0];
    for (const method of ["pushState", "replaceState"]) {
        const change = history[method].bind(history);
        history[method] = (...given) => {
            if (left-- <= 0)
                throw new DOMException("too often", "SecurityError");
            change(...given);
        };
    }"""

TYPED = """
    const search = document.querySelector("input");
    for (let i = 0; i < 200; i++) {
        search.value = i % 2 ? "heavy" : "heav";
        search.dispatchEvent(new InputEvent("input", { bubbles: true }));
    }"""


def zoom_twice(page):
    for label in ("main chunk", "heavy"):
        page.click(label)
        page.wait(lambda label=label: page.is_zoomed_to(label))


def test_many_letters_leave_the_steps_back(open_page):
    page = open_page("small")
    page.script(LIMITED, 100)
    page.click("main chunk")
    page.wait(lambda: page.is_zoomed_to("main chunk"))
    page.script(TYPED)
    page.wait(lambda: page.result().startswith("Matched"))
    assert fragment(page)["search"] == "heavy"
    page.click("heavy")
    page.wait(lambda: page.is_zoomed_to("heavy"))
    assert "zoom" in fragment(page)
    for label in ("main chunk", "all"):
        dispatch(page, "Backspace")
        page.wait(lambda label=label: page.is_zoomed_to(label))


def test_an_address_that_may_not_change_any_more_leaves_the_steps_before(open_page):
    page = open_page("small")
    zoom_twice(page)
    page.script(LIMITED, 0)
    page.script(TYPED)
    page.wait(lambda: page.result().startswith("Matched"))
    dispatch(page, "Backspace")
    page.wait(lambda: page.is_zoomed_to("main chunk"))
    dispatch(page, "Backspace")
    page.wait(lambda: page.is_zoomed_to("all"))


def test_a_step_back_that_the_browser_drops_can_be_asked_for_again(open_page):
    page = open_page("small")
    zoom_twice(page)
    page.script("history.back = () => { delete history.back; };")
    dispatch(page, "Backspace")

    def is_back():
        if page.is_zoomed_to("heavy"):
            dispatch(page, "Backspace")
        return not page.is_zoomed_to("heavy")

    page.wait(is_back)


def test_back_after_a_chosen_time_shows_everything(open_page):
    page = open_page("worker", address="#process=101&from=1000000&to=2000000&focus=4&search=x")
    dispatch(page, "Backspace")
    assert fragment(page) == {"search": "x"}
    page = open_page("worker", address="#process=101&phase=access")
    assert page.one("button[data-key=r]").is_enabled()
    assert "240 samples" in page.hover("all")
    dispatch(page, "r")
    assert fragment(page) == {} and not page.one("button[data-key=r]").is_enabled()


def test_order_of_time_is_of_the_busiest_chosen_thread(open_page):
    page = open_page("worker", address="#ordered=1&list=0&process=101&to=200000")
    assert "400 samples" in page.hover("all") and page.find("tick")
    page = open_page("worker", address="#ordered=1&list=0&thread=102&to=200000")
    assert "40 samples" in page.hover("all") and not page.find("tick")
    page = open_page("worker", address="#ordered=1&list=0&process=100&thread=102")
    assert page.labels() == {"all"}


def test_function_of_the_lowest_number_can_be_looked_at_unfolded(open_page):
    """Its stacks have no folded frames: 0 is as good a number as any."""
    page = open_page("worker", address="#list=0&focus=0")
    assert page.find("__libc_start_main")[0]["label"] == "__libc_start_main [nginx]"
    page.choose("only __libc_start_main [nginx]")
    assert page.find("_start")[0]["label"].endswith("(12 frames)")
    page = open_page("worker", address="#list=0&focus=0&inverted=1")
    assert page.find("_start")[0]["share"] == 100 and "840 samples" in page.hover("_start")


def test_folded_frames_match_if_one_of_them_does(open_page):
    page = open_page("worker")
    for text, is_hit in (("^_start", True), ("ngx_spawn", True), ("core_run_phases", True), ("init.lua", False)):
        page.search(text)
        assert page.find("_start")[0]["hit"] == is_hit and page.find("main chunk")[0]["hit"] == (not is_hit)
        page.press(Keys.ESCAPE)


# -- Recordings made here --


def make(make_flamegraph, name, tmp_path, *options, **sections):
    """A copy of a page with other data in it."""
    text = make_flamegraph(name, *options).read_text(encoding="utf-8")
    for section, lines in sections.items():
        begin = text.index(f'<metadata id="{section}">') + len(f'<metadata id="{section}">')
        text = text[:begin] + "\n".join(lines) + "\n" + text[text.index("</metadata>", begin):]
    path = tmp_path / ("made.html" if "page" in options else "made.svg")
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def open_made(open_page, make_flamegraph, tmp_path):
    """Opens the page of such a recording."""
    def open_made(name, address="", width=1280, mobile=False, options=(), **sections):
        page = open_page("small", width=width, mobile=mobile)
        page.browser.get(make(make_flamegraph, name, tmp_path, *options, **sections).as_uri() + address)
        return page
    return open_made


def test_colour_of_a_change_follows_shares_and_chance(open_made):
    """Samples now and before, of 13,000: where there are so few, an eighth more may be chance."""
    counts = {"a": (2000, 1000), "b": (1990, 1000), "c": (1135, 1000), "d": (1127, 1000), "e": (1090, 1000), "f": (1000, 1135), "g": (1000, 1127),
              "h": (1000, 1090), "i": (1000, 1990), "j": (1000, 2000)}
    names = sorted(counts)

    def looks(scale):
        sides = []
        for side in (0, 1):
            samples = [scale * counts[name][side] for name in names]
            samples.append(scale * 13000 - sum(samples))
            sides.append(["0 0"] + [f"1 {k + 1} 0 {number} 0 i{number}" for k, number in enumerate(samples)])
        page = open_made("compare", functions=["a all", *("l " + name for name in names), "l rest"],
                         lines=[f"{k} {name}" for k, name in enumerate(["all", *names, "rest"])], frames=sides[0], baseline=sides[1])
        return {frame["label"]: frame["look"] for frame in page.frames() if len(frame["label"]) == 1}

    assert looks(1000) == {"a": "z", "b": "y", "c": "y", "d": "y", "e": "s", "f": "q", "g": "q", "h": "s", "i": "q", "j": "p"}
    assert looks(1) == {"a": "z", "b": "y", "c": "y", "d": "s", "e": "s", "f": "q", "g": "s", "h": "s", "i": "q", "j": "p"}


def test_only_chains_of_native_frames_from_three_on_are_folded(open_made):
    def labels(*stacks):
        functions = sorted({name for stack, _ in stacks for name in stack} - {"all"})
        rows, path = ["0 0"], []
        for stack, weight in stacks:
            common = next((k for k, (one, other) in enumerate(zip(stack, path)) if one != other), min(len(stack), len(path)))
            for depth in range(common, len(stack)):
                rows.append(f"{depth + 1} {functions.index(stack[depth]) + 1}" + (f" 0 {weight} 0 c{weight}" if depth == len(stack) - 1 else ""))
            path = stack
        page = open_made("small", functions=["a all", *(("n " if name[0] == "n" else "l ") + name for name in functions)],
                         lines=["0 all", *(f"{k + 1} {name}" for k, name in enumerate(functions))], frames=rows)
        return {frame["label"] for frame in page.frames()} - {"all"}

    assert labels((["n1", "n2", "n3", "lua"], 5)) == {"n1 … n3 (3 frames)", "lua"}
    assert labels((["n1", "n2", "lua"], 5)) == {"n1", "n2", "lua"}
    assert labels((["by", "n1", "n2", "n3", "lua"], 5)) == {"by", "n1 … n3 (3 frames)", "lua"}
    assert labels((["by", "lua", "n1", "n2", "n3", "n4"], 5)) == {"by", "lua", "n1", "n2", "n3", "n4"}
    assert labels((["n1", "n2", "n3"], 5), (["n1", "n2", "n3", "lua"], 5)) == {"n1 … n3 (3 frames)", "lua"}
    assert labels((["n1", "n2"], 5), (["n1", "n2", "n3", "n4", "lua"], 5)) == {"n1", "n2", "n3", "n4", "lua"}
    assert labels((["n1", "n2", "n3", "n4", "lua"], 5), (["n1", "n2", "n3", "other"], 5)) == {"n1 … n3 (3 frames)", "n4", "lua", "other"}
    assert labels((["n1", "n2", "n3", "lua"], 5), (["n5", "n6", "n7", "lua"], 5)) == {"n1 … n3 (3 frames)", "n5 … n7 (3 frames)", "lua"}


def test_order_of_time_is_of_the_thread_with_most_samples_in_all_phases(open_made):
    threads = ["9 9 c\tc\t", "7 7 a\ta\taccess", "8 8 b\tb\t", "7 7 a\ta\tlog"]
    samples = [0] * 4 + [1] * 3 + [2] * 5 + [3] * 3         # thread 7 has 6
    names = ["of9", "of7", "of8", "of7"]
    for address, wanted in (("", "of7"), ("&phase=no+phase", "of8"), ("&process=9", "of9")):
        page = open_made("worker", "#ordered=1" + address, functions=["a all", "l of7", "l of8", "l of9"],
                         lines=["0 all", "1 of7", "2 of8", "3 of9"], frames=["0 0", "1 1 0 6 0 i60000000", "1 2 0 5 0 i50000000", "1 3 0 4 0 i40000000"],
                         threads=threads, moments=["0 200000", *(f"10000 {int(names[one][-1]) - 6} i 10000000 {one}" for one in samples)])
        assert page.labels() == {"all", wanted}


def test_what_is_left_out_of_a_frame_is_counted_and_can_be_chosen(open_made):
    page = open_made("many", functions=["a all", "l one", "l two"], lines=["0 all", "1 one", "2 two"],
                     frames=["0 0", "1 1 0 2 5 i20 j20", "2 2 1 3 0 j30", "1 2 2 1 0 i25"],
                     threads=["7 7 w\tw\tone", "8 8 w\tw\ttwo"],
                     parts=["1 1 i 20 0", "1 1 j 20 1", "3 2 j 30 1", "2 -1 u 5 0", "1 3 i 25 0"])
    assert page.find("[left out]")[0]["share"] == 5 and page.find("[left out]")[0]["look"] == "r"
    assert "8 samples" in page.hover("all") and "2 samples" in page.hover("[left out]")
    one = page.hover("one")
    assert "total 75.00 % of all 75 ns 7 samples" in one and "own 40.00 % of all 40 ns 2 samples" in one
    assert "certainty" not in one and "VM compiled 66.67 %, interpreted 26.67 %, unknown 6.67 %" in one
    page = open_made("many", address="#process=7", functions=["a all", "l one", "l two"], lines=["0 all", "1 one", "2 two"],
                     frames=["0 0", "1 1 0 2 5 i20 j20", "2 2 1 3 0 j30", "1 2 0 1 0 i25"],
                     threads=["7 7 w\tw\tone", "8 8 w\tw\ttwo"],
                     parts=["1 1 i 20 0", "1 1 j 20 1", "3 2 j 30 1", "2 -1 u 5 0", "1 3 i 25 0"])
    assert page.find("[left out]")[0]["share"] == 10 and "2 samples" in page.hover("[left out]")
    assert "4 samples" in page.hover("all") and page.find("two")[0]["share"] == 50


@pytest.mark.parametrize("inverted", [0, 1])
def test_narrow_frames_of_a_sandwich_are_callers_above_and_callees_below(open_made, inverted):
    many = range(5000)
    frames = [row for k in many for row in (f"1 {2 + k}", "2 1", f"3 {5002 + k} 0 1 0 i1")]
    names = ["middle", *(f"caller{k}" for k in many), *(f"callee{k}" for k in many)]
    page = open_made("small", address=f"#focus=1&sandwich=1&inverted={inverted}", functions=["a all", *("l " + name for name in names)],
                     lines=[f"{k} {name}" for k, name in enumerate(["all", *names])], frames=["0 0", *frames])
    below, above = sorted((run.rect for run in page.all("[data-count] rect")), key=lambda run: -run["y"])
    told = page.script("""
        return arguments[0].map(({ x, y }) => {
            document.querySelector(".frames").dispatchEvent(new PointerEvent("pointermove", { clientX: x + 99, clientY: y + 5, bubbles: true }));
            return document.querySelector(".card").innerText.trim().split("\\n")[1].split(";")[0];
        });""", [above, below])
    assert told == ["callers of middle", "called by middle"]


def test_what_is_known_of_frames_is_told(open_made):
    """Of three frames of a function: compiled, the nearest known line, only the function."""
    frames = ["0 0", "1 1 1 40 0 j40", "1 2 2 35 0 i35", "1 3 4 25 0 i25"]
    page = open_made("small", functions=["a all", "l f\tx.lua:1"], lines=["0 all", "1 f\tx.lua:2", "1 f\tx.lua:3", "1 f\tx.lua:?"], frames=frames)
    tip = page.hover("f x.lua:1")
    assert "compiled 40.00 % of its time" in tip and "certainty nearest known line in 35.00 %" in tip and "certainty function only in 25.00 %" in tip
    assert "lines 2: 40.00 %, 3: 35.00 %, ?: 25.00 %" in tip and page.find("f x.lua:1")[0]["look"] == "l"
    dispatch(page, "l")
    assert "compiled 100.00 %" in page.hover("f x.lua:2") and "certainty" not in page.hover("f x.lua:2")
    assert "certainty nearest known line in 100.00 %" in page.hover("f x.lua:3") and "certainty function only in 100.00 %" in page.hover("f x.lua:?")
    assert {frame["label"]: frame["look"] for frame in page.frames()} == {"all": "a", "f x.lua:2": "j", "f x.lua:3": "l", "f x.lua:?": "l"}
    dispatch(page, "i")
    assert "certainty function only in 100.00 %" in page.hover("f x.lua:?") and "compiled 100.00 %" in page.hover("f x.lua:2")
