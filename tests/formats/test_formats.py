# SPDX-License-Identifier: MIT
"""Every format, read by the programs that it is for.

tests/formats/make_samples.c describes "small". Names are the same in all formats, unless
a format cannot hold them, or its programs shorten them (readers.dotted()).
"""

import json
import re
import subprocess

import pytest

from readers import TEST_SECONDS, Json, dotted, parse_folded, totals_of_stacks

pytestmark = pytest.mark.timeout(TEST_SECONDS)

MS = 1000000
SETS = ("small", "random", "hostile", "deep", "wide", "empty")

SMALL = {
    "main chunk test.lua": (50 * MS, 850 * MS),
    "heavy test.lua:5": (500 * MS, 600 * MS),
    "string.gsub [builtin]": (150 * MS, 200 * MS),
    "function <test.lua:12>": (0, 200 * MS),
    "sqrt [libm.so.6]": (100 * MS, 100 * MS),
    "malloc [libc.so.6]": (50 * MS, 50 * MS),
    "lj_BC_ADDVV [vm]": (100 * MS, 100 * MS),
    "[lost: frame chain broken]": (50 * MS, 50 * MS),
}


def approximately(totals, part=1e-9):
    """Totals that compare equal up to rounding, by a part of the largest."""
    largest = max((total for _, total in totals.values()), default=0)
    return {name: pytest.approx(pair, rel=1e-9, abs=part * largest) for name, pair in totals.items()}


def weighty(totals):
    """Leave out functions without time, as some programs do."""
    return {name: pair for name, pair in totals.items() if pair[1] > 0}


def perf_name(name):
    return name.replace("(", "[").replace(")", "]").replace("->", "-\\x3e")


# -- The same samples in every program --


@pytest.mark.parametrize("samples", ["small", "random", "deep"])
class TestTotals:
    """Every program finds the own time and total of each function."""

    @pytest.fixture
    def expected(self, make_samples, samples):
        return weighty(Json(make_samples(samples, "json")).totals())

    def test_json(self, expected, samples):
        if samples == "small":
            assert expected == SMALL
        assert expected

    def test_folded(self, make_samples, inferno, expected, samples):
        path = make_samples(samples, "folded")
        microseconds = totals_of_stacks(parse_folded(path.read_text()))
        nanoseconds = {name: (own * 1000, total * 1000) for name, (own, total) in microseconds.items()}
        assert nanoseconds == approximately(expected, 1e-4)
        if samples != "deep":
            assert inferno.folded_totals(path) == approximately(expected, 1e-4)

    def test_pprof(self, make_samples, pprof, expected, samples):
        named = {dotted(name): pair for name, pair in expected.items()}
        assert len(named) == len(expected)
        assert weighty(pprof.totals(make_samples(samples, "pprof"))) == approximately(named)

    def test_speedscope(self, make_samples, speedscope, expected, samples):
        if samples == "deep":
            pytest.skip("speedscope does not open stacks of 5,000 frames within a minute")
        merged, threads = speedscope.totals(make_samples(samples, "speedscope"))
        assert weighty(merged) == expected
        assert weighty(threads) == expected

    def test_firefox(self, make_samples, firefox, expected, samples):
        firefox.open(make_samples(samples, "firefox"))
        assert weighty(firefox.totals()) == approximately(expected)

    def test_callgrind(self, make_samples, callgrind, expected, samples):
        functions = Json(make_samples(samples, "json")).functions
        assert weighty(callgrind.totals(make_samples(samples, "callgrind"), functions)) == expected

    def test_perf(self, make_samples, inferno, expected, samples):
        found = weighty(inferno.perf_totals(make_samples(samples, "perf")))
        assert found == {perf_name(name): pair for name, pair in expected.items()}


# -- Lines --


def test_pprof_knows_lines(make_samples, pprof):
    lines = pprof.top(make_samples("small", "pprof"), "-lines")
    assert lines["test.heavy:5 test.lua:6"] == (150 * MS, 150 * MS)
    assert lines["test.heavy:5 test.lua:7"] == (150 * MS, 350 * MS)
    assert lines["test.heavy:5 test.lua:8"] == (200 * MS, 200 * MS)


