# SPDX-License-Identifier: MIT
"""What all benchmarks share: rows of the table, runs of ljspy, programs to look at.

Machines differ and are noisy. Wherever there is something to compare with, both
are measured in turn (A B A B), and what counts is the median of the ratios of
neighbours; the raw figures are kept beside it.
"""

import array
import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
import statistics
import subprocess
import sys
import termios
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / name) for name in (".", "nginx")]
import ljspy  # noqa: E402
import nginx_server  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent

# Seconds after which a profiler has seen for the first time what there is to see.
SETTLED = 0.4


@dataclasses.dataclass
class Options:
    pairs: int  # of measurements
    seconds: float  # of one look
    directory: pathlib.Path  # for what is written
    programs: pathlib.Path  # where the compiled ones are

    @property
    def stats(self):
        """Where the figures of the last recording are, once it has ended."""
        return self.directory / "stats.json"


@dataclasses.dataclass
class Row:
    """A line of the table: the median of VALUES and that of their ratios to each of
    BASES, which were measured in turn with them: lists by what they are of. WANTED is
    what the first of these ratios should not exceed, or the value where there is none
    or ABSOLUTE says so."""

    what: str
    unit: str
    values: list
    bases: dict = dataclasses.field(default_factory=dict)
    wanted: float | None = None
    absolute: bool = False
    absent: str = ""  # why there are no values

    def ratios(self):
        return {
            name: quartiles([value / base for value, base in zip(self.values, bases)])
            for name, bases in self.bases.items()
        }

    @property
    def wanted_of_ratio(self):
        return bool(self.bases) and not self.absolute

    @property
    def value(self):
        """What WANTED is about."""
        if self.absent:
            return None
        of_values = quartiles(self.values)
        return next(iter(self.ratios().values()))[1] if self.wanted_of_ratio else of_values[1]

    def as_json(self):
        if self.absent:
            return {"value": None} | dataclasses.asdict(self)
        figures = {"value": self.value, "quartiles": quartiles(self.values), "ratios": self.ratios()}
        return figures | dataclasses.asdict(self)

    def cells(self):
        if self.absent:
            return [self.what, "not run", self.absent, ""]
        measured = f"{number(statistics.median(self.values))} {self.unit}".strip()
        compared = "; ".join(
            f"{median:.3f} × {name} ({number(statistics.median(self.bases[name]))}), {low:.3f} to {high:.3f}"
            for name, (low, median, high) in self.ratios().items()
        )
        wanted = "" if self.wanted is None else f"≤ {self.wanted:g} {'×' if self.wanted_of_ratio else self.unit}".strip()
        return [self.what, measured, compared, wanted]


def quartiles(values):
    """The first, the median and the third."""
    return statistics.quantiles(values, method="inclusive") if len(values) > 1 else list(values) * 3


def number(value):
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(rows, padded=True):
    """For a terminal, or for a document."""
    lines = [["measured", "median", "compared", "wanted"]] + [row.cells() for row in rows]
    widths = [max(len(line[i]) for line in lines) if padded else len("---") for i in range(4)]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |" for line in lines)


def strings(command):
    return [str(word) for word in command]


def luajit(program, *arguments, limit=600):
    """A program of this directory, at work or about to be."""
    return ljspy.Target([ljspy.luajit("luajit"), HERE / program, *arguments], limit=limit)


def at_work(kind, *arguments):
    """work.lua, which has begun."""
    target = luajit("work.lua", kind, *arguments)
    target.write("go\n")
    return target


def pieces_waiting(target):
    """How many pieces of work the target has told of since this was last asked."""
    pipe = target.process.stdout.fileno()
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return len(os.read(pipe, count[0])) if count[0] else 0


def piece_us(target, seconds):
    """Microseconds that the target takes for a piece of its work, in the next
    SECONDS, in which nothing is done here."""
    pieces_waiting(target)
    begin = time.monotonic()
    time.sleep(seconds)
    pieces = pieces_waiting(target)
    return (time.monotonic() - begin) * 1e6 / pieces


def interleaved(settings, measure, rounds):
    """What measure() gives for each of SETTINGS in turn, ROUNDS times, and before and
    after each for None, alone: lists of (value, mean of both alone) by setting. What
    drifts meanwhile is the same for both. Every round begins with another of them."""
    found = {setting: [] for setting in settings}
    before = measure(None)
    for round_ in range(rounds):
        first = round_ % len(settings)
        for setting in [*settings[first:], *settings[:first]]:
            value = measure(setting)
            after = measure(None)
            found[setting].append((value, mean(before, after)))
            before = after
    return found


def mean(one, other):
    """Of two numbers, or of each in two tuples of them."""
    if isinstance(one, tuple):
        return tuple(map(mean, one, other))
    return (one + other) / 2


@contextlib.contextmanager
def serving(options, **settings):
    """nginx with one worker, which answers /work with some Lua."""
    settings = {"PREPARE": ""} | settings
    config = (HERE / "nginx.conf.in").read_text()
    with nginx_server.Nginx(options.directory / "nginx", config, **settings) as server:
        server.wait_answers("/work")
        yield server


def recorder(pids, seconds, rate, options, extra=("-f", "folded", "-o", "/dev/null")):
    """The command line of a recording."""
    pids = ",".join(map(str, pids))
    return strings([ljspy.LJSPY, "record", "-p", pids, "-d", f"{seconds}s", "-r", rate, "--stats", options.stats, *extra])


def record(pid, seconds, rate, options, **more):
    """The figures of a recording."""
    command = recorder([pid], seconds, rate, options, **more)
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return json.loads(options.stats.read_text())


@contextlib.contextmanager
def beside(command, pids):
    """A process that traces PIDS, from when it has begun to; told to end, it has
    ended when this does."""
    with subprocess.Popen(strings(command), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            for pid in pids:
                while ljspy.status_field(pid, "TracerPid") == "0":
                    if process.poll() is not None:
                        raise RuntimeError(f"{command} ends with {process.returncode}")
                    time.sleep(0.01)
            time.sleep(SETTLED)
            yield process
        finally:
            process.terminate()
            process.communicate()


def recording(pids, rate, options):
    """A recording beside what is done meanwhile."""
    pids = pids if isinstance(pids, list) else [pids]
    return beside(recorder(pids, 600, rate, options), pids)


def floor_command(pid, rounds, rate, options):
    return [options.programs / "floor", pid, rounds, rate]


def beside_floor(pid, rate, options):
    """What any sampler must do, beside what is done meanwhile."""
    return beside(floor_command(pid, 600 * rate, rate, options), [pid])


def floor(pid, rate, options):
    """Its pauses, and its CPU time for a round, in microseconds."""
    command = strings(floor_command(pid, int(rate * options.seconds), rate, options))
    words = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return dict(zip(("p50", "p99", "cpu"), map(float, words)))


def cpu_per_sample(pid, rate, options, looks=1):
    """Microseconds of CPU time that a recording which has begun takes for a sample,
    in each of so many looks. The target is at work all the time."""
    with recording(pid, rate, options) as process:
        costs = []
        for _ in range(looks):
            used, worked = ljspy.cpu_ns(process.pid), ljspy.cpu_ns(pid)
            time.sleep(options.seconds)
            costs.append((ljspy.cpu_ns(process.pid) - used) / (ljspy.cpu_ns(pid) - worked))
    # Samples come with the target's CPU time, if not all that are due.
    stats = json.loads(options.stats.read_text())
    return [cost * stats["target_cpu_ms"] * 1000 / stats["samples"] for cost in costs]
