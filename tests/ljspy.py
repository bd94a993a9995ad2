# SPDX-License-Identifier: MIT
"""Run ljspy and its targets; read what ljspy writes."""

import json
import os
import pathlib
import re
import select
import signal
import subprocess
import time
from typing import NamedTuple

import pytest

import stacks

ROOT = pathlib.Path(__file__).resolve().parent.parent
LJSPY = pathlib.Path(os.environ.get("LJSPY", ROOT / "build/release/ljspy"))
PACKAGES = ROOT / "build/packages"
RUNTIMES = ("luajit", "luajit2")

OK, WITH_ERRORS, NOTHING_PROFILED, USAGE = 0, 1, 2, 64

# To start in, on a machine that is busy with other things.
READY_SECONDS = 30

# Enough samples in little time.
HIGH_RATE = 997


def luajit(runtime):
    return PACKAGES / runtime / "usr/bin/luajit"


def helper(name):
    """A program of targets/, built with ljspy's unit tests."""
    path = LJSPY.parent / "tests/targets" / name
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return path


def in_namespaces(*options, setup="true", argv=()):
    """The command line that runs ARGV in namespaces of its own, as `unshare
    OPTIONS` makes them, after the shell commands SETUP. Nothing that is mounted
    there shows outside."""
    return ["unshare", *options, "sh", "-ec", f'{setup}\nexec "$@"', "sh", *map(str, argv)]


# Nobody else shows, and everything in there ends with its first process.
ALONE = ("-m", "-p", "-f", "--mount-proc", "--kill-child")

# As root in a container is without it.
WITHOUT_CAPABILITY = ("setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace")


def becoming(user):
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]


NOBODY = 65534


def as_user(user):
    """Options of subprocess for a process of that user, and of no other group."""
    return {} if user is None else {"user": user, "group": user, "extra_groups": []}


class Target:
    """A process to look at. It ends by itself after LIMIT seconds, whatever
    becomes of the tests; stop() ends it earlier. A context manager."""

    def __init__(self, argv, cwd=None, env=None, limit=60, user=None):
        # An alarm outlives exec: no wrapper stands between us and the pid.
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

    def read_until(self, end, seconds=10, at_end=None):
        """Output up to and including END; at the output's end AT_END, if given."""
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
        self.read_until(b"ready\n", seconds=READY_SECONDS)
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
    """A program under programs/, past its set-up."""
    argv = [luajit(runtime), f"{name}.lua", jit, seconds] + ([task] if task else [])
    return Target(argv, cwd=stacks.PROGRAMS).wait_ready()


def busy(code="", program=None, user=None, through=(), limit=60):
    """A LuaJIT program at work in a function called heavy, after CODE, which may
    use ffi; run by the command line THROUGH."""
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
    """The target, the stack and the traceback at each park of a program. It
    parks once in every stack that it spins in."""
    with program(runtime, name, jit="off", seconds=0.5, task="park") as target:
        for _ in range(most):
            report = target.read_until(b"\n\n", at_end="")
            if not report:
                return
            yield target, *report.split("\n", 1)
            target.write("\n")


def cpu_ns(pid):
    """CPU time of a process: its CPU clock, as clock_getcpuclockid() gives it."""
    return time.clock_gettime_ns(~pid << 3 | 2)


def sleeps(pid):
    """How often the process, which is asleep or about to be, went to sleep: so
    often but once it was woken."""
    assert wait_until(lambda: status_field(pid, "State") == "S")
    return int(status_field(pid, "voluntary_ctxt_switches"))


def run(*arguments, timeout=60, user=None, through=(), **options):
    """Run ljspy to its end, as USER and by the command line THROUGH."""
    options = {"capture_output": True, "text": True, "errors": "replace"} | as_user(user) | options
    argv = [str(a) for a in (*through, LJSPY, *arguments)]
    return subprocess.run(argv, timeout=timeout, check=False, **options)


class Recording(NamedTuple):
    samples: list
    stats: dict
    run: subprocess.CompletedProcess


