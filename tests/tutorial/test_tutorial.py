# SPDX-License-Identifier: MIT
"""The steps of doc/TUTORIAL.md show what it says they show."""

import re
import shutil
import subprocess

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

PROGRAMS = ljspy.ROOT / "contrib/tutorial"
TEXT = (ljspy.ROOT / "doc/TUTORIAL.md").read_text()
LINES = 60000


def run_in(directory, *argv):
    result = subprocess.run([str(a) for a in argv], cwd=directory, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == ljspy.OK, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """A recording of each step, in a folder of its own, where its program is report.lua."""
    found = {}
    # The cured programs are done too soon to compare, even on a busy machine, unless they do it again.
    for step, times in (("1-slow", 1), ("2-joined", 20), ("3-compiled", 20)):
        directory = tmp_path_factory.mktemp("tutorial") / step
        shutil.copytree(PROGRAMS / step, directory)
        run_in(directory, ljspy.LJSPY, "record", "-r", ljspy.HIGH_RATE, "-o", f"{step}.ljspy", "--",
               ljspy.luajit("luajit"), "report.lua", LINES, times)
        found[step] = directory / f"{step}.ljspy"
    return found


def totals(recording):
    """Share of each function, with what it calls, in percent."""
    rows = re.findall(r"^ *[\d.]+ ± +[\d.]+ +([\d.]+) ± +[\d.]+ +[\d.]+ +[\d.]+  (.+)$",
                      ljspy.run("report", "-f", "text", recording, "-o", "-").stdout, re.MULTILINE)
    assert rows
    return {name: float(total) for total, name in rows}


def test_the_slow_function_is_the_one_that_joins(recordings):
    shares = totals(recordings["1-slow"])
    assert shares["render report.lua:41"] > 50, shares
    assert "render report.lua:41" in TEXT


def test_the_comparison_shows_that_it_has_gone(recordings):
    text = ljspy.run("diff", recordings["1-slow"], recordings["2-joined"]).stdout
    [line] = [line for line in text.splitlines() if line.endswith("  render report.lua")]
    change = re.findall(r"([-+][\d.]+) ± +[\d.]+ \*", line)
    assert change and float(change[-1]) < -40, line


def test_the_loop_that_makes_closures_is_not_compiled(recordings):
    directory = recordings["2-joined"].parent
    with ljspy.Target([ljspy.luajit("luajit"), directory / "report.lua", LINES, 1000]) as target:
        pattern = r"loop +(never|later) again: NYI: bytecode +slowest \S*report\.lua:30$"

        def is_told():
            rows = ljspy.run("traces", "-p", target.pid, "-d", "500ms").stdout
            return re.search(pattern, rows, re.MULTILINE)

        # Its name is known once a sample has met it.
        assert ljspy.wait_until(is_told, 60), ljspy.run("traces", "-p", target.pid).stdout


def test_each_step_says_the_same():
    """The cures change no result."""
    results = {run_in(PROGRAMS / step, ljspy.luajit("luajit"), "report.lua", 5000)
               for step in ("1-slow", "2-joined", "3-compiled")}
    assert len(results) == 1
