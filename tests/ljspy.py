# SPDX-License-Identifier: MIT
"""Run ljspy and its targets; read what ljspy writes."""

import contextlib
import fcntl
import json
import math
import os
import pathlib
import platform
import re
import select
import signal
import subprocess
import tempfile
import time
from typing import NamedTuple

import pytest

import stacks

ROOT = pathlib.Path(__file__).resolve().parent.parent
LJSPY = pathlib.Path(os.environ.get("LJSPY", ROOT / "build/release/ljspy"))
PACKAGES = ROOT / "build/packages"
RUNTIMES = ("luajit", "luajit2")

OK, WITH_ERRORS, NOTHING_PROFILED, USAGE = 0, 1, 2, 64

WRITE = {"x86_64": "1", "aarch64": "64"}[platform.machine()]  # the number of the system call

# Long enough for a program to start, or to go on, on a busy machine.
READY_SECONDS = 30

# Long enough for a program to have two seconds of CPU time beside fifty others on each CPU.
WORK_SECONDS = 120

# Of a recording that ends once there is enough: longer than the waits before that, so that these tell.
RECORDING_SECONDS = WORK_SECONDS + 2 * READY_SECONDS

# Of a target, which is there before its recording, and after it.
LIMIT_SECONDS = RECORDING_SECONDS + READY_SECONDS

# Long enough for ljspy to begin with a process that has its CPU.
BEGIN_SECONDS = 2

# Samples per second: enough of them in little time.
HIGH_RATE = 997

# So many recordings, at most, until they show what a quiet machine shows in one.
RECORDINGS_MAX = 10

# CPU time that a thread used before ljspy could look: no stack. Beside others, some of it is told so.
UNSEEN = "[lost: thread asleep when sampled]"

# As many in half the time, where only their stacks matter.
HIGHEST_RATE = 1999


def luajit(runtime):
    return PACKAGES / runtime / "usr/bin/luajit"


def helper(name):
    """A program of targets/, built with ljspy's unit tests."""
    path = LJSPY.parent / "tests/targets" / name
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return path


def in_namespaces(*options, setup="true", argv=()):
    """The command line that runs ARGV in new namespaces, made by `unshare OPTIONS`,
    after the shell commands SETUP. Mounts made there do not show outside."""
    return ["unshare", *options, "sh", "-ec", f'{setup}\nexec "$@"', "sh", *map(str, argv)]


# Processes inside see no others, and end with the first of them.
ALONE = ("-m", "-p", "-f", "--mount-proc", "--kill-child")

# Root without CAP_SYS_PTRACE, as in a container.
WITHOUT_CAPABILITY = ("setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace")


def becoming(user):
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]


NOBODY = 65534


def as_user(user):
    """Options of subprocess to run a process as that user, in that user's group only."""
    return {} if user is None else {"user": user, "group": user, "extra_groups": []}


@contextlib.contextmanager
def directory_of(user):
    """A new directory that this user can write to; pytest's are its own user's only."""
    with tempfile.TemporaryDirectory(prefix="ljspy-") as path:
        if user is not None:
            os.chown(path, user, user)
        yield pathlib.Path(path)


def clock_that_can_be_set(directory):
    """The environment of a program to which the clock is ahead by the seconds in a file; and that file."""
    library, ahead = directory / "clock.so", directory / "ahead"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, ROOT / "tests/archive/clock.c"], check=True)
    ahead.write_text("0")
    return os.environ | {"LD_PRELOAD": str(library), "CLOCK_AHEAD": str(ahead)}, ahead


