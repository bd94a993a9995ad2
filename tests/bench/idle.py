# SPDX-License-Identifier: MIT
"""What it costs to watch a process that sleeps."""

import time

import ljspy
import measure

SETTLED = 6.5  # seconds after which ljspy treats a sleeping target as idle
LOOK = 3


def rows(options):
    woken, shares = [], []
    with measure.luajit("work.lua", "interpreted") as target:  # sleeps: nothing tells it to begin
        with measure.recording(target.pid, 99, options) as process:
            time.sleep(SETTLED)
            for _ in range(3):
                slept, used = ljspy.sleeps(target.pid), measure.cpu_with_children(process)
                time.sleep(LOOK)
                woken.append(ljspy.sleeps(target.pid) - slept)
                shares.append((measure.cpu_with_children(process) - used) / 1e9 / LOOK * 100)
    yield measure.Row("idle target: wake-ups of it in 3 s", "times", woken, wanted=0)
    yield measure.Row("idle target: share of a core that ljspy takes", "%", shares, wanted=0.1)
