#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""How long ljspy heap holds a busy process, for `make heap-holds`.

measure_holds.py LOOKS [FILE]: looks so often at each program, and puts the table into FILE.

The floor is the time that a plain copy of the same bytes takes, with one CPU, measured before each look.
"""

import os
import pathlib
import platform
import statistics
import sys
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parent)]

import heaps  # noqa: E402, pylint: disable=wrong-import-position
import ljspy  # noqa: E402, pylint: disable=wrong-import-position
import written  # noqa: E402, pylint: disable=wrong-import-position

FLOOR_MB = 128  # more than caches have
PROGRAMS = (  # what, script, megabytes, --max-pause in ms or 0, wanted
    ("50 MB, little changes", "busy_cache.lua", 50, 0, "≤ 10 ms"),
    ("50 MB, all new in a moment", "growing.lua", 50, 0, "≤ 10 ms"),
    ("1 GB, little changes", "busy_cache.lua", 1000, 0, "≤ 50 ms"),
    ("1 GB, little changes, `--max-pause 50ms`", "busy_cache.lua", 1000, 50, "≤ 50 ms"),
)
SECONDS_MAX = 600


def copy_ms(block, copy):
    begin = time.perf_counter()
    copy[:] = block
    return (time.perf_counter() - begin) * 1000 / FLOOR_MB


def row(what, script, megabytes, pause_ms, wanted, looks):
    run = heaps.builds.Program("bookworm", "luajit", "usr/bin/luajit").prepare()
    block = memoryview(bytes(FLOOR_MB << 20))
    copy = memoryview(bytearray(block))
    holds, ratios, methods, left = [], [], set(), []
    with ljspy.Target([*run.command, heaps.HERE / script, megabytes], limit=SECONDS_MAX) as target:
        target.read_until(b"ready\n", seconds=SECONDS_MAX)
        for _ in range(looks):
            floor = copy_ms(block, copy)
            heap = heaps.account(target.pid, pause_ms * 1000)
            if not heap:
                methods.add("refused")
                continue
            holds.append(heap.longest_us / 1000)
            ratios.append(holds[-1] / (floor * heap.total / 2**20))
            methods.add(heap.method)
            left.append(heap.changed_pages)
            assert heap.sum == heap.total or heap.changed_pages
    held = f"{statistics.median(holds):.1f} ms" if holds else "refused"
    compared = f"{statistics.median(ratios):.2f} × a copy" if ratios else ""
    return f"| {what} | {held} | {compared} | {', '.join(sorted(methods))} | {max(left, default=0)} | {wanted} |"


def main():
    looks = int(sys.argv[1])
    lines = ["| busy program | longest hold, median | compared | method | changed pages, at most | wanted |",
             "|---|---|---|---|---|---|"]
    for program in PROGRAMS:
        lines.append(row(*program, looks))
        print(lines[-1], flush=True)
    lines += ["", f"Of {looks} looks each, on {platform.machine()} with {os.cpu_count()} CPUs, a kernel "
                  "without marks of what is written."]
    written.write(pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None, "heap-holds", "\n".join(lines))


if __name__ == "__main__":
    main()
