# SPDX-License-Identifier: MIT
"""How the CPU time for a sample grows with the target's sizes. Wanted: linear or better."""

import itertools
import math
import statistics
import subprocess
import time

import measure

# Low enough for the largest sizes: if a tick's work takes as long as a period, ljspy
# misses ticks, and fewer samples share their cost.
RATE = 99
LOOKS = 3
DECADES = (10, 100, 1000, 10000)

CURVES = {
    "Lua frames": (DECADES, lambda n: measure.luajit("deep.lua", 600, n)),
    "traces": (DECADES, lambda n: measure.luajit("traces.lua", n)),
    "threads": ((1, 10, 100, 1000), lambda n: measure.luajit("threads.lua", n)),
    "mappings": ((50, 500, 5000), lambda n: measure.luajit("mappings.lua", n)),
    "functions": ((100, 1000, 10000, 100000), lambda n: measure.luajit("functions.lua", n)),
}

# A difference below this part of the smallest size's cost means nothing.
NOISE = 0.25
# Slope of log cost over log size: 1 is linear. The rest allows for noise, a factor of
# 1.4 per tenfold size; n log n passes, n to the 1.5 does not.
STEEPEST = 1.15


def steepest(sizes, costs):
    """The steepest slope between neighbours, in logarithms. From the smallest size to
    the next it uses the whole cost, from there on only the increase, because a large
    constant part would hide how the rest grows."""
    points = list(zip(sizes, costs))
    rises = [(size - sizes[0], max(cost - costs[0], NOISE * costs[0])) for size, cost in points[1:]]
    pairs = [(points[0], points[1]), *itertools.pairwise(rises)]
    return max(math.log(cost / before) / math.log(size / smaller) for (smaller, before), (size, cost) in pairs)


def curve(name, sizes, start, options):
    costs = []
    for size in sizes:
        with start(size) as target:
            target.read_until(b"ready\n", seconds=60)
            time.sleep(0.5)
            costs.append(measure.cpu_per_sample(target.pid, RATE, options, LOOKS))
        bases = {f"{sizes[0]}": costs[0]} if size != sizes[0] else {}
        yield measure.Row(f"CPU time for a sample: {size} {name}", "µs", costs[-1], bases)
    slope = steepest(sizes, [statistics.median(cost) for cost in costs])
    verdict = "linear or better" if slope <= STEEPEST else "worse than linear"
    yield measure.Row(f"... over {name}: {verdict}, steepest slope", "", [slope], wanted=STEEPEST)


def analysis(options):
    """Seconds of CPU time to analyse a heap, by its objects."""
    sizes = (100_000, 1_000_000, 10_000_000)  # smaller ones fit into caches
    costs = []
    for size in sizes:
        looks = [subprocess.run(measure.strings([options.programs / "heap", size]), check=True, capture_output=True,
                                text=True).stdout.split() for _ in range(LOOKS)]
        costs.append([1000 * float(look[2]) for look in looks])
        yield measure.Row(f"CPU time to analyse a heap: {size} objects", "ms", costs[-1], {})
    slope = steepest(sizes, [statistics.median(cost) for cost in costs])
    verdict = "linear or better" if slope <= STEEPEST else "worse than linear"
    yield measure.Row(f"... over objects: {verdict}, steepest slope", "", [slope], wanted=STEEPEST)


def rows(options):
    for name, (sizes, start) in CURVES.items():
        yield from curve(name, sizes, start, options)
    yield from analysis(options)
