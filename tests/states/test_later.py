# SPDX-License-Identifier: MIT
"""A process creates states during a recording: by threads of a pool, one after the
other, in a library loaded later. ljspy finds them as they run, and takes none for
one that was at its address before."""

import collections
import os
import pathlib
import re
import subprocess
import time

import pytest

import ljspy
import stacks
from test_states import compiled

pytestmark = pytest.mark.usefixtures("built")

SECONDS = max(2, int(os.environ.get("BUSY_SECONDS", 0)))  # of CPU time
LIMIT = ljspy.LIMIT_SECONDS + 10 * SECONDS  # of elapsed time, on a busy machine
LIBRARY = ljspy.PACKAGES / "libluajit-5.1-2/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2"
LIBRARY_GC32 = ljspy.PACKAGES / "bullseye/libluajit-5.1-2/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2"

LOST_SHARE = 0.01
LOST_SHARE_OF_ERRORS = 0.003
# Of a program whose traces do little else than exit into recursive functions: 0.4 to 1.4 %.
LOST_SHARE_IN_TRACE = 0.03
# Until a thread's stack is known; without a look there, nearly all is lost.
NOT_FOUND_SHARE = 0.4
# While a trace exits, recursive functions cannot always be told apart.
IN_TRACE = "position in trace unknown"
# The last part of the process's time has no stack.
NO_STACK = "target ended"


@pytest.fixture(scope="module")
def later(tmp_path_factory):
    return compiled("later", tmp_path_factory.mktemp("later"))


def lost(stats):
    return sum(count for reason, count in stats["lost"].items() if reason != NO_STACK)


def check(recording, note_lost, case, lost_share=LOST_SHARE):
    """Check that no more is lost than `lost_share`, and that no stack has two states. Returns the states seen."""
    seen = set()
    for sample in recording.samples:
        numbers = set(re.findall(r"(?:run|work)_(\d{6}) ", ";".join(sample.frames)))
        assert len(numbers) <= 1, sample
        seen |= {int(number) for number in numbers}
    count = recording.stats["samples"]
    print(f"{case}: {count} samples, {lost(recording.stats)} lost, {len(seen)} states seen")
    note_lost(case, count, collections.Counter(lost=lost(recording.stats), whole=count - lost(recording.stats)))
    assert lost(recording.stats) <= max(stacks.LOST_SAMPLES, lost_share * count), recording.stats["lost"]
    return seen


@pytest.mark.parametrize(
    "mode, jit, library",
    [
        ("pool", "on", LIBRARY),
        ("churn", "off", LIBRARY),
        ("brief", "off", LIBRARY_GC32),
        ("brief", "on", LIBRARY_GC32),
        ("brief", "on", LIBRARY),
        ("crowd", "on", LIBRARY),
    ],
    ids=["pool", "churn", "brief", "brief-compiled", "brief-compiled-gc64", "crowd"],
)
def test_states_made_later(mode, jit, library, later, tmp_path, note_lost, request):
    if not library.exists():
        pytest.skip(f"{library} is not to be had")
    with ljspy.Target([later, mode, library, jit, SECONDS], limit=LIMIT).wait_ready() as target:
        recorder = ljspy.Recorder(tmp_path, "-p", target.pid, seconds=LIMIT)
        ljspy.wait_traced(target.pid)
        target.write("go\n")
        recording = recorder.finish()
        said = target.read_until(b" generations\n")
    seen = check(recording, note_lost, request.node.name)
    generations = int(re.search(r"(\d+) generations", said)[1])
    assert max(seen) <= generations
    assert len(seen) > (generations / 2 if mode == "pool" else 1)


@pytest.mark.parametrize("mode", ["pool", "churn"])
def test_states_made_later_without_a_stop(mode, later, tmp_path):
    """ljspy finds them by the stacks of their threads, which never sleep."""
    with ljspy.Target([later, mode, LIBRARY, "off", SECONDS], limit=LIMIT).wait_ready() as target:
        recorder = ljspy.Recorder(tmp_path, "-p", target.pid, seconds=LIMIT, options=["--no-stop"])
        time.sleep(0.5)
        target.write("go\n")
        recording = recorder.finish()
    missed, count = recording.stats["lost"]["not stopped"], recording.stats["samples"]
    print(f"{mode}: {count} samples, {missed} of no state that is known")
    assert missed <= NOT_FOUND_SHARE * count, recording.stats["lost"]


def test_library_loaded_later(later, tmp_path, note_lost, request):
    recorder = ljspy.Recorder(
        tmp_path, "--", "sh", "-c", f"(sleep 1; echo go) | exec {later} load {LIBRARY} on {SECONDS}",
        seconds=LIMIT, options=["-s"])
    assert 1 in check(recorder.finish(), note_lost, request.node.name)


def test_sysbench(tmp_path, note_lost, request):
    """A thread pool with a state for each thread, as in Debian's package."""
    program = ljspy.PACKAGES / "sysbench/usr/bin/sysbench"
    if not program.exists():
        pytest.skip("no sysbench")
    libraries = [ljspy.PACKAGES / f"{name}/usr/lib/x86_64-linux-gnu"
                 for name in ("libluajit-5.1-2", "libpq5", "libmariadb3", "libaio1")]
    script = tmp_path / "work.lua"
    script.write_text("""
        local function heavy(n) local s = 0 for i = 1, n do s = s + i % 7 + #string.rep("x", i % 50) end return s end
        function event() heavy(3000) end
    """)
    environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, libraries))}
    argv = [program, "--threads=4", f"--time={SECONDS}", script, "run"]
    if subprocess.run([program, "--version"], env=environment, capture_output=True, check=False).returncode:
        pytest.skip("sysbench lacks libraries")
    os.environ.update(LD_LIBRARY_PATH=environment["LD_LIBRARY_PATH"])
    try:
        recording = ljspy.Recorder(tmp_path, "--", *argv, seconds=SECONDS + 5).finish()
    finally:
        del os.environ["LD_LIBRARY_PATH"]
    check(recording, note_lost, request.node.name)
    total = ljspy.weight_of(recording.samples, lambda sample: sample.frames and not stacks.is_lost(sample.frames[0]))
    assert ljspy.weight_of(recording.samples, ljspy.has_frame("heavy")) > total / 2


@pytest.mark.parametrize("library", [LIBRARY, LIBRARY_GC32], ids=["gc64", "gc32"])
def test_errors_that_leave_lua(library, tmp_path, note_lost, request):
    """While an error is on its way to the C code that called Lua, the stack still has that code."""
    if not library.exists():
        pytest.skip(f"{library} is not to be had")
    with ljspy.Target([compiled("errors", tmp_path), library, LIMIT], limit=LIMIT).wait_ready() as target:
        recorder = ljspy.Recorder(tmp_path, "-p", target.pid, seconds=LIMIT, options=["--native", "all"])
        recorder.end_after(target.pid, SECONDS)
        recording = recorder.finish()
    check(recording, note_lost, request.node.name, LOST_SHARE_IN_TRACE)
    of_errors = lost(recording.stats) - recording.stats["lost"][IN_TRACE]
    assert of_errors <= max(stacks.LOST_SAMPLES, LOST_SHARE_OF_ERRORS * recording.stats["samples"]), recording.stats["lost"]
