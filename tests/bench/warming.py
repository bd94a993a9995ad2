# SPDX-License-Identifier: MIT
"""What ljspy takes while a program is new to it: each second of a recording that begins with the
program, beside the later ones."""

import contextlib
import json
import statistics
import subprocess
import time

import ljspy
import measure
import pause

SECONDS = 6
STEADY = 3  # the seconds from there on are compared with
RATE = 99
ROUNDS = 3


@contextlib.contextmanager
def program(path):
    with measure.luajit(path) as target:
        yield target.pid


def seconds_of(pid, options):
    """Milliseconds of CPU time that ljspy takes in each second, from when it traces the process, and
    the percentage of ticks that it misses."""
    command = measure.recorder([pid], SECONDS + 2, RATE, options)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while ljspy.status_field(pid, "TracerPid") == "0":
            time.sleep(0.001)
        begin, used = time.monotonic(), [measure.cpu_with_children(process)]
        for second in range(SECONDS):
            time.sleep(begin + second + 1 - time.monotonic())
            used.append(measure.cpu_with_children(process))
        process.wait()
    stats = json.loads(options.stats.read_text())
    missed = stats["missed_ticks"]
    return [(after - before) / 1e6 for before, after in zip(used, used[1:])], 100 * missed / (stats["samples"] + missed)


def rows(options):
    targets = {path.stem: (lambda path=path: program(path)) for path in sorted((measure.HERE / "warming").glob("*.lua"))}
    targets["nginx under load"] = lambda: pause.nginx(options)
    for name, start in targets.items():
        dearest, steady, missed = [], [], []
        for _ in range(min(ROUNDS, options.pairs)):
            with start() as pid:
                seconds, lost = seconds_of(pid, options)
            dearest.append(max(seconds))
            steady.append(statistics.median(seconds[STEADY:]))
            missed.append(lost)
        yield measure.Row(f"CPU time in the dearest second, {name}, {RATE} Hz", "ms", dearest, {"later seconds": steady}, 2)
        yield measure.Row(f"ticks missed, {name}, {RATE} Hz", "%", missed, wanted=1)
