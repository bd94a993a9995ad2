# SPDX-License-Identifier: MIT
"""Compare what two builds of ljspy cost, in turns on the same targets, and say what has become slower:

    against.py BEFORE NOW DIRECTORY PAIRS SECONDS

It judges ratios, not times. A figure counts as slower or quicker if all pairs say so, of many all but one.
"""

import json
import pathlib
import sys
import time

import measure
import pause

import ljspy

MANY = 11  # pairs: as seldom by chance as all of seven
RATE = 499
TARGETS = ("plain luajit", "nginx under load")


def verdict(ratios):
    """What the pairs agree on; one of many may disagree."""
    enough = len(ratios) - (len(ratios) >= MANY)
    if sum(ratio > 1 for ratio in ratios) >= enough:
        return "slower"
    return "quicker" if sum(ratio < 1 for ratio in ratios) >= enough else "the same"


def compare(name, builds, options):
    """Rows of figures on the target of that name: now, beside before."""
    pauses, costs = ({build: [] for build in builds} for _ in range(2))
    with pause.TARGETS[name](options) as pid:
        time.sleep(measure.SETTLED)
        for pair in range(options.pairs):
            for build in builds if pair % 2 else reversed(builds):
                ljspy.LJSPY = build
                costs[build] += measure.cpu_per_sample(pid, RATE, options)
                pauses[build].append(json.loads(options.stats.read_text())["pause_us"]["p50"])
    before, now = builds
    for what, figures in (("pause, p50", pauses), ("CPU time for a sample", costs)):
        yield measure.Row(f"{what}, {name}", "µs", figures[now], {"before": figures[before]})


def main():
    before, now, directory, pairs, seconds = sys.argv[1:]
    directory = pathlib.Path(directory).resolve()
    directory.mkdir(parents=True, exist_ok=True)
    options = measure.Options(int(pairs), float(seconds), directory, directory)
    builds = [pathlib.Path(build).resolve() for build in (before, now)]
    rows = [row for name in TARGETS for row in compare(name, builds, options)]
    print(measure.table(rows))
    for row in rows:
        ratios = [value / base for value, base in zip(row.values, row.bases["before"])]
        print(f"{row.what}: {verdict(ratios)}")


if __name__ == "__main__":
    main()