def test_speedscope_knows_lines(make_samples, speedscope):
    functions = speedscope.imported(make_samples("small", "speedscope"))["shared"]["frames"]
    assert {"name": "heavy test.lua:5", "file": "test.lua", "line": 5} in functions
    lines = speedscope.imported(make_samples("small", "speedscope", "lines"))["shared"]["frames"]
    assert {"name": "heavy test.lua:8", "file": "test.lua", "line": 8} in lines


def test_firefox_knows_lines(make_samples, firefox):
    firefox.open(make_samples("small", "firefox"))
    heavy = [f for f in firefox.functions(firefox.threads()[0]) if f["name"].startswith("heavy")][0]
    source = firefox.ask("function", "annotate", heavy["functionHandle"], "--mode", "src")["srcAnnotation"]
    assert source["filename"] == "test.lua"
    lines = {line["lineNumber"]: (line["selfSamples"], line["totalSamples"]) for line in source["lines"]}
    assert (lines[6], lines[7], lines[8], lines[9]) == ((150, 150), (150, 350), (200, 200), (0, 100))


def test_callgrind_knows_lines(make_samples, callgrind, tmp_path):
    source = tmp_path / "test.lua"
    source.write_text("".join(f"-- {n}\n" for n in range(1, 41)))
    text = callgrind.ask(make_samples("small", "callgrind"), "--auto=yes", f"--include={tmp_path}")
    assert re.search(r"^ *150,000,000 .* -- 6$", text, re.MULTILINE)
    assert re.search(r"^ *150,000,000 .* -- 7$", text, re.MULTILINE)
    assert re.search(r"^ *200,000,000 .* -- 8$", text, re.MULTILINE)


def test_folded_and_perf_show_lines_when_asked(make_samples, inferno):
    folded = totals_of_stacks(parse_folded(make_samples("small", "folded", "lines").read_text()))
    assert folded["heavy test.lua:8"] == (200000, 200000)
    perf = inferno.perf_totals(make_samples("small", "perf", "lines"))
    assert perf["heavy test.lua:8"] == (200 * MS, 200 * MS)


# -- Threads, states and phases --


def test_json_tells_all_of_a_sample(make_samples):
    document = Json(make_samples("small", "json")).document
    assert document["format"] == "ljspy" and document["version"] == 1
    assert document["session"]["target"] == "nginx: worker process"
    assert document["figures"]["lost"]["frame chain broken"] == 5
    assert [(t["pid"], t["tid"], t["process"], t["thread"]) for t in document["threads"]] == [
        (4242, 4242, "nginx", "nginx"), (4242, 4243, "nginx", "log writer"), (4300, 4300, "nginx", "nginx")]
    samples = document["samples"]
    assert [s["time_ns"] for s in samples] == sorted(s["time_ns"] for s in samples)
    assert samples[0] | {"stack": None} == {
        "time_ns": 10 * MS, "thread": 0, "stack": None, "cpu_ns": 10 * MS, "wall_ns": 30 * MS,
        "state": "running", "wait": None, "vm_state": "interpreted", "phase": "content"}
    assert {s["vm_state"] for s in samples} == {"interpreted", "compiled", "c", "gc", "unknown"}
    assert {s["state"] for s in samples} == {"running", "runnable"}
    assert {s["phase"] for s in samples} == {"content", "access", None}


def test_pprof_finds_samples_by_label(make_samples, pprof):
    path = make_samples("small", "pprof")

    def total(label, value):
        return sum(own for own, _ in pprof.top(path, f"-tagfocus={label}={value}").values())

    assert total("thread", "log writer") == 200 * MS
    assert total("process", "nginx") == 1000 * MS
    assert total("pid", "4300") == 100 * MS
    assert total("tid", "4243") == 200 * MS
    assert total("vm_state", "compiled") == 200 * MS
    assert total("state", "runnable") == 50 * MS
    assert total("phase", "access") == 200 * MS


