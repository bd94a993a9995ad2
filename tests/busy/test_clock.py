# SPDX-License-Identifier: MIT
"""ljspy samples what has a CPU, however many threads want one: compare shares and
rate with the CPU time that the target itself counted, and how long ljspy says that it
held the target with how long it did."""

import contextlib
import math
import os
import pathlib
import signal
import time

import pytest

import ljspy
import surroundings

pytestmark = pytest.mark.usefixtures("built")

SECONDS = float(os.environ.get("BUSY_SECONDS", 3))
RATE = 299

# CPU time of the target, for so many samples that SURE standard errors are sure: beside much else it takes longer.
ENOUGH = SECONDS / 8

# All runs on one CPU, so that the target's CPU is busy in any case.
CPU = min(os.sched_getaffinity(0))

GATEWAY = ljspy.ROOT / "tests/busy/gateway.lua"

# In standard errors; assumes samples of equal weight, as most have.
SURE = 5

# A thread runs on for some 20 us after ljspy tells it to stop, 50 us in a virtual machine:
# a tenth of the time between two sleeps. So much of a share may go to its neighbour.
SKID = 0.06


class Gateway(ljspy.Target):
    def __init__(self, limit=SECONDS + ljspy.LIMIT_SECONDS):
        super().__init__([ljspy.luajit("luajit"), GATEWAY], cwd="/", limit=int(limit))
        os.sched_setaffinity(self.pid, {CPU})
        self.wait_ready()

    def report(self):
        """CPU time by part in ns since the last report, and the longest gap."""
        self.write("\n")
        words = self.read_until(b"\n", seconds=60).split()
        parts = dict(zip(words[::2], map(int, words[1::2])))
        return parts, parts.pop("gap")


# Periods.
BETWEEN_COMPARISONS = 20


def shares_seen(folded, parts):
    """The weight of each part."""
    seen = dict.fromkeys(parts, 0)
    for line in folded.read_text().splitlines():
        stack, _, weight = line.rpartition(" ")
        names = {frame.split(" ")[0] for frame in stack.split(";")}
        for part in names & seen.keys():
            seen[part] += int(weight)
    return seen


def fraction(parts, *names):
    return sum(parts[n] for n in names) / sum(parts.values())


def compare(case, parts, seen, stats):
    """Print truth and samples side by side, and fail if noise does not explain the difference."""
    count, cpu_s = stats["samples"], stats["target_cpu_ms"] / 1e3
    asked, reached = stats["rate_hz"]["asked"], stats["rate_hz"]["reached"]
    print(f"{case}: {count} samples of {cpu_s:.2f} s; true / seen in %:")
    for part in parts:
        print(f"    {part:8} {100 * fraction(parts, part):6.2f} / {100 * fraction(seen, part):6.2f}")
    print(f"    {asked:.0f} Hz asked, {reached:.0f} reached, {stats['missed_ticks']} missed; held for "
          f"p50 {stats['pause_us']['p50']:.0f}, p99 {stats['pause_us']['p99']:.0f}, at most {stats['pause_us']['max']:.0f} us")
    for part in parts:
        true = fraction(parts, part)
        noise = math.sqrt(true * (1 - true) / max(count, 1))
        assert abs(true - fraction(seen, part)) < SURE * noise + SKID, part
    # A few samples may be missing, or too many, until the pace next compares them with CPU time.
    assert abs(count + stats["missed_ticks"] - asked * cpu_s) <= asked * cpu_s * 0.05 + BETWEEN_COMPARISONS


def record(case, tmp_path, surround, options=(), through=()):
    with Gateway() as target, surround(target):
        target.report()
        recorder = ljspy.Recorder(tmp_path, "-p", target.pid, seconds=SECONDS + ljspy.RECORDING_SECONDS, rate=RATE,
                                  options=options, through=through)
        recorder.end_after(target.pid, ENOUGH, SECONDS)
        recording = recorder.finish()
        parts, _ = target.report()
    compare(case, parts, shares_seen(recorder.folded, parts), recording.stats)
    return recording


def beside(count):
    return lambda _: surroundings.spinners(count, CPU, limit=int(SECONDS) + 120)


@pytest.mark.parametrize("count", (0, 1, 3, 8))
def test_beside_spinners(count, tmp_path):
    record(f"beside {count} spinners", tmp_path, beside(count))


def test_on_the_same_cpu(tmp_path):
    """Each look takes the CPU from the thread that has it."""
    record("beside 3 spinners and ljspy", tmp_path, beside(3), through=("taskset", "-c", str(CPU)))


def test_without_priority(tmp_path):
    """As a user whose ljspy may not be more urgent than others."""
    record("beside 3 spinners, without priority", tmp_path, beside(3),
           through=("setpriv", "--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice", "--"))


def test_under_a_quota(tmp_path):
    record("under a quota of 20 %", tmp_path, lambda target: surroundings.quota(20, target.pid))


def test_without_a_stop(tmp_path):
    record("beside 3 spinners, without a stop", tmp_path, beside(3), options=["--no-stop"])


TRIES = 20


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        # A busy machine takes its time to stop one that is not urgent.
        assert ljspy.wait_until(lambda: ljspy.status_field(pid, "State") == "T", seconds=ljspy.READY_SECONDS)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def seen_held(target, engine):
    """
    Hold the target by a signal for it, which waits for the engine: SIGWINCH does no harm, but a tracee stops for it,
    too. For how many seconds is it seen held? 0 if that is over before a busy machine comes to look: the kernel has the
    engine go on.
    """
    known = 0
    ljspy.wait_traced(target.pid)  # where the front stood still for too long, the engine has let the target go
    # These would continue the engine at once.
    with stopped(ljspy.front(engine)), stopped(int(ljspy.status_field(engine, "PPid"))):
        os.kill(engine, signal.SIGSTOP)
        ljspy.wait_until(lambda: ljspy.status_field(engine, "State") == "T", seconds=0.1, pause=0.001)
        os.kill(target.pid, signal.SIGWINCH)
        if ljspy.wait_until(lambda: ljspy.status_field(target.pid, "State") == "t", seconds=0.1, pause=0.001):
            first = last = time.monotonic()
            while ljspy.status_field(target.pid, "State") == "t":
                known, last = last - first, time.monotonic()
        os.kill(engine, signal.SIGCONT)
    return known


def waited(pid):
    """For how many seconds have its threads waited for a CPU?"""
    return sum(int((task / "schedstat").read_text().split()[1]) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()) / 1e9


def test_holds_while_ljspy_is_stopped(tmp_path):
    with Gateway() as target:
        recorder = ljspy.Recorder(tmp_path, "-p", target.pid, seconds=ljspy.READY_SECONDS, rate=99)
        ljspy.wait_traced(target.pid)
        time.sleep(1)
        engine = ljspy.tracer(target.pid)
        begin = time.monotonic()
        known = next(filter(None, (seen_held(target, engine) for _ in range(TRIES))), 0)
        longest, late = time.monotonic() - begin, waited(engine)
        recorder.process.send_signal(signal.SIGINT)
        pause = recorder.finish().stats["pause_us"]
    print(f"held for {1e3 * known:.1f} to {1e3 * longest:.1f} ms; ljspy says {pause['max'] / 1e3:.1f}")
    # ljspy counts time that it cannot know as held: since its last look, at most a period and a half, if it got a CPU.
    assert 0 < known < pause["max"] / 1e6 < longest + 1.5 / 99 + 0.01 + late
