"""What all benchmarks share: rows of the table, runs of ljspy, programs to look at.

Machines differ and are noisy. Wherever there is something to compare with, both
are measured in turn (A B A B), and what counts is the median of the ratios of
neighbours; the raw figures are kept beside it.
"""

import contextlib
import dataclasses
import json
import pathlib
import statistics
import subprocess
import sys
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / name) for name in (".", "nginx")]
import ljspy  # noqa: E402
import nginx_server  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass
class Options:
    pairs: int  # of measurements
    seconds: float  # of one look
    directory: pathlib.Path  # for what is written
    programs: pathlib.Path  # where the compiled ones are


@dataclasses.dataclass
class Row:
    """A line of the table. Against BASES, its value is the median of the ratios;
    else that of VALUES. WANTED is what it should not exceed."""

    what: str
    unit: str
    values: list
    bases: list | None = None
    wanted: float | None = None
    against: str = ""  # what the bases are
    absent: str = ""  # why there are no values

    @property
    def value(self):
        if self.absent:
            return None
        if self.bases is None:
            return statistics.median(self.values)
        return statistics.median(value / base for value, base in zip(self.values, self.bases))

    def as_json(self):
        return {"value": self.value} | dataclasses.asdict(self)

    def cells(self):
        if self.absent:
            return [self.what, "not run", self.absent, ""]
        measured = f"{number(statistics.median(self.values))} {self.unit}"
        if self.bases is None:
            compared = ""
        else:
            compared = f"{self.value:.3f} × {self.against} ({number(statistics.median(self.bases))})"
        wanted = "" if self.wanted is None else f"≤ {self.wanted:g} {'×' if self.bases else self.unit}"
        return [self.what, measured, compared, wanted]


def number(value):
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(rows):
    lines = [["measured", "median", "compared", "wanted"]] + [row.cells() for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(4)]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |" for line in lines)


def strings(command):
    return [str(word) for word in command]


def luajit(program, *arguments, limit=600):
    """A program of this directory, at work or about to be."""
    return ljspy.Target([ljspy.luajit("luajit"), HERE / program, *arguments], limit=limit)


def working_time(target):
    """Seconds that a program which waits for the word takes for its work."""
    begin = time.monotonic()
    target.write("go\n")
    target.read_until(b"done\n", seconds=100)
    return time.monotonic() - begin


def amount_for(elapsed, seconds):
    """So much work that it takes so long; ELAPSED tells how long an amount takes."""
    amount = 200
    while (took := elapsed(amount)) < 0.2:
        amount *= 4
    return int(amount * seconds / took)


@contextlib.contextmanager
def serving(options, **settings):
    """nginx with one worker, which answers /work with some Lua."""
    settings = {"PREPARE": ""} | settings
    config = (HERE / "nginx.conf.in").read_text()
    with nginx_server.Nginx(options.directory / "nginx", config, **settings) as server:
        server.wait_answers("/work")
        yield server


def recorder(pids, seconds, rate, options, extra=("-f", "folded", "-o", "/dev/null")):
    """The command line of a recording, and where its figures will be."""
    stats = options.directory / "stats.json"
    pids = ",".join(map(str, pids))
    return strings([ljspy.LJSPY, "record", "-p", pids, "-d", f"{seconds}s", "-r", rate, "--stats", stats, *extra]), stats


def record(pid, seconds, rate, options, **more):
    """The figures of a recording."""
    command, stats = recorder([pid], seconds, rate, options, **more)
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return json.loads(stats.read_text())


@contextlib.contextmanager
def recording(pids, rate, options):
    """Beside what is done meanwhile: a recording that has begun already."""
    pids = pids if isinstance(pids, list) else [pids]
    command, _ = recorder(pids, 600, rate, options)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            for pid in pids:
                while ljspy.status_field(pid, "TracerPid") == "0":
                    time.sleep(0.01)
            time.sleep(0.2)
            yield process
        finally:
            process.terminate()


def cpu_per_sample(pid, rate, options):
    """Microseconds of CPU time for a sample: what a longer recording costs more
    than a shorter one, so that its beginning and end do not count."""
    short, long = (record(pid, seconds, rate, options) for seconds in (0.3, 0.3 + options.seconds))
    samples = long["samples"] - short["samples"]
    return (long["self_cpu_ms"] - short["self_cpu_ms"]) * 1000 / max(samples, 1)
