# SPDX-License-Identifier: MIT
"""The profile shows what the VM does."""

import collections

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

PROGRAM = ljspy.ROOT / "tests/compiled/states.lua"
STATES = {"interpreted", "compiled", "c", "gc", "recording", "optimising", "assembling", "exit"}
FUNCTIONS = {"interpreted", "compiled", "in_c", "collecting"}


def weights(folded):
    """Microseconds by (function of states.lua, state at the root)."""
    found = collections.Counter()
    for line in folded.splitlines():
        stack, _, weight = line.rpartition(" ")
        state, *frames = stack.split(";")
        names = [frame.split()[0] for frame in frames if "states.lua:" in frame]
        if names:
            found[names[0], state] += int(weight)
    return found


def record_beside(pid, seconds, *options):
    arguments = ["record", "-p", pid, "-d", f"{ljspy.RECORDING_SECONDS}s", "-r", ljspy.HIGH_RATE]
    done = ljspy.run_beside(pid, seconds, *arguments, *options)
    assert done.returncode == ljspy.OK, done.stderr


def record(pid, directory):
    found = collections.Counter()
    for number in range(ljspy.RECORDINGS_MAX):
        recording = directory / f"states{number}.ljspy"
        record_beside(pid, 2, "-o", recording)
        found += weights(ljspy.run("report", recording, "--vm-state", "-o", "-", "-f", "folded").stdout)
        if {state for _, state in found} >= STATES and {name for name, _ in found} >= FUNCTIONS:
            break
    return found


def test_the_profile_is_split_by_state(runtime, tmp_path):
    """--vm-state of record and report agree. Each function exists for one state, which
    has most of its time; no sample has an impossible state."""
    direct = tmp_path / "states.folded"
    with ljspy.Target([ljspy.luajit(runtime), PROGRAM, 50]).wait_ready() as target:
        found = record(target.pid, tmp_path)
        record_beside(target.pid, 0.5, "--vm-state", "-o", direct)
    most = {}
    for (name, state), _ in sorted(found.items(), key=lambda item: item[1]):
        most[name] = state
    assert {state for _, state in found} >= STATES
    assert most["interpreted"] == "interpreted"
    assert most["in_c"] == "c"
    assert most["collecting"] == "gc"
    # C code is C even if compiled code calls it.
    assert found["compiled", "compiled"] > 0
    for name, states in {
        "interpreted": {"interpreted"},
        "in_c": {"interpreted", "c"},
        "compiled": {"compiled", "c", "interpreted", "exit", "recording", "optimising", "assembling"},
        "collecting": {"interpreted", "c", "gc"},
    }.items():
        assert {state for where, state in found if where == name} <= states, name
    assert {line.split(";")[0] for line in direct.read_text().splitlines()} & STATES
