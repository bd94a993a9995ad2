"""What it costs to watch a process that sleeps."""

import time

import ljspy
import measure

SETTLED = 1.5  # seconds until a target that has not run is idle
LOOK = 3


def rows(options):
    woken, shares = [], []
    with measure.luajit("work.lua", "interpreted") as target:  # waits to be told to begin
        with measure.recording(target.pid, 99, options) as process:
            time.sleep(SETTLED)
            for _ in range(3):
                slept, used = ljspy.sleeps(target.pid), ljspy.cpu_ns(process.pid)
                time.sleep(LOOK)
                woken.append(ljspy.sleeps(target.pid) - slept)
                shares.append((ljspy.cpu_ns(process.pid) - used) / 1e9 / LOOK * 100)
    yield measure.Row("idle target: wake-ups of it in 3 s", "times", woken, wanted=0)
    yield measure.Row("idle target: share of a core that ljspy takes", "%", shares, wanted=0.1)
