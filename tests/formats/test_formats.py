"""Every format, read by the programs that it is for.

What "small" holds is told in tests/formats/make_samples.c. Names are the same
in all formats, but for what a format cannot hold.
"""

import gzip
import json
import pathlib
import re

import pytest

from readers import Json, parse_folded, totals_of_stacks

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
    """Equal but for rounding, by a part of the largest."""
    largest = max((total for _, total in totals.values()), default=0)
    return {name: pytest.approx(pair, rel=1e-9, abs=part * largest) for name, pair in totals.items()}


def weighty(totals):
    """Without functions of no time, which some programs leave out."""
    return {name: pair for name, pair in totals.items() if pair[1] > 0}


def perf_name(name):
    return name.replace("(", "[").replace(")", "]").replace("->", "-\\x3e")


# -- What every program makes of the same samples --


@pytest.mark.parametrize("samples", ["small", "random", "deep"])
class TestTotals:
    """Own time and total of each function."""

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
        assert weighty(pprof.totals(make_samples(samples, "pprof"))) == approximately(expected)

    def test_speedscope(self, make_samples, speedscope, expected, samples):
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
    assert lines["heavy test.lua:5 test.lua:6"] == (150 * MS, 150 * MS)
    assert lines["heavy test.lua:5 test.lua:7"] == (150 * MS, 350 * MS)
    assert lines["heavy test.lua:5 test.lua:8"] == (200 * MS, 200 * MS)


def test_speedscope_knows_lines(make_samples, speedscope):
    functions = speedscope.imported(make_samples("small", "speedscope"))["shared"]["frames"]
    assert {"name": "heavy test.lua:5", "file": "test.lua", "line": 5} in functions
    lines = speedscope.imported(make_samples("small", "speedscope", "lines"))["shared"]["frames"]
    assert {"name": "heavy test.lua:8", "file": "test.lua", "line": 8} in lines


def test_firefox_knows_lines(make_samples, firefox, tmp_path):
    firefox.open(make_samples("small", "firefox"))
    heavy = [f for f in firefox.functions(firefox.threads()[0]) if f["name"].startswith("heavy")][0]
    info = firefox.ask("function", "info", heavy["functionHandle"])
    assert json.dumps(info).count("test.lua")
    annotated = firefox.ask("function", "annotate", heavy["functionHandle"], "--mode", "src")
    assert annotated


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
