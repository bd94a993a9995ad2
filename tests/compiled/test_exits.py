# SPDX-License-Identifier: MIT
"""Compare the exits that `ljspy traces` shows with what jit.attach() reports of the same traces."""

import json

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

PROGRAM = ljspy.ROOT / "tests/compiled/exits.lua"
HOTEXIT = 20


@pytest.fixture
def parked(runtime):
    """A program that waits; how often the VM says that it took each exit, and each exit's side trace."""
    with ljspy.Target([ljspy.luajit(runtime), PROGRAM]) as target:
        rows = [line.split("\t") for line in target.read_until(b"ready\n").splitlines()[:-1]]
        target.taken = {(int(trace), int(number)): int(count) for kind, trace, number, count in rows if kind == "taken"}
        target.sides = {(int(trace), int(number)): int(side) for kind, trace, number, side in rows if kind == "side"}
        yield target


def vm_of(target, *options):
    document = json.loads(ljspy.run("traces", "-p", target.pid, "--json", *options).stdout)
    return document["processes"][0]["vms"][0]


def line_of(text):
    return next(i for i, line in enumerate(PROGRAM.read_text().splitlines(), 1) if line.strip().startswith(text))


def test_exits_are_those_that_the_vm_reports(parked):
    vm = vm_of(parked, "-d", "100ms")
    assert vm["complete"] and vm["hotexit"] == HOTEXIT
    shown = {(row["trace"], row["exit"]): row for row in vm["exits"]}
    counted = {key: row["taken"] for key, row in shown.items() if not row["has_side"]}
    assert {3, 11} <= set(counted.values()) and max(counted.values()) >= HOTEXIT
    assert counted == {key: count for key, count in parked.taken.items() if key not in parked.sides}
    assert {key: row["side"] for key, row in shown.items() if row["has_side"]} == parked.sides and parked.sides


def test_exits_tell_where_they_lead_and_which_are_hot(parked):
    parked.write("\n")

    def is_hot():
        rows = vm_of(parked, "-d", "1s", "-r", ljspy.HIGH_RATE)["exits"]
        leads = {row["taken"]: row["to"]["line"] for row in rows if row["taken"]}
        assert leads[3] == line_of("sum = sum + 1") and leads[11] == line_of("sum = sum + 2")
        hot = max((row for row in rows if row["has_side"]), key=lambda row: row["side_share"])
        return hot["side_share"] > 0.05 and hot["to"]["line"] == line_of("sum = sum - 1")

    assert ljspy.wait_until(is_hot, seconds=ljspy.WORK_SECONDS)  # a second may have few samples


def test_text_tells_failed_attempts(parked):
    text = ljspy.run("traces", "-p", parked.pid, "-d", "100ms").stdout
    rows = text.split("Exits that were taken")[1].splitlines()[3:]
    assert any(" 3 of 20 " in row and f"exits.lua:{line_of('sum = sum + 1')}" in row for row in rows)
    count = max(count for key, count in parked.taken.items() if key not in parked.sides)
    assert any(f" {count}: {count - HOTEXIT + 1} attempts failed " in row for row in rows)


def test_aborts_are_counted(runtime):
    with ljspy.Target([ljspy.luajit(runtime), "-e", """
        jit.opt.start("hotloop=5")
        local aborts = {}
        local function note(what, number, func, pc)
            if what == "start" then aborts.at = require("jit.util").funcinfo(func, pc).currentline
            elseif what == "abort" then aborts[aborts.at] = (aborts[aborts.at] or 0) + 1 end
        end
        jit.off(note)
        jit.attach(note, "trace")
        local made
        local function few(n)
            for i = 1, n do made = function() return i end end
        end
        for _ = 1, 4000 do few(1) end
        for round = 1, 1000 do few(1) end
        jit.attach(note)
        jit.off()
        for line, count in pairs(aborts) do if line ~= "at" then print(line, count) end end
        io.write("ready\\n") io.flush() io.read()"""], limit=60) as target:
        truth = dict(map(int, row.split("\t")) for row in target.read_until(b"ready\n").splitlines()[:-1])
        vm = vm_of(target, "-d", "100ms")
    shown = {row["start"]["line"]: row["times"] for row in vm["not_compiled"] if row["cause"] == "aborted"}
    assert shown and all(times == truth[line] for line, times in shown.items())


def test_flushes_show_as_traces_that_are_gone(runtime):
    with ljspy.Target([ljspy.luajit(runtime), PROGRAM.parent / "flush.lua"]).wait_ready() as target:
        arguments = ["traces", "-p", target.pid, "-d", f"{ljspy.RECORDING_SECONDS}s", "-r", ljspy.HIGH_RATE]
        shown = ljspy.run_beside(target.pid, 1, *arguments, "--json")
        text = ljspy.run_beside(target.pid, 1, *arguments).stdout
    (process,) = json.loads(shown.stdout)["processes"]
    assert process["gone_traces"] > 0 and process["gone"] > 0
    assert " traces that are not there any more: flushed, made anew, or of a state that was closed\n" in text


@pytest.mark.parametrize("sizes, full", [("sizemcode=64,maxmcode=64", True), ("sizemcode=64,maxmcode=4096", False)])
def test_machine_code_without_more_areas_is_told(runtime, sizes, full):
    options = ", ".join(f'"{option}"' for option in sizes.split(","))
    with ljspy.busy(f"jit.opt.start({options})", program=ljspy.luajit(runtime)) as target:
        assert ljspy.wait_until(lambda: ljspy.cpu_ns(target.pid) > 3e8, seconds=ljspy.WORK_SECONDS)  # compiled by then
        assert vm_of(target, "-d", "300ms")["mcode_bytes"]["full"] == full
        assert ("no more areas" in ljspy.run("traces", "-p", target.pid, "-d", "100ms").stdout) == full