def test_pprof_counts_samples_and_tells_what_was_recorded(make_samples, pprof):
    path = make_samples("small", "pprof")
    assert pprof.top(path, "-sample_index=samples")["test.heavy:5"] == (50, 60)
    comments = pprof.ask(path, "-comments")
    assert re.search("^CPU time of ", comments)
    assert "ljspy record --name nginx -d 30s" in comments
    assert "100 in 30.0 s" in comments
    raw = pprof.ask(path, "-raw")
    assert re.search(r"^PeriodType: cpu nanoseconds$", raw, re.MULTILINE)
    assert re.search(rf"^Period: {10 * MS}$", raw, re.MULTILINE)    # 100 Hz
    assert re.search(r"^Duration: 30(\.0+)?s?$", raw, re.MULTILINE)


def test_firefox_knows_threads_and_states(make_samples, firefox):
    firefox.open(make_samples("small", "firefox"))
    threads = firefox.threads()
    assert [(t["pid"], t["tid"], t["processName"], t["name"]) for t in threads] == [
        ("4242", 4242, "nginx", "nginx"), ("4242", 4243, "nginx", "log writer"), ("4300", 4300, "nginx", "nginx")]
    found = firefox.ask("thread", "samples", "--thread", "t-0", "--include-idle")["categoryBreakdown"]
    lua = [category for category in found["categories"] if category["name"] == "Lua"][0]
    assert {s["name"]: s["samples"] for s in lua["subcategories"]} == {"Interpreted": 350, "Compiled": 200}
    meta = firefox.ask("profile", "meta")
    assert meta["importedFrom"] == "ljspy" and meta["product"] == "nginx: worker process"
    assert "100 in 30.0 s" in json.dumps(meta["extra"])


def test_speedscope_has_a_profile_of_each_thread(make_samples, speedscope):
    document = speedscope.imported(make_samples("small", "speedscope"))
    assert [profile["name"] for profile in document["profiles"]] == [
        "all threads, merged", "nginx (pid 4242), thread nginx (4242)",
        "nginx (pid 4242), thread log writer (4243)", "nginx (pid 4300), thread nginx (4300)"]
    assert {profile["unit"] for profile in document["profiles"]} == {"nanoseconds"}
    assert document["profiles"][0]["endValue"] == 1000 * MS


def test_speedscope_keeps_distances_in_time(make_samples, speedscope):
    document = speedscope.imported(make_samples("small", "speedscope"))
    taken = [s["time_ns"] for s in Json(make_samples("small", "json")).document["samples"] if s["thread"] == 2]
    profile = document["profiles"][3]
    closed = [event["at"] for event in profile["events"] if event["type"] == "C"]
    opened = [event["at"] for event in profile["events"] if event["type"] == "O"]
    assert closed == taken
    assert opened == [at - 10 * MS for at in taken]


def test_callgrind_has_a_function_of_each_thread(make_samples, callgrind):
    costs = callgrind.costs(make_samples("small", "callgrind"), "--inclusive=yes")
    assert costs["???:thread nginx (4242 of nginx 4242)"] == 700 * MS
    assert costs["???:thread log writer (4243 of nginx 4242)"] == 200 * MS
    assert costs["???:thread nginx (4300 of nginx 4300)"] == 100 * MS


def test_callgrind_shows_who_called(make_samples, callgrind):
    text = callgrind.ask(make_samples("small", "callgrind"), "--auto=no", "--tree=caller", "--inclusive=yes")
    assert re.search(r"200,000,000 .* < test.lua:main chunk test.lua \(20x\).*\n.*\* +test.lua:function <test.lua:12>", text)


def test_perf_knows_threads_and_compiled_code(make_samples, inferno):
    path = make_samples("small", "perf")
    threads = {}
    for names, weight in inferno.collapse(path, "--tid"):
        threads[names[0]] = threads.get(names[0], 0) + weight
    assert threads == {"nginx-4242/4242": 700 * MS, "log_writer-4242/4243": 200 * MS, "nginx-4300/4300": 100 * MS}
    marked = totals_of_stacks(inferno.collapse(path, "--all"))
    assert marked["heavy test.lua:5_[j]"] == (200 * MS, 200 * MS)