class Target:
    """A process to profile. It ends by itself after LIMIT seconds, even if the tests
    are killed; stop() ends it earlier. A context manager."""

    def __init__(self, argv, cwd=None, env=None, limit=LIMIT_SECONDS, user=None):
        # An alarm survives exec, so no wrapper is needed, and the pid is the program's.
        self.process = subprocess.Popen(
            [str(a) for a in argv],
            cwd=cwd,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: signal.alarm(limit),
            **as_user(user),
        )
        self.pid = self.process.pid
        self.pending = b""

    def read_until(self, end, seconds=READY_SECONDS, at_end=None):
        """Output up to and including END. If the output ends first: AT_END, or an error if not given."""
        deadline = time.monotonic() + seconds
        stdout = self.process.stdout
        while end not in self.pending:
            readable, _, _ = select.select([stdout], [], [], max(0, deadline - time.monotonic()))
            chunk = os.read(stdout.fileno(), 65536) if readable else None
            if chunk == b"" and at_end is not None:
                return at_end
            if not chunk:
                raise RuntimeError(f"{self.process.args} did not say {end!r}: {self.pending[-500:]!r}")
            self.pending += chunk
        head, self.pending = self.pending.split(end, 1)
        return (head + end).decode(errors="replace")

    def wait_ready(self):
        self.read_until(b"ready\n")
        return self

    def write(self, text):
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def program(runtime, name, jit="on", seconds=50, task=None):
    """Start a program under programs/, and wait until it is ready."""
    argv = [luajit(runtime), f"{name}.lua", jit, seconds] + ([task] if task else [])
    return Target(argv, cwd=stacks.PROGRAMS).wait_ready()


def busy(code="", program=None, user=None, through=(), limit=LIMIT_SECONDS):
    """Start a LuaJIT program that works in a function called heavy, after CODE, which
    may use ffi. The command line THROUGH runs it."""
    source = f"""
        local ffi = require("ffi")
        {code}
        local function heavy() local sum = 0 for i = 1, 1e5 do sum = sum + i % 7 end return sum end
        io.write("ready\\n") io.flush()
        while true do local sum = heavy() end
    """
    argv = [*through, program or luajit("luajit"), "-e", source]
    return Target(argv, cwd="/", limit=limit, user=user).wait_ready()


def parks(runtime, name, most=40):
    """Yields the target, the stack and the traceback at each park of a program. The
    program parks once in every stack that it spins in."""
    with program(runtime, name, jit="off", seconds=0.5, task="park") as target:
        for _ in range(most):
            report = target.read_until(b"\n\n", at_end="")
            if not report:
                return
            yield target, *report.split("\n", 1)
            target.write("\n")


def cpu_ns(pid):
    """CPU time of a process, by the clock that clock_getcpuclockid() would return."""
    return time.clock_gettime_ns(~pid << 3 | 2)


def stands_still(pid, seconds=0.3):
    """Whether the process uses no CPU time for so long."""
    before = cpu_ns(pid)
    time.sleep(seconds)
    return cpu_ns(pid) == before


def sleeps(pid):
    """How often the process has gone to sleep. It must be asleep or about to be; it was
    woken once less."""
    assert wait_until(lambda: status_field(pid, "State") == "S")
    return int(status_field(pid, "voluntary_ctxt_switches"))


def run(*arguments, timeout=RECORDING_SECONDS, user=None, through=(), **options):
    """Run ljspy to its end, as USER; the command line THROUGH runs it."""
    options = {"capture_output": True, "text": True, "errors": "replace"} | as_user(user) | options
    argv = [str(a) for a in (*through, LJSPY, *arguments)]
    return subprocess.run(argv, timeout=timeout, check=False, **options)


def await_work(pid, end_ns, recorder, may_refuse=False):
    """Wait until the process has had so much CPU time. It must not end before, nor RECORDER, a process of ljspy's,
    unless that MAY_REFUSE to profile."""
    def is_over():
        return cpu_ns(pid) >= end_ns or recorder.poll() is not None or is_zombie(pid)

    in_time = wait_until(is_over, seconds=WORK_SECONDS)
    missing_s = (end_ns - cpu_ns(pid)) / 1e9
    is_refused = may_refuse and recorder.poll() == NOTHING_PROFILED
    assert is_refused or missing_s <= 0, f"{missing_s} s of CPU time are missing; {in_time=}, ljspy: {recorder.poll()}"


def wait_worked(pid, seconds=0.1):
    """Wait until the process has had so much CPU time: one that begins to do the same for ever does it then."""
    enough_ns = cpu_ns(pid) + seconds * 1e9
    assert wait_until(lambda: cpu_ns(pid) >= enough_ns, WORK_SECONDS)


