"""What ljspy itself takes: CPU time and memory."""

import contextlib
import subprocess
import time

import ljspy
import measure

MANY = 64
SAMPLES = 10_000_000


def resident_mb(pid):
    return int(ljspy.status_field(pid, "VmRSS").split()[0]) / 1024


def per_sample(options):
    with measure.luajit("deep.lua", 600, 21, 4) as target:
        time.sleep(0.3)
        for rate in (99, 999):
            costs = [measure.cpu_per_sample(target.pid, rate, options) for _ in range(options.pairs)]
            yield measure.Row(f"CPU time for a sample of 35 frames, {rate} Hz", "µs", costs, wanted=100)


def many_processes(options):
    with contextlib.ExitStack() as stack:
        targets = [stack.enter_context(measure.luajit("work.lua", "interpreted", 10**9)) for _ in range(MANY)]
        for target in targets:
            target.write("go\n")
        shares = []
        with measure.recording([target.pid for target in targets], 99, options) as process:
            for _ in range(3):
                begin, used = time.monotonic(), ljspy.cpu_ns(process.pid)
                time.sleep(2)
                shares.append((ljspy.cpu_ns(process.pid) - used) / 1e7 / (time.monotonic() - begin))
    yield measure.Row(f"{MANY} busy processes, 99 Hz: share of a core", "%", shares, wanted=60)


def memory(options):
    """At the same stacks, it does not grow."""
    with measure.luajit("deep.lua", 600, 21, 4) as target:
        with measure.recording(target.pid, 999, options) as process:
            sizes = []
            for _ in range(3):
                time.sleep(3)
                sizes.append(resident_mb(process.pid))
    yield measure.Row("memory of a recording", "MB", sizes, wanted=32)
    yield measure.Row("its growth in 6 s at 999 Hz", "MB", [sizes[-1] - sizes[0]], wanted=1)


def report(options):
    """Of a day at 99 Hz, and some."""
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