class Recorder:
    """ljspy record at work; finish() waits for what it wrote. Several can run
    at the same time."""

    def __init__(self, directory, *target, seconds=1, rate=HIGH_RATE, options=(), user=None, through=()):
        self.folded = directory / "profile.folded"
        self.stats = directory / "stats.json"
        arguments = ["record", "-d", f"{seconds}s", "-r", rate, "-f", "folded", "-o", self.folded]
        arguments += ["--annotate", "--stats", self.stats, *options, *target]
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


def record_native(directory, *target, seconds=2, options=()):
    """Stacks with their native frames too, root first, and their weights."""
    recorder = Recorder(directory, *target, seconds=seconds, options=options)
    recorder.finish()
    whole = []
    for line in recorder.folded.read_text(errors="replace").splitlines():
        stack, _, weight = line.rpartition(" ")
        whole.append(([f.removesuffix(stacks.COMPILED_MARK) for f in stack.split(";")], int(weight)))
    return whole


def gdb_functions(pid):
    """Names of native frames as gdb sees them, leaf first. Where a call was the
    last thing that a function did, gdb makes up a frame for that: no stack has it."""
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
    """Native frames of the first thread of a dump, leaf first: a name, or None where
    it has none or the C library's has others, too. What Lua calls is a frame of
    Lua's as well, below the VM's."""
    frames = [line.strip() for line in dump[: dump.index("]", dump.index("    main [")) + 1].splitlines()[1:]]
    found = []
    for at, frame in enumerate(frames):
        name, _, place = frame.partition(" ")
        is_lua = place == "[builtin]" or not re.search(r"\[\S+\]$|\.[chS]:\d+$", frame)
        if is_lua or (at >= 2 and frames[at - 1].endswith("[vm]") and frames[at - 2] == frame):
            continue
        found.append(None if "+0x" in name or not place.endswith("]") or place in ("[vm]", "[libc.so.6]") else name)
    return found


def compare_with_gdb(pid, times=4):
    """How often a running process, stopped by a signal, had a stack whose end gdb
    found, too: then it has the same native frames. Code without a symbol may have a
    neighbour's name in gdb."""
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


def record(directory, *target, status=OK, **options):
    return Recorder(directory, *target, **options).finish(status)


def weight_of(samples, predicate=lambda sample: True):
    return sum(s.weight for s in samples if predicate(s))


def has_frame(name):
    """Whether a sample has a Lua function called NAME."""
    return lambda sample: any(frame.startswith(name + " ") for frame in sample.frames)




# Functions that a program calls through the FFI: to LuaJIT's own traceback they
# are C functions of that name, to ljspy native frames.
FFI_FUNCTIONS = ("qsort",)

# What LuaJIT calls an error handler after the function that it could not call.
ERROR_HANDLERS = ("missing",)


def parse_dump(text):
    """Stacks of a dump, each a list of texts of Lua frames, leaf first: below an
    unindented line about its thread or coroutine come the frames, indented, as
    the line view has them."""
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
    """The frames of debug.traceback's text as patterns of ljspy's frames, leaf
    first; None where it leaves frames out. C functions without a name are native
    frames. A main chunk that is called by a name goes by that name there, and a
    builtin by its caller's name, where ljspy has the library's. What a hook runs is
    named there after the instruction that was interrupted, which is no name of it."""
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


def wait_until(condition, seconds=10, pause=0.01):
    """Whether the condition came true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def status_field(pid, field):
    """The first word of a field of /proc/PID/status."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return re.search(rf"^{field}:\s+(\S+)", status, re.MULTILINE)[1]


def tracer(pid):
    """The process that traces it: the engine of a ljspy."""
    return int(status_field(status_field(pid, "TracerPid"), "Tgid"))


def front(engine):
    """The process that a user has started, of that engine."""
    return int(status_field(status_field(engine, "PPid"), "PPid"))


def wait_traced(pid):
    """Until ljspy has seized the process."""
    assert wait_until(lambda: status_field(pid, "TracerPid") != "0")
