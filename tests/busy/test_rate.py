# SPDX-License-Identifier: MIT
"""A sample or a missed tick for each period of CPU time, whenever a target runs."""

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

AFTER_TICKS = ljspy.ROOT / "tests/busy/after_ticks.lua"


def test_what_never_runs_on_a_tick_is_seen(tmp_path):
    """The alarm of its CPU clock is looked at on ticks only, and never goes off."""
    with ljspy.Target([ljspy.luajit("luajit"), AFTER_TICKS], cwd="/") as target:
        target.wait_ready()
        stats = ljspy.record(tmp_path, "-p", target.pid, seconds=4).stats
    periods = stats["rate_hz"]["asked"] * stats["target_cpu_ms"] / 1e3
    print(f"{periods:.0f} periods of CPU time, {stats['samples']} samples, {stats['missed_ticks']} ticks missed")
    assert stats["samples"] + stats["missed_ticks"] >= periods - 2
    assert stats["samples"] > periods / 4
