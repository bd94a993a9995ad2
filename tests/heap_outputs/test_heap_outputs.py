# SPDX-License-Identifier: MIT
"""What `ljspy heap` and `ljspy diff` say of a program that leaks in four ways."""

import json
import pathlib
import re
import subprocess
import sys

import pytest

import chromium
import ljspy
from consumers import consumer
from devtools import DevTools

from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "formats"))
import readers  # noqa: E402
STEPS = 2000
SOURCE = (HERE / "leak.lua").read_text().splitlines()
SCREEN_LINES = 40


def line_of(text):
    """The number of the only line of the program that has this text."""
    found = [number for number, line in enumerate(SOURCE, 1) if text in line]
    assert len(found) == 1
    return found[0]


CLOSURE = f"function <leak.lua:{line_of('-- a closure')}>"
PARKED = f"function <leak.lua:{line_of('local function serve')}> leak.lua:{line_of('-- parked')}"
SERVE = f"function <leak.lua:{line_of('local function serve')}>"
# What names each leak.
NAMES = ('"cache"', CLOSURE, f"coroutine of {SERVE}", "cdata struct reading")


@pytest.fixture(scope="module")
def leaks(built_once, tmp_path_factory):
    """Two heaps of the program, the second with as much more of everything as the first has."""
    directory = tmp_path_factory.mktemp("leaks")
    argv = [ljspy.luajit("luajit"), "leak.lua", STEPS]
    with ljspy.Target(argv, cwd=HERE, limit=120).wait_ready() as target:
        for name in ("a.heap", "b.heap"):
            result = ljspy.run("heap", "-p", target.pid, "-o", directory / name)
            assert result.returncode == ljspy.OK, result.stderr
            target.write("more\n")
            target.wait_ready()
    return directory


@pytest.fixture(scope="module")
def built_once():
    if not ljspy.LJSPY.exists():
        pytest.skip(f"{ljspy.LJSPY} is not built")


@pytest.fixture(scope="module")
def devtools(tmp_path_factory):
    driver = chromium.start(tmp_path_factory.mktemp("browser"))
    yield DevTools(driver)
    driver.quit()


def output(*arguments):
    result = ljspy.run(*arguments)
    assert result.returncode == ljspy.OK, result.stderr
    return result.stdout


def report(leaks, name, form, *options):
    path = leaks / f"{name}.{form}"
    output("report", leaks / f"{name}.heap", "-f", form, "-o", path, *options)
    return path


def test_all_reports_count_the_same_objects(leaks):
    heaps = [leaks / "a.heap", leaks / "b.heap"]
    counts = [re.search(r"in ([\d,]+) objects; gc.total", output("report", heap)).group(1) for heap in heaps]
    documents = [json.loads(output("report", heap, "-f", "json")) for heap in heaps]
    assert counts == [f"{sum(row['count'] for row in document['processes'][0]['vms'][0]['objects'] if row['type'] != 'vm'):,}"
                      for document in documents]  # fmt: skip
    for command in ("diff", "report"):
        assert re.findall(r"B in ([\d,]+) objects", output(command, *heaps)) == counts


def test_the_first_screen_names_each_leak(leaks):
    screen = "\n".join(output("report", leaks / "b.heap").splitlines()[:SCREEN_LINES])
    for name in NAMES:
        assert name in screen, screen
    assert "all of it found" in screen


def test_the_first_screen_of_a_difference_names_each_leak(leaks):
    screen = "\n".join(output("diff", leaks / "a.heap", leaks / "b.heap").splitlines()[:SCREEN_LINES])
    for name in NAMES:
        assert name in screen, screen
    for line in screen.splitlines():
        if CLOSURE in line and "[*]" in line:
            assert f"+{STEPS}" in line


def test_json_agrees_with_the_program(leaks):
    document = json.loads(report(leaks, "b", "json").read_text())
    vm = document["processes"][0]["vms"][0]
    assert vm["difference"] == 0
    assert vm["sum"] == vm["gc_total"] == sum(row["bytes"] for row in vm["objects"])
    closures = {row["function"]: row for row in vm["closures"]}
    assert closures[CLOSURE]["count"] == 2 * STEPS
    assert {row["at"]: row["count"] for row in vm["coroutines"]}[PARKED] == 2 * STEPS
    assert [(row["count"], row["finalizers"]) for row in vm["cdata"] if row["ctype"] == "struct reading"] == [
        (2 * STEPS, 2 * STEPS)]
    bodies = [row for row in vm["paths"] if row["path"].endswith('["*"].body')]
    # A string has its header, its bytes and a NUL.
    assert bodies[0]["count"] == 2 * STEPS and bodies[0]["own"] > 2 * STEPS * 205
    assert vm["held"]["longest_us"] >= 0


