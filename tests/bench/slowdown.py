# SPDX-License-Identifier: MIT
"""How much longer the same work takes with ljspy beside it, and with the floor.

For each kind of work, one process does equal pieces of it all the time. The benchmark
measures it alone and beside others in turn, so that differences between processes,
in addresses and traces, do not count. A process beside it begins before a look and
ends before the next.
"""

import contextlib
import re
import resource
import time

import ljspy
import measure

WANTED = {99: 1.005, 999: 1.03}
KINDS = ("interpreted", "compiled", "in_c")
WARM_UP = 1  # seconds until everything is compiled

NGINX_RATE = 99
NGINX_WANTED = 1.01
NGINX_SECONDS = 2  # of a look: 1 % of its requests are hundreds
# wrk waits for each answer. With one connection, it and nginx take turns, which leaves
# one CPU's time idle; with many, the worker always has something to do.
LOADS = {"1 connection": 1, "16 connections": 16}


def beside(setting, pid, options):
    """Run what SETTING says beside the target: (who, rate), or None for nothing."""
    if setting is None:
        return contextlib.nullcontext()
    who, rate = setting
    return {"ljspy": measure.recording, "floor": measure.beside_floor}[who](pid, rate, options)


def rows_beside(what, unit, found, rate, wanted):
    """FOUND is as measure.interleaved() returns it."""
    ours, alone = zip(*found["ljspy", rate])
    floors, floors_alone = zip(*found["floor", rate])
    scaled = measure.beside_alone(found["floor", rate], alone)
    yield measure.Row(f"{what}, {rate} Hz", unit, list(ours), {"alone": list(alone), "floor": scaled}, wanted)
    yield measure.Row(f"{what}, {rate} Hz, beside the floor", unit, list(floors), {"alone": list(floors_alone)})


def work(kind, options):
    what = f"time for {kind.replace('_', ' ')} work"
    with measure.at_work(kind, "report") as target:
        time.sleep(WARM_UP)

        def look(setting):
            if setting == "another":
                with measure.at_work(kind):
                    time.sleep(measure.SETTLED)
                    return measure.piece_us(target, options.seconds)
            with beside(setting, target.pid, options):
                return measure.piece_us(target, options.seconds)

        settings = [(who, rate) for rate in WANTED for who in ("ljspy", "floor")]
        found = measure.interleaved([*settings, "another"], look, options.pairs)
    for rate, wanted in WANTED.items():
        yield from rows_beside(what, "µs", found, rate, wanted)
    values, bases = zip(*found["another"])
    yield measure.Row(f"{what}, beside the same on the other CPU", "µs", list(values), {"alone": list(bases)})


def requests(server, connections, seconds):
    """Microseconds for a request, the 99th percentile of the latency, and how many CPUs
    the worker and wrk used."""
    begin, used = time.monotonic(), ljspy.cpu_ns(server.worker) / 1e9 + cpu_of_ended()
    report = server.load("/work", seconds, connections, options=("--latency",)).communicate()[0]
    used = ljspy.cpu_ns(server.worker) / 1e9 + cpu_of_ended() - used
    value, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", report).groups()
    return (
        1e6 / float(re.search(r"Requests/sec:\s+([\d.]+)", report)[1]),
        float(value) * {"us": 1, "ms": 1e3, "s": 1e6}[unit],
        used / (time.monotonic() - begin),
    )


def cpu_of_ended():
    """Seconds of CPU time that ended child processes used."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def nginx(options):
    seconds = max(NGINX_SECONDS, round(options.seconds))
    settings = [("ljspy", NGINX_RATE), ("floor", NGINX_RATE)]
    for load, connections in LOADS.items():
        with measure.serving(options) as server:
            requests(server, connections, 1)

            def look(setting):
                with beside(setting, server.worker, options):
                    return requests(server, connections, seconds)

            found = measure.interleaved(settings, look, options.pairs)
        for at, what in enumerate(("time for a request", "p99 latency")):
            one = {key: [(value[at], base[at]) for value, base in pairs] for key, pairs in found.items()}
            yield from rows_beside(f"nginx, {load}, {what}", "µs", one, NGINX_RATE, NGINX_WANTED)
        at_work = [base[2] for pairs in found.values() for _, base in pairs]
        yield measure.Row(f"nginx, {load}, CPUs that it and wrk use alone", "", at_work)


def rows(options):
    for kind in KINDS:
        yield from work(kind, options)
    yield from nginx(options)
