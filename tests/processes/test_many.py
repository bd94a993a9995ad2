# SPDX-License-Identifier: MIT
"""Many processes at once, found at the start or later."""

import collections
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

import ljspy
import stacks

pytestmark = pytest.mark.usefixtures("built")

PROCESSES = 64
WORK_NS = 10_000_000  # of each thread in host.c, in its turn
BEFORE_S = 2

# Each process works briefly and sleeps longer, in a chunk named after it.
WORKER = """
    local ffi = require("ffi")
    ffi.cdef("int usleep(unsigned int);")
    local work = loadstring("local function work() for i = 1, 1e5 do end end return work", "=process_" .. arg[1])()
    io.write("ready\\n") io.flush()
    while true do local finish = os.clock() + 0.03 repeat work() until os.clock() > finish ffi.C.usleep(300000) end
"""


def argv_of(path, number):
    return [ljspy.luajit("luajit"), path, number]


@pytest.fixture
def script(tmp_path):
    """A script whose name no other program has."""
    path = tmp_path / f"ljspy-many-{os.getpid()}.lua"
    path.write_text(WORKER)
    return path


@contextlib.contextmanager
def started(argvs, **options):
    with contextlib.ExitStack() as stack:
        targets = [stack.enter_context(ljspy.Target(argv, limit=300, **options)) for argv in argvs]
        for target in targets:
            target.read_until(b"ready\n", seconds=60)
        yield targets


def workers(script, count):
    return started([argv_of(script, i) for i in range(count)])


def seen(recording):
    """The numbers of the processes in the samples."""
    return {int(n) for s in recording.samples for f in s.frames for n in re.findall(r"process_(\d+)", f)}


@pytest.fixture(scope="module")
def host():
    """A program with many threads, which every user may run."""
    library = ljspy.PACKAGES / "libluajit-5.1-2/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2"
    include = ljspy.PACKAGES / "libluajit-5.1-dev/usr/include/luajit-2.1"
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        directory.chmod(0o755)
        shutil.copy(library, directory)
        subprocess.run(
            ["gcc", "-O2", "-D_GNU_SOURCE", "-pthread", f"-I{include}", pathlib.Path(__file__).parent / "host.c"]
            + ["-o", directory / "host", directory / library.name, "-Wl,-rpath,$ORIGIN"],
            check=True,
        )
        yield directory / "host"


# Timers need room for pending signals, which the kernel limits by user: use a separate user.
USER = 47110 if os.geteuid() == 0 else None

# That user's ljspy may be as urgent as root's: beside a full machine, threads would have worked before it has
# a CPU.
AS_USER = () if USER is None else (*ljspy.becoming(USER), "--inh-caps=+sys_nice", "--ambient-caps=+sys_nice")

# Processes, and threads in all. With fewer descriptors than threads, and fewer timers than processes, ljspy
# costs more but works the same.
LIMITS = {
    "no limits": (64, 1024, ()),
    "few files, few timers": (24, 240, ("prlimit", "--nofile=192", "--sigpending=8")),
}


def is_legal(sample):
    """Whether all Lua frames belong to one state, from its main function on."""
    frames = [re.match(r"(work|function) <?process_(\d+_\d+):([12])>?$", frame) for frame in sample.frames]
    found = [(match[1], match[3]) for match in frames if match]
    states = {match[2] for match in frames if match}
    return len(states) <= 1 and found in ([], [("function", "2")], [("function", "2"), ("work", "1")])


@contextlib.contextmanager
def directory_of(user):
    with tempfile.TemporaryDirectory() as name:
        if user is not None:
            os.chown(name, user, user)
        yield pathlib.Path(name)


def states(samples):
    return {state for sample in samples for frame in sample.frames for state in re.findall(r"process_(\d+_\d+)", frame)}


def used_ns(targets):
    """CPU time so far, by process and thread."""
    used = {}
    for target in targets:
        for task in pathlib.Path(f"/proc/{target.pid}/task").iterdir():
            used[target.pid, int(task.name)] = int((task / "schedstat").read_text().split()[0])
    return used


def recorded_ns(recording):
    """CPU time in a recording, by process and thread."""
    document = json.loads(ljspy.run("report", recording, "-f", "json", "-o", "-").stdout)
    threads = [(thread["pid"], thread["tid"]) for thread in document["threads"]]
    recorded = collections.Counter()
    for sample in document["samples"]:
        recorded[threads[sample["thread"]]] += sample["cpu_ns"]
    return recorded


