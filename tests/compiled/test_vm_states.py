"""What the VM is doing, in the profile."""

import collections

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

PROGRAM = ljspy.ROOT / "tests/compiled/states.lua"
STATES = {"interpreted", "compiled", "c", "gc", "recording", "optimising", "assembling", "exit"}


def weights(folded):
    """Microseconds by function of states.lua and state at the root."""
    found = collections.Counter()
    for line in folded.splitlines():
        stack, _, weight = line.rpartition(" ")
        state, *frames = stack.split(";")
        names = [frame.split()[0] for frame in frames if "states.lua:" in frame]
        if names:
            found[names[0], state] += int(weight)
    return found


def test_the_profile_is_split_by_state(runtime, tmp_path):
    """By --vm-state of record and report alike; in each function, the state that it is
    there for has the most, and no sample says what cannot be."""
    recording, direct = tmp_path / "states.ljspy", tmp_path / "states.folded"
    with ljspy.Target([ljspy.luajit(runtime), PROGRAM, 20]).wait_ready() as target:
        ljspy.run("record", "-p", target.pid, "-d", "2s", "-r", ljspy.HIGH_RATE, "-o", recording)
        ljspy.run("record", "-p", target.pid, "-d", "500ms", "-r", ljspy.HIGH_RATE, "--vm-state", "-o", direct)
    found = weights(ljspy.run("report", recording, "--vm-state", "-o", "-", "-f", "folded").stdout)
    most = {}
    for (name, state), _ in sorted(found.items(), key=lambda item: item[1]):
        most[name] = state
    assert {state for _, state in found} >= STATES
    assert most["interpreted"] == "interpreted"
    assert most["in_c"] == "c"
    assert most["collecting"] == "gc"
    # Called from compiled code, C code is C.
    assert found["compiled", "compiled"] > 0
    for name, states in {
        "interpreted": {"interpreted"},
        "in_c": {"interpreted", "c"},
        "compiled": {"compiled", "c", "interpreted", "exit", "recording", "optimising", "assembling"},
        "collecting": {"interpreted", "c", "gc"},
    }.items():
        assert {state for where, state in found if where == name} <= states, name
    assert {line.split(";")[0] for line in direct.read_text().splitlines()} & STATES
