"""CPU time for a sample, against what might make it grow. Wanted: linear or better."""

import time

import measure

RATE = 499
DECADES = (10, 100, 1000, 10000)

CURVES = {
    "Lua frames": (DECADES, lambda n: measure.luajit("deep.lua", 600, n)),
    "traces": (DECADES, lambda n: measure.luajit("traces.lua", n)),
    "threads": ((1, 10, 100, 1000), lambda n: measure.luajit("threads.lua", n)),
    "mappings": ((50, 500, 5000), lambda n: measure.luajit("mappings.lua", n)),
    "functions": ((100, 1000, 10000, 100000), lambda n: measure.luajit("functions.lua", n)),
}


def rows(options):
    for name, (sizes, start) in CURVES.items():
        smallest = None
        for size in sizes:
            with start(size) as target:
                target.read_until(b"ready\n", seconds=60)
                time.sleep(0.5)
                cost = [measure.cpu_per_sample(target.pid, RATE, options) for _ in range(3)]
            if smallest is None:
                smallest = cost
                yield measure.Row(f"CPU time for a sample: {size} {name}", "µs", cost)
                continue
            wanted = size / sizes[0]
            yield measure.Row(
                f"CPU time for a sample: {size} {name}", "µs", cost, smallest, wanted, f"{sizes[0]}"
            )