@pytest.mark.slow
@pytest.mark.parametrize(
    "limit", [pytest.param("no limits", marks=pytest.mark.long), "few files, few timers"], ids=LIMITS
)
def test_every_process_and_thread_is_accounted_for(host, limit):
    processes, threads, through = LIMITS[limit]
    argvs = [[host, number, threads // processes] for number in range(processes)]
    with started(argvs, user=USER) as targets, directory_of(USER) as directory:
        recording = directory / "many.ljspy"
        options = ["-r", ljspy.HIGH_RATE, "-o", recording, "-p", ",".join(str(target.pid) for target in targets)]
        recorder = ljspy.Target([*through, *AS_USER, ljspy.LJSPY, "record", *options], limit=250)
        for target in targets:
            assert ljspy.wait_until(lambda: ljspy.status_field(target.pid, "TracerPid") != "0", seconds=100)
        before = used_ns(targets)
        for target in targets:
            target.write("work\n")

        def all_have_worked():
            now = used_ns(targets)
            return all(now[thread] - before[thread] > WORK_NS for thread in before)

        assert ljspy.wait_until(all_have_worked, seconds=150, pause=0.1)
        used = {thread: ns - before[thread] for thread, ns in used_ns(targets).items()}
        recorder.process.send_signal(signal.SIGINT)
        assert recorder.process.wait(60) == ljspy.OK
        recorder.stop()
        recorded = recorded_ns(recording)
        samples = stacks.parse_folded(ljspy.run("report", recording, "-f", "folded", "-o", "-").stdout)
    assert sum(recorded.values()) > 0.95 * sum(used.values())
    assert len(used) == processes * (threads // processes)
    assert {pid for pid, _ in recorded} == {target.pid for target in targets}
    assert sum(recorded[thread] > 0 for thread in used) > threads / 2
    known = [sample for sample in samples if not any(map(stacks.is_lost, sample.frames))]
    assert len(states(known)) > threads / 4
    assert all(map(is_legal, known)), [sample.frames for sample in known if not is_legal(sample)]


def test_what_belongs_to_a_file_is_found_out_once(host, tmp_path):
    """Many processes, mostly asleep, map the same file; ljspy analyses it once."""
    options = ["--clock", "wall"]
    with started([[host, number, 1] for number in range(PROCESSES)]) as targets:
        for target in targets:
            target.write("work\n")
        alone = ljspy.record(tmp_path, "-p", targets[0].pid, options=options)
        together = ljspy.record(tmp_path, "-p", ",".join(str(target.pid) for target in targets), rate=99, options=options)
    assert together.stats["self_cpu_ms"] < PROCESSES / 4 * alone.stats["self_cpu_ms"]


def test_no_timer_at_all(script, tmp_path):
    """It is said at once: sooner than after a recording."""

    def record(*through):
        begin = time.monotonic()
        result = ljspy.run("record", "-d", "1s", "-o", tmp_path / "x.svg", "-p", target.pid, through=through)
        return result, time.monotonic() - begin

    with workers(script, 1) as [target]:
        _, recording_s = record()
        result, refusal_s = record("prlimit", "--sigpending=0")
    assert result.returncode == ljspy.NOTHING_PROFILED
    assert "ulimit -i" in result.stderr
    assert refusal_s < recording_s


def test_processes_to_come_are_found_by_name(script, tmp_path):
    """Their parents do not matter."""
    with workers(script, 1) as first:
        recorder = ljspy.Recorder(tmp_path, "--name", script.name, seconds=100)
        ljspy.wait_traced(first[0].pid)
        with ljspy.Target(["sh", "-c", 'sleep 0.1; exec "$@"', "sh", *map(str, argv_of(script, 7))]) as second:
            assert ljspy.wait_until(lambda: ljspy.status_field(second.pid, "TracerPid") != "0", seconds=30)
            before = ljspy.cpu_ns(second.pid)
            assert ljspy.wait_until(lambda: ljspy.cpu_ns(second.pid) > before + 1e8, seconds=60)
        recorder.process.send_signal(signal.SIGINT)
        assert seen(recorder.finish()) == {0, 7}


# It takes the name that it is told, in which nothing of that name has run before.
RENAMED = f"""
    local ffi = require("ffi")
    ffi.cdef("int prctl(int, const char *, long, long, long);")
    local function spin() for i = 1, 1e6 do end end
    while os.clock() < {BEFORE_S} do spin() end
    io.write("ready\\n") io.flush()
    ffi.C.prctl(15, io.read(), 0, 0, 0)
    while true do spin() end
"""


def test_what_a_process_used_before_the_recording_is_not_lost(script, tmp_path):
    """Though ljspy meets it only during the recording, as it has another name until then."""
    path, name = tmp_path / "renamed.lua", f"ljn{os.getpid()}"
    path.write_text(RENAMED)
    with workers(script, 1) as [worker], started([[ljspy.luajit("luajit"), path]]) as [renamed]:
        recorder = ljspy.Recorder(tmp_path, "--name", f"{script.name}|^{name}$", seconds=100)
        ljspy.wait_traced(worker.pid)
        time.sleep(1)  # the recording begins
        renamed.write(f"{name}\n")
        ljspy.wait_traced(renamed.pid)
        recorder.end_after(renamed.pid, 1)
        recording = recorder.finish()
    of_it = ljspy.weight_of(recording.samples, ljspy.has_frame("spin")) / 1e6
    lost = ljspy.weight_of(recording.samples, lambda s: "[lost: process not yet noticed]" in s.frames) / 1e6
    print(f"{of_it:.1f} s seen, {lost:.3f} s lost")
    assert of_it > 0.5
    assert lost < BEFORE_S / 2


def test_recording_by_name_ends_with_the_last_match(script, tmp_path):
    with workers(script, 2) as targets:
        recorder = ljspy.Recorder(tmp_path, "--name", script.name, seconds=100)
        for target in targets:
            ljspy.wait_traced(target.pid)
        worked = ljspy.cpu_ns(targets[1].pid)
        assert ljspy.wait_until(lambda: ljspy.cpu_ns(targets[1].pid) > worked + 2e8)
        targets[0].process.kill()
        assert ljspy.wait_until(lambda: not recorder.process.poll())
        targets[1].process.kill()
        assert ljspy.wait_until(lambda: recorder.process.poll() is not None, seconds=30)
        recorder.finish()


FORKING = """
    local ffi = require("ffi")
    ffi.cdef("int fork(void); int waitpid(int, int *, int); int setsid(void); void _exit(int);")
    local function work(seconds) local finish = os.clock() + seconds repeat local x = 1 until os.clock() > finish end
    local function in_child(seconds) work(seconds) end
    local function in_grandchild(seconds) work(seconds) end
    if ffi.C.fork() == 0 then
        if ffi.C.fork() == 0 then
            ffi.C.setsid()
            in_grandchild(2)
            ffi.C._exit(0)
        end
        @CHILD@
        ffi.C._exit(0)
    end
    os.execute("exit 0")
    ffi.C.waitpid(-1, nil, 0)
    @PARENT@
"""


def program(child="", parent=""):
    return FORKING.replace("@CHILD@", child).replace("@PARENT@", parent)


def functions(recording):
    return {name for name in ("in_child", "in_grandchild") if ljspy.weight_of(recording.samples, ljspy.has_frame(name))}


def launched(directory, source, *options):
    """Run a command under ljspy, to its end."""
    folded = directory / "x.folded"
    arguments = ["-r", ljspy.HIGH_RATE, "-o", folded, *options]
    result = ljspy.run("record", *arguments, "--", ljspy.luajit("luajit"), "-e", source)
    samples = stacks.parse_folded(folded.read_text()) if result.returncode == ljspy.OK else []
    return ljspy.Recording(samples, {}, result)


def test_children_of_a_command(tmp_path):
    recording = launched(tmp_path, program(child="in_child(2)"), "-s")
    assert recording.run.returncode == ljspy.OK, recording.run.stderr
    assert functions(recording) == {"in_child", "in_grandchild"}


def test_without_being_asked_for_children_are_left_alone(tmp_path):
    recording = launched(tmp_path, program(child="in_child(2)", parent="work(0.2)"))
    assert recording.run.returncode == ljspy.OK, recording.run.stderr
    assert functions(recording) == set()


def test_daemon(tmp_path):
    """The daemon's parent and grandparent end at once."""
    recording = launched(tmp_path, program(), "-s")
    assert recording.run.returncode == ljspy.OK, recording.run.stderr
    assert functions(recording) == {"in_grandchild"}


def test_children_that_run_something_else_are_let_go(tmp_path):
    """ljspy does not sample a busy shell, once it has found out that it is one. The shell tells its CPU time."""
    source = 'os.execute("i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done; times") local t = os.clock() + 0.3 while os.clock() < t do end'
    recording = launched(tmp_path, source, "-s", "--native", "all")
    assert recording.run.returncode == ljspy.OK, recording.run.stderr
    minutes, seconds = re.match(r"(\d+)m([\d.]+)s ", recording.run.stdout).groups()
    shell_us = (60 * int(minutes) + float(seconds)) * 1e6
    in_lua = ljspy.weight_of(recording.samples, lambda s: any("main chunk" in f for f in s.frames))
    assert in_lua > 0 and shell_us > 0
    assert ljspy.weight_of(recording.samples) - in_lua < shell_us / 2
