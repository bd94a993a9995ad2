# SPDX-License-Identifier: MIT
"""What all benchmarks share: rows of the table, runs of ljspy, programs to profile.

Machines differ and are noisy. If there is something to compare with, a benchmark
measures both in turn (A B A B) and reports the median of the ratios of neighbours,
with the raw figures beside it.
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

# Seconds until a profiler has seen everything once.
SETTLED = 0.4


@dataclasses.dataclass
class Options:
    pairs: int  # of measurements
    seconds: float  # of one look
    directory: pathlib.Path  # for output
    programs: pathlib.Path  # holds the compiled programs

    @property
    def stats(self):
        """The path of the last recording's figures; it exists once the recording has ended."""
        return self.directory / "stats.json"


@dataclasses.dataclass
class Row:
    """A line of the table: the median of VALUES and of their ratios to each of BASES.
    BASES maps names to lists of values measured in turn with VALUES. WANTED limits the
    first ratio, or the value if there are no BASES or ABSOLUTE is set."""

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
        """The figure that WANTED limits."""
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
    """The first quartile, the median and the third quartile."""
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
    """Start a program of this directory."""
    return ljspy.Target([ljspy.luajit("luajit"), HERE / program, *arguments], limit=limit)


def at_work(kind, *arguments):
    """Start work.lua and tell it to begin."""
    target = luajit("work.lua", kind, *arguments)
    target.write("go\n")
    return target


def pieces_waiting(target):
    """How many pieces of work the target has reported since the last call."""
    pipe = target.process.stdout.fileno()
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return len(os.read(pipe, count[0])) if count[0] else 0


def piece_us(target, seconds):
    """Microseconds that the target takes for a piece of its work, measured while this
    process sleeps for SECONDS."""
    pieces_waiting(target)
    begin = time.monotonic()
    time.sleep(seconds)
    pieces = pieces_waiting(target)
    return (time.monotonic() - begin) * 1e6 / pieces


def interleaved(settings, measure, rounds):
    """Call measure() for each of SETTINGS in turn, ROUNDS times, and before and after
    each for None, alone. Returns lists of (value, mean of both alone) by setting. So
    drift affects both alike. Each round begins with another setting."""
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


def beside_alone(pairs, alone):
    """The values of PAIRS, as of interleaved(), scaled by the values alone to the neighbourhood of others."""
    return [base * value / near for base, (value, near) in zip(alone, pairs)]


def mean(one, other):
    """The mean of two numbers, or of two tuples element by element."""
    if isinstance(one, tuple):
        return tuple(map(mean, one, other))
    return (one + other) / 2


@contextlib.contextmanager
def serving(options, **settings):
    """Run nginx with one worker, which runs Lua for /work."""
    settings = {"PREPARE": ""} | settings
    config = (HERE / "nginx.conf.in").read_text()
    with nginx_server.Nginx(options.directory / "nginx", config, **settings) as server:
        server.wait_answers("/work")
        yield server


def recorder(pids, seconds, rate, options, extra=("-f", "folded", "-o", "/dev/null")):
    """The command line of a recording."""
    pids = ",".join(map(str, pids))
    return strings([ljspy.LJSPY, "record", "-p", pids, "-d", f"{seconds}s", "-r", rate, "--stats", options.stats, *extra])


# As most users are: not allowed to take a CPU before all others.
WITHOUT_PRIORITY = ("setpriv", "--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice", "--")


def record(pid, seconds, rate, options, before=(), **more):
    """Make a recording, with these words before its command; return its figures."""
    command = [*before, *recorder([pid], seconds, rate, options, **more)]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return json.loads(options.stats.read_text())


@contextlib.contextmanager
def beside(command, pids):
    """Run a process that traces PIDS. Enters once it traces all of them; ends it on exit."""
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
    """Record in the background."""
    pids = pids if isinstance(pids, list) else [pids]
    return beside(recorder(pids, 600, rate, options), pids)


def floor_command(pid, rounds, rate, options):
    return [options.programs / "floor", pid, rounds, rate]


def beside_floor(pid, rate, options):
    """Run the floor in the background: the least that any sampler must do."""
    return beside(floor_command(pid, 600 * rate, rate, options), [pid])


def floor(pid, rate, options):
    """The floor's pauses, and its CPU time for a round, in microseconds."""
    command = strings(floor_command(pid, int(rate * options.seconds), rate, options))
    words = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return dict(zip(("p50", "p99", "cpu"), map(float, words)))


def processes(pid):
    """A process and its descendants: ljspy samples in processes of its own."""
    children = [int(child) for file in pathlib.Path(f"/proc/{pid}/task").glob("*/children") for child in file.read_text().split()]
    return [pid, *(descendant for child in children for descendant in processes(child))]


def cpu_with_children(process):
    """CPU time of a running ljspy."""
    return sum(map(ljspy.cpu_ns, processes(process.pid)))


def cpu_per_sample(pid, rate, options, looks=1):
    """Microseconds of CPU time that a running recording takes for a sample, for each
    look. The target works all the time."""
    with recording(pid, rate, options) as process:
        costs = []
        for _ in range(looks):
            used, worked = cpu_with_children(process), ljspy.cpu_ns(pid)
            time.sleep(options.seconds)
            costs.append((cpu_with_children(process) - used) / (ljspy.cpu_ns(pid) - worked))
    # Count by the target's CPU time: not every due sample is taken.
    stats = json.loads(options.stats.read_text())
    return [cost * stats["target_cpu_ms"] * 1000 / stats["samples"] for cost in costs]