def test_folded_lines_add_up(leaks):
    vm = json.loads(report(leaks, "a", "json").read_text())["processes"][0]["vms"][0]
    for measure, total in (("own", vm["sum"]), ("retained", vm["sum"])):
        lines = report(leaks, "a", "folded", "--measure", measure).read_text().splitlines()
        assert sum(int(line.rsplit(" ", 1)[1]) for line in lines) == total


def test_pprof_has_what_the_text_has(leaks):
    """Go's own reader: objects and bytes of each leak, and of all."""
    pprof = readers.Pprof(consumer("pprof"))
    vm = json.loads(report(leaks, "b", "json").read_text())["processes"][0]["vms"][0]
    objects, space = (pprof.top(report(leaks, "b", "pprof"), f"-sample_index={index}", unit=unit)
                      for index, unit in (("inuse_objects", "count"), ("inuse_space", "B")))
    assert sum(own for own, _ in objects.values()) == sum(row["count"] for row in vm["objects"])
    assert sum(own for own, _ in space.values()) == vm["sum"]
    closures = next(row for row in vm["closures"] if row["function"] == CLOSURE)
    readings = next(row for row in vm["cdata"] if row["ctype"] == "struct reading")
    for name, row in ((f"[*]: {CLOSURE}", closures), ("[*]: cdata struct reading", readings)):
        assert (objects[name][0], space[name][0]) == (row["count"], row["bytes"])


def test_json_is_as_documented(leaks):
    """Each key has its place in doc/JSON.md, and each that it lists is there."""
    text = (ljspy.ROOT / "doc/JSON.md").read_text()
    section = re.search(r"## `ljspy heap -f json`.*?(?=\n## )", text, re.DOTALL)[0]
    described = set(re.findall(r"`(\w+)(?:\[\])?`", section))
    listed = set(re.findall(r"^\| `(\w+)(?:\[\])?`", section, re.MULTILINE))

    def keys(value):
        if isinstance(value, dict):
            return set(value) | set().union(*map(keys, value.values()))
        return set().union(*map(keys, value)) if isinstance(value, list) else set()

    document = json.loads(report(leaks, "b", "json").read_text())
    assert listed <= keys(document) | {"key"} and len(listed) > 15
    uncertain = set(document["processes"][0]["vms"][0]["uncertain"])
    assert keys(document) - uncertain <= described


def test_cdata_have_a_place(leaks):
    """What holds them, and the finalizer's line: LuaJIT keeps no line of its own for cdata."""
    vm = json.loads(report(leaks, "b", "json").read_text())["processes"][0]["vms"][0]
    row = next(row for row in vm["cdata"] if row["ctype"] == "struct reading")
    finalizer = f"function <leak.lua:{line_of('ffi.gc(')}>"
    assert row["path"].startswith('local "readings" of main chunk leak.lua[') and row["path"].endswith("[*]")
    assert row["finalizer"] == finalizer
    text = output("report", leaks / "b.heap")
    (line,) = [line for line in text.splitlines() if "struct reading in local" in line]
    assert line.endswith(f"[*], finalizer {finalizer}") and '"readings" of main chunk leak.lua[' in line


def test_pictures_are_of_bytes(leaks):
    text = report(leaks, "a", "svg").read_text()
    assert 'data-unit="bytes"' in text and CLOSURE.replace("<", "&lt;").replace(">", "&gt;") in text
    path = leaks / "diff.svg"
    output("diff", leaks / "a.heap", leaks / "b.heap", "-o", path)
    subprocess.run(["xmllint", "--huge", "--noout", path], check=True)


def test_several_heaps_are_a_series(leaks):
    text = output("report", leaks / "a.heap", leaks / "b.heap")
    assert text.startswith("Totals over time\n")
    assert CLOSURE in text.split("Grew in every interval")[1].split("\n\n")[0]


@pytest.mark.parametrize("name", ["svg", "html", "json", "folded", "pprof"])
def test_a_series_is_a_text(leaks, tmp_path, name):
    for command in (["report", leaks / "a.heap", leaks / "b.heap"], ["heap", "-p", "1", "--every", "1s", "--for", "2s"]):
        done = ljspy.run(*command, "-f", name, "-o", tmp_path / "series")
        assert done.returncode == ljspy.USAGE
        assert f"The format {name} shows one heap, not what grew over several." in done.stderr
        assert not (tmp_path / "series").exists()


def test_a_running_program_is_looked_at_again_and_again(built_once, tmp_path):
    code = """
        local kept = {}
        io.write("ready\\n") io.flush()
        while io.read() do for i = 1, 1000 do kept[#kept + 1] = { i } end io.write("more\\n") io.flush() end
    """
    with ljspy.Target([ljspy.luajit("luajit"), "-e", code], limit=60).wait_ready() as target:
        series = subprocess.Popen([ljspy.LJSPY, "heap", "-p", str(target.pid), "--every", "1s", "--for", "3s",
                                   "-o", tmp_path / "s.heap"], stdout=subprocess.PIPE, text=True)
        while series.poll() is None:
            target.write("more\n")
            target.read_until(b"more\n")
            try:
                series.wait(0.02)  # that even a busy machine lets it grow between any two looks
            except subprocess.TimeoutExpired:
                pass
        text = series.stdout.read()
    assert series.returncode == ljspy.OK
    assert "Grew in every interval" in text and '"kept"' in text
    files = sorted(tmp_path.glob("s-*.heap"))
    assert len(files) >= 3
    assert "Grew, by path" in output("diff", files[0], files[-1])