def test_perf_text_is_read_by_speedscope(make_samples, speedscope):
    document = speedscope.imported(make_samples("small", "perf"))
    assert sorted(profile["name"] for profile in document["profiles"]) == [
        "log_writer pid: 4242 tid: 4243", "nginx pid: 4242 tid: 4242", "nginx pid: 4300 tid: 4300"]
    assert {frame["name"] for frame in document["shared"]["frames"]} == {perf_name(name) for name in SMALL}


def test_folded_marks_compiled_code_as_flame_graph_tools_expect(make_samples, inferno):
    path = make_samples("small", "folded", "annotate")
    stacks = {";".join(names): weight for names, weight in parse_folded(path.read_text())}
    assert stacks["main chunk test.lua;heavy test.lua:5_[j];heavy test.lua:5_[j]"] == 200000
    assert stacks["main chunk test.lua;heavy test.lua:5"] == 300000
    # The reader takes the mark as such, not as part of the name.
    assert {name for _, _, _, name in inferno.boxes(path)} == set(SMALL) | {"all"}


# -- Elapsed time --


def test_elapsed_time_is_the_weight_when_asked_for(make_samples, pprof, firefox, callgrind, speedscope, inferno):
    heavy = "heavy test.lua:5"
    expected = (1500 * MS, 1800 * MS)
    assert totals_of_stacks(parse_folded(make_samples("small", "folded", "wall").read_text()))[heavy] == (
        1500000, 1800000)
    assert pprof.totals(make_samples("small", "pprof", "wall"))[dotted(heavy)] == expected
    assert pprof.top(make_samples("small", "pprof", "wall"), "-sample_index=cpu")[dotted(heavy)] == (500 * MS, 600 * MS)
    assert speedscope.totals(make_samples("small", "speedscope", "wall"))[0][heavy] == expected
    assert inferno.perf_totals(make_samples("small", "perf", "wall"))[heavy] == expected
    functions = Json(make_samples("small", "json", "wall")).functions
    assert callgrind.totals(make_samples("small", "callgrind", "wall"), functions)[heavy] == expected
    firefox.open(make_samples("small", "firefox", "wall"))
    assert firefox.totals()[heavy] == pytest.approx(expected)


# -- Allocations --

ALLOCATED = {
    "main chunk test.lua": ((0, 9500000), (0, 100000)),
    "make test.lua:5": ((0, 8500000), (0, 100000)),
    "string.gsub [builtin]": ((0, 3500000), (0, 40000)),
    "[alloc: table]": ((5000000, 5000000), (60000, 60000)),
    "[alloc: growth of a table]": ((1000000, 1000000), (0, 0)),
    "[alloc: string]": ((3500000, 3500000), (40000, 40000)),
    "[lost: who allocated was not seen]": ((500000, 500000), (0, 0)),
}


@pytest.mark.parametrize("weight", ["alloc", "alloc-objects"])
class TestAllocations:
    """Every program finds the bytes and the objects of each function."""

    @pytest.fixture
    def expected(self, weight):
        return weighty({name: pairs[weight == "alloc-objects"] for name, pairs in ALLOCATED.items()})

    def test_json(self, make_samples, expected, weight):
        document = Json(make_samples("alloc", "json", weight))
        assert document.document["session"]["clock"] == weight
        member = {"alloc": "alloc_bytes", "alloc-objects": "alloc_objects"}[weight]
        assert weighty(document.totals(member)) == expected
        kinds = {function["name"]: function["kind"] for function in document.functions}
        assert {name for name, kind in kinds.items() if kind == "allocated"} == {
            "[alloc: table]", "[alloc: growth of a table]", "[alloc: string]"}

    def test_folded(self, make_samples, expected, weight):
        assert totals_of_stacks(parse_folded(make_samples("alloc", "folded", weight).read_text())) == expected

    def test_perf(self, make_samples, inferno, expected, weight):
        path = make_samples("alloc", "perf", weight)
        assert f" {weight}:\n" in path.read_text()
        assert inferno.perf_totals(path) == expected

    def test_pprof(self, make_samples, pprof, expected, weight):
        path = make_samples("alloc", "pprof", weight)
        named = {dotted(name): pair for name, pair in expected.items()}
        unit = "B" if weight == "alloc" else "count"
        assert weighty(pprof.top(path, unit=unit)) == named
        other = pprof.top(path, "-sample_index=alloc_space", unit="B")
        assert other[dotted("make test.lua:5")] == ALLOCATED["make test.lua:5"][0]

    def test_speedscope(self, make_samples, speedscope, expected, weight):
        path = make_samples("alloc", "speedscope", weight)
        units = {profile["unit"] for profile in json.loads(path.read_text())["profiles"]}
        assert units == {"bytes" if weight == "alloc" else "none"}
        merged, threads = speedscope.totals(path)
        assert weighty(merged) == weighty(threads) == expected

    def test_firefox(self, make_samples, firefox, expected, weight):
        firefox.open(make_samples("alloc", "firefox", weight))
        found = {name: (own / MS, total / MS) for name, (own, total) in weighty(firefox.totals()).items()}
        assert found == approximately(expected)

    def test_callgrind(self, make_samples, callgrind, expected, weight):
        path = make_samples("alloc", "callgrind", weight)
        assert weighty(callgrind.totals(path, Json(make_samples("alloc", "json", weight)).functions)) == expected


