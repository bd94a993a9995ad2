# SPDX-License-Identifier: MIT
"""How long ljspy holds a thread, compared with the floor on the same target."""

import contextlib
import os
import time

import measure

RATES = (99, 999)


@contextlib.contextmanager
def plain(_):
    with measure.at_work("interpreted") as target:
        yield target.pid


@contextlib.contextmanager
def nginx(options):
    with measure.serving(options) as server:
        load = server.load("/work", 600)
        try:
            yield server.worker
        finally:
            load.terminate()
            load.wait()


@contextlib.contextmanager
def deep(_):
    with measure.luajit("deep.lua", 600, 200) as target:
        yield target.pid


@contextlib.contextmanager
def cold(_):
    with measure.luajit("functions.lua", "new") as target:
        yield target.pid


TARGETS = {
    "plain luajit": plain,
    "nginx under load": nginx,
    "200 Lua frames": deep,
    "new functions all the time": cold,
}


def cases():
    """Each target, and the words before ljspy's command. Root measures what other users have, too."""
    for name, start in TARGETS.items():
        yield name, start, ()
    if os.geteuid() == 0:
        yield "nginx under load, ljspy without priority", nginx, measure.WITHOUT_PRIORITY


def rows(options):
    for name, start, before in cases():
        with start(options) as pid:
            time.sleep(0.3)
            for rate in RATES:
                floors, pauses = [], []
                for _ in range(options.pairs):
                    floors.append(measure.floor(pid, rate, options))
                    pauses.append(measure.record(pid, options.seconds, rate, options, before)["pause_us"])
                for point, wanted in (("p50", 1.3), ("p99", 2)):
                    yield measure.Row(
                        f"pause, {name}, {rate} Hz, {point}",
                        "µs",
                        [pause[point] for pause in pauses],
                        {"floor": [one[point] for one in floors]},
                        wanted,
                    )
