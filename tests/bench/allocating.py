# SPDX-License-Identifier: MIT
"""How much longer a program that allocates takes with record --alloc beside it, with record, and with the floor."""

import contextlib
import time

import measure

RATES = (99, 199, 499)
WANTED = 1.01  # beside the floor, at the rate that --alloc has unless another one is given: 499 Hz
WARM_UP = 1  # seconds until everything is compiled


def beside(setting, pid, options):
    if setting is None:
        return contextlib.nullcontext()
    who, rate = setting
    if who == "floor":
        return measure.beside_floor(pid, rate, options)
    extra = ("--alloc",) if who == "alloc" else ()
    return measure.beside([*measure.recorder([pid], 600, rate, options), *extra], [pid])


def rows(options):
    settings = [(who, rate) for rate in RATES for who in ("alloc", "record", "floor")]
    with measure.at_work("allocating", "report") as target:
        time.sleep(WARM_UP)

        def look(setting):
            with beside(setting, target.pid, options):
                return measure.piece_us(target, options.seconds)

        found = measure.interleaved(settings, look, options.pairs)
    for (who, rate), pairs in found.items():
        values, alone = zip(*pairs)
        what = {"alloc": "with record --alloc", "record": "with record", "floor": "beside the floor"}[who]
        compared = {"alone": list(alone)}
        if who == "alloc":
            compared["floor"] = measure.beside_alone(found["floor", rate], alone)
        wanted = (WANTED,) if (who, rate) == ("alloc", RATES[-1]) else ()
        yield measure.Row(f"time for allocating work, {rate} Hz, {what}", "µs", list(values), compared, *wanted)