# -- Odd names, and many samples --


@pytest.mark.parametrize("samples", SETS)
def test_json_formats_are_valid(make_samples, samples):
    for form in ("json", "speedscope", "firefox"):
        text = make_samples(samples, form).read_bytes().decode("utf-8")
        assert json.loads(text)
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
        assert not re.search(r"\\u00[01]", text)


def test_names_are_the_same_whatever_is_in_them(make_samples, pprof, speedscope, firefox):
    expected = {function["name"] for function in Json(make_samples("hostile", "json")).functions}
    raw = pprof.ask(make_samples("hostile", "pprof"), "-raw")
    assert all(f"({name})" in raw or f" {name} " in raw for name in expected)
    frames = speedscope.imported(make_samples("hostile", "speedscope"))["shared"]["frames"]
    assert {frame["name"] for frame in frames} == expected
    firefox.open(make_samples("hostile", "firefox"))
    assert set(firefox.totals()) == expected


def test_no_name_breaks_a_line(make_samples, inferno, callgrind):
    whole = 220 * MS
    names = [names for names, _ in parse_folded(make_samples("hostile", "folded").read_text())]
    assert len(names) == 22 and all(len(stack) in (2, 3) for stack in names)
    collapsed = inferno.collapse(make_samples("hostile", "perf"))
    assert sum(weight for _, weight in collapsed) == whole
    assert all(len(stack) in (3, 4) for stack, _ in collapsed)
    own = callgrind.costs(make_samples("hostile", "callgrind"))
    assert sum(own.values()) == whole


def test_many_functions_are_read(make_samples, pprof, speedscope, firefox, callgrind, inferno):
    assert len(pprof.totals(make_samples("wide", "pprof"))) == 20001
    frames = speedscope.imported(make_samples("wide", "speedscope"))["shared"]["frames"]
    assert len({frame["name"] for frame in frames}) == 20001
    assert len(callgrind.costs(make_samples("wide", "callgrind"))) == 20002
    assert len(inferno.collapse(make_samples("wide", "perf"))) == 20000
    firefox.open(make_samples("wide", "firefox"))
    assert len(firefox.totals()) == 20001


def test_nothing_is_read_as_nothing(make_samples, pprof, speedscope, firefox, callgrind, inferno):
    assert make_samples("empty", "folded").read_bytes() == b""
    assert make_samples("empty", "perf").read_bytes() == b""
    assert pprof.totals(make_samples("empty", "pprof")) == {}
    assert speedscope.imported(make_samples("empty", "speedscope"))["shared"]["frames"] == []
    assert callgrind.costs(make_samples("empty", "callgrind")) == {}
    firefox.open(make_samples("empty", "firefox"))


# -- Output that cannot be written --


@pytest.mark.parametrize("form", ["folded", "speedscope", "pprof", "firefox", "callgrind", "perf", "json"])
def test_a_full_disk_is_told(samples_program, form):
    with open("/dev/full", "wb") as full:
        result = subprocess.run([samples_program, "random", form], stdout=full, stderr=subprocess.PIPE, check=False)
    assert result.returncode == 1
    assert b"Input/output error" in result.stderr