def test_what_is_no_heap_is_refused(built_once, leaks, tmp_path):
    for content in (b"", b"LJSPYHEP", (leaks / "a.heap").read_bytes()[:-20]):
        path = tmp_path / "x.heap"
        path.write_bytes(content)
        result = ljspy.run("diff", leaks / "a.heap", path)
        assert result.returncode == ljspy.NOTHING_PROFILED
        assert str(path) in result.stderr


OF_PROFILES = ("-p 1", "--tid 1", "--include x", "--since 1s", "--state gc", "--clock wall", "--by state", "--lines")


@pytest.mark.parametrize("option", OF_PROFILES)
def test_options_that_only_profiles_have_are_refused(leaks, option):
    """A heap that is shown in spite of them looks as if they had chosen it."""
    heap = leaks / "a.heap"
    for arguments in (["report", heap], ["diff", heap, leaks / "b.heap"]):
        result = ljspy.run(*arguments, *option.split())
        assert result.returncode == ljspy.USAGE
        assert re.fullmatch(rf"ljspy: --\S+.* is for profiles: {heap} is a heap.\n", result.stderr)


def test_pictures_offer_what_heaps_have(leaks, devtools):
    """No lines, no states of the VM; a legend of kinds; the amounts of a frame in bytes and objects."""
    vm = json.loads(report(leaks, "b", "json").read_text())["processes"][0]["vms"][0]
    closures = next(row for row in vm["closures"] if row["function"] == CLOSURE)
    driver = devtools.driver
    for form in ("svg", "html"):
        driver.get(report(leaks, "b", form).as_uri())
        buttons = driver.execute_script("return [...document.querySelectorAll('button')].map((button) => button.textContent);")
        assert "Root on top" in buttons and "Lines" not in buttons
        assert driver.execute_script("return document.querySelector('select')") is None
        legend = driver.execute_script("return document.querySelector('.legend').textContent;")
        assert re.fullmatch(r"functions.*coroutines.*all else.*", legend)
        frame = driver.execute_script("""return [...document.querySelectorAll("[data-frame]")].find((group) =>
            group.getAttribute("aria-label").startsWith(arguments[0])).querySelector("rect");""", f"[*]: {CLOSURE}")
        ActionChains(driver).move_to_element(frame).perform()
        card = driver.find_element(By.CSS_SELECTOR, ".card")
        assert ljspy.wait_until(lambda: f"{closures['count']:,} objects" in card.text), card.text
        assert "native" not in card.text and "no Lua" not in card.text, card.text
    devtools.open()


def test_devtools_count_what_the_program_has(leaks, devtools):
    number = devtools.load(report(leaks, "b", "heapsnapshot"))
    vm = json.loads(report(leaks, "b", "json").read_text())["processes"][0]["vms"][0]
    assert devtools.statistics(number)["total"] == vm["sum"]
    classes = devtools.classes(number)
    assert classes[CLOSURE][0] == 2 * STEPS
    assert classes[f"coroutine of {SERVE}"][0] == 2 * STEPS
    assert classes["cdata struct reading"][0] == 2 * STEPS
    strings = {row["type"]: row for row in vm["objects"]}["string"]
    assert classes["(string)"][:2] == (strings["count"], strings["bytes"])
    # An array holds a closure, and a local of the main chunk the array.
    path = devtools.retainers(number, CLOSURE)
    assert path[-1][1].startswith("thread")
    assert "timers" in path[-1][0]


def test_devtools_compare_two_snapshots(leaks, devtools):
    before, after = (devtools.load(report(leaks, name, "heapsnapshot")) for name in ("a", "b"))
    rows = devtools.compare(before, after)
    assert rows[CLOSURE][:3] == [STEPS, 0, STEPS]
    assert rows["cdata struct reading"][:3] == [STEPS, 0, STEPS]


def test_devtools_see_string_contents_only_if_asked(built_once, tmp_path):
    code = 'kept = "a secret of mine" io.write("ready\\n") io.flush() io.read()'
    with ljspy.Target([ljspy.luajit("luajit"), "-e", code], limit=60).wait_ready() as target:
        texts = []
        for options in ((), ("--strings",)):
            path = tmp_path / f"{len(options)}.heapsnapshot"
            output("heap", "-p", target.pid, "-o", path, *options)
            texts.append(path.read_text())
    assert "a secret of mine" not in texts[0]
    assert "a secret of mine" in texts[1]
