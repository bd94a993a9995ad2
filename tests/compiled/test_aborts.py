# SPDX-License-Identifier: MIT
"""`ljspy traces` tells why code is not compiled: compared with what LuaJIT reports to jit.attach()."""

import collections
import json
import pathlib
import subprocess

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

SCRIPT = pathlib.Path(__file__).parent / "aborts.lua"
# The penalty doubles from 72, and the attempt after which it would be more than 60,000 is the last.
ATTEMPTS = 11
LINES = SCRIPT.read_text().splitlines()


def builds():
    """Each unpacked luajit for this machine, and the folder with its jit.vmdef."""
    found = {}
    for path in sorted(ljspy.PACKAGES.glob("**/usr/bin/luajit")):
        package = path.parent.parent.parent
        vmdefs = sorted(package.glob("usr/share/luajit-*/jit/vmdef.lua"))
        if vmdefs and package.name in ljspy.RUNTIMES:
            found[str(package.relative_to(ljspy.PACKAGES))] = (path, vmdefs[0].parent.parent)
    return found


def line_of(function, text):
    """The first line from this function's on that begins with the text."""
    begin = LINES.index(f"local function {function}(n)")
    return next(i for i, line in enumerate(LINES, 1) if i > begin and line.strip().startswith(text))


@pytest.fixture(params=builds())
def target(request):
    program, share = builds()[request.param]
    libraries = ":".join(map(str, program.parent.parent.glob("lib/*-linux-gnu")))
    argv = ["env", f"LD_LIBRARY_PATH={libraries}", f"LUA_PATH={share}/?.lua", program]
    if subprocess.run([*argv, "-v"], check=False, capture_output=True, timeout=ljspy.READY_SECONDS).returncode:
        pytest.skip("does not run here")
    with ljspy.Target([*argv, SCRIPT]) as target:
        target.told = collections.defaultdict(list)
        for line in target.read_until(b"ready\n").splitlines()[:-1]:
            what, number, text = line.split("\t")
            target.told[what, int(number)].append(text)
        yield target


def table(target, *options):
    # On a busy machine the target may get no CPU all the while, halfway through a change.
    for _ in range(5):
        document = json.loads(ljspy.run("traces", "-p", target.pid, "--json", *options).stdout)
        [process] = document["processes"]
        [vm] = process["vms"]
        if vm["complete"]:
            break
    assert vm["complete"]
    return {(row["what"], row["start"]["line"]): row for row in vm["not_compiled"]}


def test_the_reason_is_the_one_that_luajit_reports(target):
    rows = table(target, "-d", "100ms")
    for function in ("closures", "calls_switched_off", "leaves", "long", "few"):
        place = ("loop", line_of(function, "for j" if function == "leaves" else "for "))
        # An abort that ends in blacklisting leaves the reason of the one before.
        reasons = [text for text in target.told[place] if text != "retry recording"]
        assert rows[place]["reason"] in reasons[-2:], (function, rows[place], reasons)
        given_up = len(reasons) == ATTEMPTS
        assert rows[place]["cause"] == ("blacklisted" if given_up else "aborted"), (function, rows[place], reasons)
    assert {row["cause"] for row in rows.values()} >= {"aborted", "blacklisted"}
    for place, row in rows.items():
        assert row["cause"] == "off" or row["reason"] in target.told[place], (place, row)
    assert len({row["reason"] for row in rows.values()}) >= 4, rows


def test_each_place_has_the_time_of_its_function(target):
    target.write("\n")
    # What is switched off is listed once a sample has seen it. On a busy machine the first second may have so few
    # samples that one or two elsewhere count much.
    for seconds in (1, 4, 16):
        rows = table(target, "-d", f"{seconds}s", "-r", ljspy.HIGH_RATE)
        closures = rows["loop", line_of("closures", "for ")]
        off = next((row for row in rows.values() if row["cause"] == "off"), None)
        if off and closures["share"] + off["share"] > 0.9:
            break
    assert off, rows
    assert off["start"]["firstline"] == LINES.index("local function switched_off(n)") + 1
    assert off["reason"] is None
    assert closures["share"] + off["share"] > 0.9, rows
    assert rows["loop", line_of("long", "for ")]["share"] == 0