def run_beside(pid, seconds, *arguments, through=(), may_refuse=False, **options):
    """
    ljspy until the process has had so many seconds of CPU time since it is traced: beside others, that takes longer,
    and there are as many samples. The command line THROUGH becomes ljspy, which may end before if it MAY_REFUSE.
    """
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "errors": "replace"} | options
    argv = [str(a) for a in (*through, LJSPY, *arguments)]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, **options) as process:
        try:
            assert wait_until(lambda: is_traced(pid) or process.poll() is not None or is_zombie(pid), WORK_SECONDS)
            await_work(pid, cpu_ns(pid) + seconds * 1e9, process, may_refuse)
        finally:
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


class Recording(NamedTuple):
    samples: list
    stats: dict
    run: subprocess.CompletedProcess


class Recorder:
    """A running ljspy record; finish() waits for it and reads its output. Several can
    run at the same time."""

    def __init__(self, directory, *target, seconds=1, rate=HIGH_RATE, options=(), user=None, through=()):
        self.folded = directory / "profile.folded"
        self.stats = directory / "stats.json"
        arguments = ["record", "-d", f"{seconds}s", "-r", rate, "--stats", self.stats]
        arguments += [] if "-f" in options else ["-f", "folded", "--annotate", "-o", self.folded]
        arguments += [*options, *target]
        self.timeout = seconds + 60
        self.process = subprocess.Popen(
            [*through, LJSPY, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            **as_user(user),
        )

    def end_after(self, pid, seconds, elapsed=0):
        """End it once the process has had so many seconds of CPU time, and so many have elapsed."""
        enough = cpu_ns(pid) + seconds * 1e9
        time.sleep(elapsed)
        await_work(pid, enough, self.process)
        self.process.send_signal(signal.SIGINT)

    def end_unstarved(self, pid, seconds):
        """
        End it once it has traced the process for so many seconds, in which that did not wait for a CPU: beside others,
        it takes longer, and there are as many samples. What it does not trace has the same time, and some to begin.
        """
        begin, is_known = unstarved_s(pid) + BEGIN_SECONDS, False
        while self.process.poll() is None and (waits_for_cpu(pid) or unstarved_s(pid) < begin + seconds):
            if not is_known and is_traced(pid):
                begin, is_known = unstarved_s(pid), True
            time.sleep(0.01)
        if unstarved_s(pid) < math.inf:  # else it ends by itself
            self.process.send_signal(signal.SIGINT)

    def finish(self, status=OK):
        try:
            out, err = self.process.communicate(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        result = subprocess.CompletedProcess(self.process.args, self.process.returncode, out, err)
        assert result.returncode == status, f"status {result.returncode}: {err}"
        samples = stacks.parse_folded(self.folded.read_text(errors="replace"))
        return Recording(samples, json.loads(self.stats.read_text()), result)


def recorded(directory, *target, seconds=1, status=OK, **options):
    """The recorder and its recording. Of one process, it takes as many seconds in which that did not wait for a CPU."""
    is_process = target[0] == "-p" and isinstance(target[1], int)
    recorder = Recorder(directory, *target, seconds=seconds + is_process * READY_SECONDS, **options)
    if is_process:
        recorder.end_unstarved(target[1], seconds)
    return recorder, recorder.finish(status)


def record_native(directory, *target, seconds=2, **options):
    """Record. Returns stacks with native frames, root first, and their weights."""
    return native_stacks(recorded(directory, *target, seconds=seconds, **options)[0])


def record_native_until(is_enough, directory, *target, **options):
    """The stacks of several recordings, until they are enough: beside others, one may have few."""
    recorded_so_far = []
    for _ in range(RECORDINGS_MAX):
        recorded_so_far += record_native(directory, *target, **options)
        if is_enough(recorded_so_far):
            break
    return recorded_so_far


def native_stacks(recorder):
    """Stacks of a finished recorder with native frames, root first, and their weights."""
    whole = []
    for line in recorder.folded.read_text(errors="replace").splitlines():
        stack, _, weight = line.rpartition(" ")
        whole.append(([f.removesuffix(stacks.COMPILED_MARK) for f in stack.split(";")], int(weight)))
    return whole


def gdb_functions(pid):
    """Names of native frames according to gdb, leaf first. Leaves out frames that gdb
    makes up for tail calls: they are not on the stack."""
    script = """
frame = gdb.newest_frame()
while frame:
    if frame.type() != gdb.TAILCALL_FRAME:
        print("frame", frame.name() or "??")
    frame = frame.older()
"""
    out = subprocess.run(
        ["gdb", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-p", str(pid), "-ex", f"python exec({script!r})"],
        capture_output=True, text=True, timeout=60, check=False,
    ).stdout
    return re.findall(r"^frame (\S+)", out, re.MULTILINE)


def native_frames(dump):
    """Native frames of a dump's first thread, leaf first: each a name, or None if it
    has none, or is in the C library, where a function has several names. The C
    function that Lua calls is also a Lua frame, below the VM's, which does not count;
    Lua may have a name for it where its module has none."""
    frames = [line.strip() for line in dump[: dump.index("]", dump.index("    main [")) + 1].splitlines()[1:]]
    found = []
    for at, frame in enumerate(frames):
        name, _, place = frame.partition(" ")
        is_lua = place == "[builtin]" or not re.search(r"\[\S+\]$|\.[chS]:\d+$", frame)
        below_vm = at >= 2 and frames[at - 1].endswith("[vm]")
        called, _, called_in = frames[at - 2].partition(" ") if below_vm else ("", "", "")
        if is_lua or (below_vm and called_in == place and (called == name or "+0x" in called)):
            continue
        found.append(None if "+0x" in name or not place.endswith("]") or place in ("[vm]", "[libc.so.6]") else name)
    return found


def compare_with_gdb(pid, times=4):
    """Stop a running process by a signal and compare its native frames with gdb's.
    Returns how often gdb found the end of the stack, and so could be compared. gdb may
    give code without a symbol a neighbour's name."""
    compared = 0
    for _ in range(times):
        os.kill(pid, signal.SIGSTOP)
        try:
            assert wait_until(lambda: status_field(pid, "State") in "tT")
            dump = run("dump", "--native", "all", "-p", pid).stdout
            expected = gdb_functions(pid)
        finally:
            os.kill(pid, signal.SIGCONT)
        time.sleep(0.01)
        if expected[-1:] != ["main"] or "[lost" in dump:
            continue
        found = native_frames(dump)
        assert len(found) == len(expected), (dump, expected)
        assert all(name in (None, other) for name, other in zip(found, expected)), (dump, expected)
        compared += 1
    return compared


def record(directory, *target, **options):
    return recorded(directory, *target, **options)[1]


def weight_of(samples, predicate=lambda sample: True):
    return sum(s.weight for s in samples if predicate(s))


def has_frame(name):
    """Returns a function: does a sample contain a Lua function called NAME?"""
    return lambda sample: any(frame.startswith(name + " ") for frame in sample.frames)




# Functions that programs call through the FFI. LuaJIT's own traceback shows them as C
# functions of that name, ljspy as native frames.
FFI_FUNCTIONS = ("qsort",)

# LuaJIT's traceback names an error handler after the function that could not be called.
ERROR_HANDLERS = ("missing",)


def parse_dump(text):
    """Stacks of a dump, each a list of texts of Lua frames, leaf first. In a dump, an
    unindented line about the thread or coroutine precedes its indented frames, whose
    texts are those of the line view."""
    found = []
    for line in text.splitlines():
        if not line.startswith((" ", "\t")):
            found.append([])
        elif found and line.strip():
            found[-1].append(line.strip())
    ffi_call = re.compile(stacks.BUILTINS["ffi.metamethod"] + r" \[builtin\]")
    stacks_found = [[f for f in stacks.lua_frames(stack) if not ffi_call.fullmatch(f)] for stack in found]
    return [stack for stack in stacks_found if stack]


def parse_traceback(text):
    """Patterns for ljspy's frames from the text of debug.traceback, leaf first; None
    where it leaves frames out. C functions without a name are native frames. The
    traceback uses the caller's name for a main chunk called by name, and for a
    builtin, where ljspy uses the library's. It names what a hook runs after the
    interrupted instruction, which is not its name."""
    patterns = []
    for line in text.splitlines():
        if found := re.fullmatch(r"\t(.+?):(\d+): in main chunk", line):
            patterns.append(rf"main chunk {re.escape(found[1])}:{found[2]}")
        elif found := re.fullmatch(r"\t\[builtin:(\w+)\](?::-?\d+)?: in function .*", line):
            patterns.append(rf"(?:[\w.]+[.:])?{found[1]} \[builtin\]")
        elif found := re.fullmatch(r"\t(.+?):(\d+): in function '(.*)'", line):
            name = f"main chunk|{re.escape(found[3]) or stacks.UNNAMED}"
            if found[3].startswith("__") or found[3] in ERROR_HANDLERS:
                name += f"|{stacks.UNNAMED}"
            patterns.append(rf"(?:{name}) {re.escape(found[1])}:{found[2]}")
        elif found := re.fullmatch(r"\t(.+?):(\d+): in function <.+>", line):
            patterns.append(rf"{stacks.UNNAMED} {re.escape(found[1])}:{found[2]}")
        elif found := re.fullmatch(r"\t(?:\[C\]: in function '(.*)'|\[builtin#\d+\]: at .*)", line):
            if found[1] not in FFI_FUNCTIONS:
                patterns.append(r"\S+ \[builtin\]")
        elif line == "\t...":
            patterns.append(None)
    return patterns


def wait_until(condition, seconds=READY_SECONDS, pause=0.01):
    """Whether the condition came true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


@contextlib.contextmanager
def stalled_pipe():
    """The end to write to of a pipe that is full, and that nobody reads."""
    reading, writing = os.pipe()
    os.write(writing, bytes(fcntl.fcntl(writing, fcntl.F_GETPIPE_SZ)))
    try:
        yield writing
    finally:
        os.close(writing)
        os.close(reading)


def status_field(pid, field):
    """The first word of a field of /proc/PID/status."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return re.search(rf"^{field}:\s+(\S+)", status, re.MULTILINE)[1]


# What reading a file of /proc fails with when its process has ended.
GONE = (FileNotFoundError, ProcessLookupError)


def is_traced(pid):
    try:
        return status_field(pid, "TracerPid") != "0"
    except GONE:
        return False


def unstarved_s(pid):
    """A clock of seconds in which no thread of the process waited for a CPU; without an end once it is gone."""
    waited_ns = []
    with contextlib.suppress(*GONE):
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(*GONE):
                waited_ns.append(int((task / "schedstat").read_text().split()[1]))
    return time.monotonic() - max(waited_ns) / 1e9 if waited_ns else math.inf


def work_of(pid):
    """CPU time so far of each thread that has work."""
    work = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(*GONE):
            if status_field(task.relative_to("/proc"), "State") == "R":
                work[task.name] = (task / "schedstat").read_text().split()[0]
    return work


def waits_for_cpu(pid):
    """Whether threads have work, and none gets to it. unstarved_s() counts such a wait only once it is over."""
    with contextlib.suppress(*GONE):
        before = work_of(pid)
        time.sleep(0.01)  # the kernel counts at least so often
        now = work_of(pid)
        return bool(before) and all(now.get(thread) == ns for thread, ns in before.items())
    return False


def is_zombie(pid):
    """Whether the process has ended and its parent does not know yet; false if it is gone."""
    try:
        return status_field(pid, "State") == "Z"
    except GONE:
        return False


def runs_free(pid):
    """Whether the process has work, and nobody traces it."""
    return status_field(pid, "State") == "R" and status_field(pid, "TracerPid") == "0"


def children_of(pid):
    """Children of all its threads; none of a thread that has ended."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(*GONE):
            found += map(int, (task / "children").read_text().split())
    return found


def tracer(pid):
    """The process that traces PID: ljspy's engine."""
    return int(status_field(status_field(pid, "TracerPid"), "Tgid"))


def front(engine):
    """The front of that engine: the process that the user started."""
    return int(status_field(status_field(engine, "PPid"), "PPid"))


def wait_traced(pid):
    """Wait until ljspy has seized the process."""
    assert wait_until(lambda: status_field(pid, "TracerPid") != "0")


def is_writing(pid):
    """Whether one of its threads waits in write()."""
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            if (task / "syscall").read_text().split()[0] == WRITE:
                return True
    return False
