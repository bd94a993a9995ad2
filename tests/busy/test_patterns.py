# SPDX-License-Identifier: MIT
"""Stacks in patterns that PCRE compiled have their callers, also when the CPU has other work."""

import os
import re

import pytest

import ljspy
import surroundings

pytestmark = pytest.mark.usefixtures("built")

SCRIPT = ljspy.ROOT / "tests/untabled/untabled.lua"
SECONDS = max(2, int(os.environ.get("BUSY_SECONDS", 0)))
CPU = 0


@pytest.mark.parametrize("count", [1, 3])
def test_callers_of_compiled_patterns(count, jit, tmp_path):
    with ljspy.Target([ljspy.luajit("luajit"), SCRIPT, jit, SECONDS + 40, "pcre"], limit=SECONDS + 60) as target:
        if target.read_until(b"\n").startswith("no "):
            pytest.skip("no PCRE")
        os.sched_setaffinity(target.pid, {CPU})
        with surroundings.spinners(count, CPU):
            recorded = ljspy.record_native(tmp_path, "-p", target.pid, seconds=SECONDS)
    # A thread that ljspy did not look at has no stack.
    stacks = [(";".join(frames), weight) for frames, weight in recorded if len(frames) > 1]
    whole = sum(weight for _, weight in stacks)
    assert whole, recorded
    seen = sum(weight for stack, weight in stacks if re.search(r"bar \S+;foo \S+", stack)) / whole
    print(f"{count} spinners, jit {jit}: under foo truth 1, seen {seen:.4f} of {whole / 1e6:.2f} s")
    assert seen >= 0.95, stacks
    assert not any("[lost: native" in stack for stack, _ in stacks), stacks
