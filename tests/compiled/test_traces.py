# SPDX-License-Identifier: MIT
"""Compare `ljspy traces` with what jit.util says of the same traces."""

import json

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

PROGRAM = ljspy.ROOT / "tests/compiled/table.lua"


@pytest.fixture
def parked(runtime):
    """A program that waits, and what jit.util says of its traces, by number."""
    with ljspy.Target([ljspy.luajit(runtime), PROGRAM]) as target:
        target.truth = truth_of(target.read_until(b"ready\n"))
        yield target


def truth_of(said):
    return {int(row[0]): row[1:] for row in (line.split("\t") for line in said.split("ready")[0].splitlines())}


def table(target, *options):
    document = json.loads(ljspy.run("traces", "-p", target.pid, "--json", *options).stdout)
    (process,) = document["processes"]
    (vm,) = process["vms"]
    return process, vm


def run_beside(target, *options):
    arguments = ["traces", "-p", target.pid, "-d", f"{ljspy.RECORDING_SECONDS}s", "-r", ljspy.HIGH_RATE]
    return ljspy.run_beside(target.pid, 1, *arguments, *options)


def line_of(text):
    """The first line of the program that begins with the text."""
    return next(i for i, line in enumerate(PROGRAM.read_text().splitlines(), 1) if line.strip().startswith(text))


def test_the_table_is_what_the_vm_says(parked):
    assert_table(*table(parked, "-d", "100ms"), parked.truth)


def assert_table(process, vm, truth):
    assert process["samples"] == 0 and vm["complete"] and vm["jit"]
    assert {trace["number"] for trace in vm["traces"]} == set(truth)
    for trace in vm["traces"]:
        link, linktype, exits, instructions, mcode_bytes, mcode, parent = truth[trace["number"]]
        assert (trace["link"] or 0, trace["linktype"]) == (int(link), linktype)
        assert (trace["snapshots"], trace["instructions"]) == (int(exits), int(instructions))
        assert (trace["mcode_bytes"], trace["mcode"]) == (int(mcode_bytes), mcode)
        assert (trace["parent"] or 0) == int(parent)
    kinds = {trace["kind"] for trace in vm["traces"]}
    assert kinds == {"root", "side", "stitch"}
    numbers = {trace["number"]: trace for trace in vm["traces"]}
    for trace in vm["traces"]:
        parent = numbers.get(trace["parent"])
        assert bool(parent) == (trace["kind"] != "root")
        if trace["kind"] == "side":
            assert trace["exit"] < parent["snapshots"]
            assert trace["root"] == (parent["root"] or parent["number"])
        if trace["kind"] == "stitch":
            assert (parent["linktype"], parent["link"]) == ("stitch", trace["number"])
    # A stitched trace links to itself if no trace follows it.
    assert any(trace["kind"] == "stitch" and trace["link"] == trace["number"] for trace in vm["traces"])
    assert vm["mcode_bytes"]["used"] == sum(trace["mcode_bytes"] for trace in vm["traces"])
    assert vm["mcode_bytes"]["used"] <= vm["mcode_bytes"]["allocated"] <= vm["mcode_bytes"]["maximum"] == 256 << 10


def test_where_traces_start_and_what_was_given_up(parked):
    _, vm = table(parked, "-d", "100ms")
    starts = {(trace["start"]["firstline"], trace["start"]["line"]) for trace in vm["traces"] if trace["kind"] == "root"}
    assert (line_of("local function branches"), line_of("for i = 1, n do")) in starts
    assert (line_of("local function down"), line_of("local function down")) in starts
    assert all(trace["start"]["file"].endswith("table.lua") for trace in vm["traces"])
    closures = line_of("local function closures")
    given_up = {(one["what"], one["start"]["firstline"], one["start"]["line"]) for one in vm["blacklisted"]}
    assert ("loop", closures, closures + 1) in given_up
    assert not any(firstline == line_of("local function branches") for _, firstline, _ in given_up)


def test_shares_and_names_come_from_samples(parked):
    parked.write("\n")
    (process,) = json.loads(run_beside(parked, "--json").stdout)["processes"]
    (vm,) = process["vms"]
    first = vm["traces"][0]
    assert first["share"] > 0.5 and first["samples"] > 0
    assert first["start"]["name"] == "hot"
    assert first["start"]["firstline"] == line_of("local function hot")
    assert process["states"]["compiled"] > 0.5
    assert sum(process["states"].values()) == pytest.approx(1)
    assert sum(trace["share"] for trace in vm["traces"]) + process["gone"] <= 1.0001
    shown = run_beside(parked).stdout
    assert "hot " in next(line for line in shown.splitlines() if " loop " in line)
    assert "never again: NYI: bytecode " in shown
