"""How much longer a fixed amount of work takes with ljspy beside it."""

import contextlib
import re

import measure

WANTED = {99: 1.005, 999: 1.03}
KINDS = ("interpreted", "compiled", "in_c")


def elapsed(kind, amount, rate, options):
    """Seconds that the work takes, with a recording at RATE that has begun before it, or with none."""
    with measure.luajit("work.lua", kind, amount) as target:
        with measure.recording(target.pid, rate, options) if rate else contextlib.nullcontext():
            return measure.working_time(target)


def requests(server, rate, options):
    """Requests per second and the 99th percentile of their latency in ms."""
    with measure.recording(server.worker, rate, options) if rate else contextlib.nullcontext():
        seconds = max(1, round(options.seconds))
        report = server.load("/work", seconds, options=("--latency",)).communicate()[0]
    value, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", report).groups()
    return (
        float(re.search(r"Requests/sec:\s+([\d.]+)", report)[1]),
        float(value) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit],
    )


def rows(options):
    for kind in KINDS:
        amount = measure.amount_for(lambda some: elapsed(kind, some, None, options), options.seconds)
        for rate, wanted in WANTED.items():
            pairs = [
                (elapsed(kind, amount, None, options), elapsed(kind, amount, rate, options))
                for _ in range(options.pairs)
            ]
            bases, values = zip(*pairs)
            what = f"time for {kind.replace('_', ' ')} work, {rate} Hz"
            yield measure.Row(what, "s", values, bases, wanted, "alone")
    with measure.serving(options) as server:
        requests(server, None, options)
        pairs = [(requests(server, None, options), requests(server, 99, options)) for _ in range(options.pairs)]
    alone, beside = zip(*pairs)
    # Time for a request, so that more is worse in every row.
    yield measure.Row(
        "nginx, time for a request, 99 Hz",
        "µs",
        [1e6 / one[0] for one in beside],
        [1e6 / one[0] for one in alone],
        1.01,
        "alone",
    )
    yield measure.Row(
        "nginx, p99 latency, 99 Hz", "ms", [one[1] for one in beside], [one[1] for one in alone], 1.01, "alone"
    )
