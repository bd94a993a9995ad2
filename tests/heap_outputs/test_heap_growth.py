# SPDX-License-Identifier: MIT
"""Leak suspects of a series: a leak is one, and what is made and dropped again is none."""

import pathlib
import re

import pytest

import ljspy
from test_heap_outputs import CLOSURE, SERVE

pytestmark = pytest.mark.usefixtures("built")

HERE = pathlib.Path(__file__).resolve().parent
LOOKS, STEPS = 4, 500
# What holds each leak; of cdata also their finalizers.
OWN = {
    "cache": ('"cache"',),
    "timer": (CLOSURE, '"timers"'),
    "coroutine": (SERVE, '"waiting"'),
    "cdata": ("cdata struct reading", '"readings"', "finalizers"),
}


def suspects(kind, directory):
    """The rows of the two tables of suspects."""
    argv = [ljspy.luajit("luajit"), "leak.lua", STEPS, kind]
    with ljspy.Target(argv, cwd=HERE).wait_ready() as target:
        for number in range(LOOKS):
            # The first time all tables get their sizes.
            target.write("more\n")
            target.wait_ready()
            ljspy.sleeps(target.pid)
            done = ljspy.run("heap", "-p", target.pid, "-o", directory / f"{number}.heap")
            assert done.returncode == ljspy.OK, done.stderr
    done = ljspy.run("report", *sorted(directory.glob("*.heap")))
    assert done.returncode == ljspy.OK and "Totals over time" in done.stdout, done.stderr
    tables = re.findall(r"^(?:Grew in every interval|Grew, and holds more than a tenth.*)\n.*\n((?: .*\n)+)", done.stdout, re.MULTILINE)
    return [row for table in tables for row in table.splitlines()], done.stdout


@pytest.mark.parametrize("kind", OWN)
def test_a_leak_is_the_only_suspect(kind, tmp_path):
    rows, text = suspects(kind, tmp_path)
    assert rows, text
    assert any(f"+{STEPS * (LOOKS - 1)}  " in row for row in rows), text
    for row in rows:
        assert any(name in row for name in OWN[kind]), text


def test_no_leak_has_no_suspect(tmp_path):
    rows, text = suspects("none", tmp_path)
    assert not rows and "No path grew in every interval." in text
