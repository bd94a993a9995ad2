# SPDX-License-Identifier: MIT
"""How much CPU time and memory ljspy itself takes."""

import contextlib
import json
import pathlib
import re
import subprocess
import time

import ljspy
import measure

MANY = 64
SAMPLES = 10_000_000

HOUR = 3600 * 99  # samples
FASTEST = 10000  # samples per second, if the CPU allows
LOOKS = 10  # at the memory during a recording


def resident_mb(process):
    """What all processes of a running ljspy hold, with and without pages of files. One that is shared counts once."""
    total = files = 0
    for pid in measure.processes(process.pid):
        rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
        total += int(re.search(r"^Pss:\s+(\d+)", rollup, re.MULTILINE)[1])
        files += int(re.search(r"^Pss_File:\s+(\d+)", rollup, re.MULTILINE)[1])
    return total / 1024, (total - files) / 1024


def per_sample(options):
    with measure.luajit("deep.lua", 600, 21, 4) as target:
        time.sleep(0.3)
        for rate in (99, 999):
            costs, floors = [], []
            for _ in range(options.pairs):
                floors.append(measure.floor(target.pid, rate, options)["cpu"])
                costs += measure.cpu_per_sample(target.pid, rate, options)
            what = f"CPU time for a sample of 35 frames, {rate} Hz"
            yield measure.Row(what, "µs", costs, {"floor": floors}, 100, absolute=True)


def many_processes(options):
    """Many processes: at any time, ljspy samples only as many as there are CPUs."""
    with contextlib.ExitStack() as stack:
        targets = [stack.enter_context(measure.at_work("interpreted")) for _ in range(MANY)]
        shares = []
        with measure.recording([target.pid for target in targets], 99, options) as process:
            for _ in range(3):
                begin, used = time.monotonic(), measure.cpu_with_children(process)
                time.sleep(2)
                shares.append((measure.cpu_with_children(process) - used) / 1e7 / (time.monotonic() - begin))
    stats = json.loads(options.stats.read_text())
    per_second = stats["samples"] * 1000 / stats["duration_ms"]
    what = f"{MANY} busy processes, 99 Hz, {per_second:.0f} samples a second in all"
    yield measure.Row(f"{what}: share of a core", "%", shares, wanted=60)
    yield measure.Row(f"{what}: CPU time for each", "µs", [share * 1e4 / per_second for share in shares])


def memory(options):
    """Memory does not grow while stacks repeat: as many samples as in an hour, at the
    highest rate. (A sort would bring a new comparison function each time.)"""
    with measure.luajit("deep.lua", 600, 21, 0) as target:
        time.sleep(0.3)
        tried = measure.record(target.pid, 2, FASTEST, options)
        seconds = 1.3 * HOUR / tried["samples"] * tried["duration_ms"] / 1000
        sizes = []
        with measure.recording(target.pid, FASTEST, options) as process:
            for _ in range(LOOKS + 1):
                sizes.append(resident_mb(process))
                time.sleep(seconds / LOOKS)
    samples = json.loads(options.stats.read_text())["samples"]
    yield measure.Row("memory of a recording", "MB", [size for size, _ in sizes], wanted=32)
    # In the first fifth ljspy fills its tables, and its buffers reach their size. Its share of the C library
    # comes and goes with other processes of the machine, by some megabytes: what grows is its own memory.
    own = [own for _, own in sizes]
    what = f"its growth in {samples:,} samples (an hour at 99 Hz: {HOUR:,})"
    yield measure.Row(what, "MB", [max(own[3:]) - own[2]], wanted=1)


def report(options):
    """A report of more than a day at 99 Hz."""
    path = options.directory / "many.ljspy"
    with path.open("wb") as file:
        subprocess.run(measure.strings([options.programs / "many", SAMPLES]), stdout=file, check=True)
    for format_ in ("text", "svg"):
        begin = time.monotonic()
        command = measure.strings([ljspy.LJSPY, "report", path, "-f", format_])
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        yield measure.Row(f"report of 10 million samples, {format_}", "s", [time.monotonic() - begin], wanted=5)
    path.unlink()


def rows(options):
    for part in (per_sample, many_processes, memory, report):
        yield from part(options)
