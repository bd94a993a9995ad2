# SPDX-License-Identifier: MIT
"""Each period of CPU time has a sample or a missed tick, no matter when a target runs."""

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

AFTER_TICKS = ljspy.ROOT / "tests/busy/after_ticks.lua"


def test_what_never_runs_on_a_tick_is_seen(tmp_path):
    """The kernel checks the alarm of its CPU clock only on ticks, so the alarm never goes off."""
    with ljspy.Target([ljspy.luajit("luajit"), AFTER_TICKS], cwd="/", limit=120) as target:
        target.wait_ready()
        for seconds in (4, 16):  # these are few periods, and beside others fewer
            stats = ljspy.record(tmp_path, "-p", target.pid, seconds=seconds).stats
            periods = stats["rate_hz"]["asked"] * stats["target_cpu_ms"] / 1e3
            print(f"{periods:.0f} periods of CPU time, {stats['samples']} samples, {stats['missed_ticks']} ticks missed")
            assert stats["samples"] + stats["missed_ticks"] >= periods - 2
            if stats["samples"] > periods / 4:
                break
    assert stats["samples"] > periods / 4
