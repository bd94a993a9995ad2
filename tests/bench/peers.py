"""What a user might pick instead, at the same rate in the same run: how much longer
a fixed amount of work takes beside it, and its CPU time for a sample. On their own
languages, where they do not know Lua. What cannot be run is a row that says why."""

import contextlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import time

import ljspy
import measure

RATE = 99
START = 1.5  # seconds that the slowest of them needs to begin
LOOK = 2
END = 10  # ... and to write what it has


class Unavailable(Exception):
    """Why a peer cannot be run."""


def have(program):
    if not shutil.which(program):
        raise Unavailable(f"there is no {program}")


class Peer:
    """Beside a process until told to stop."""

    kind = "Lua"
    environment = None

    def __init__(self, directory):
        self.directory = directory

    def target(self, amount):
        return measure.luajit("work.lua", "interpreted", amount)

    def command(self, pid):
        raise NotImplementedError

    @contextlib.contextmanager
    def beside(self, pid):
        with subprocess.Popen(
            measure.strings(self.command(pid)),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.environment,
        ) as process:
            time.sleep(START)
            if process.poll() is not None:
                raise Unavailable(f"it ends with {process.returncode}")
            try:
                yield process
            finally:
                process.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(END)
                process.kill()


class Ljspy(Peer):
    name = "ljspy"

    def command(self, pid):
        return [ljspy.LJSPY, "record", "-p", pid, "-r", RATE, "-f", "ljspy", "-o", self.directory / "peer.ljspy"]


class Perf(Peer):
    name = "perf record -g (no Lua frames)"

    def command(self, pid):
        have("perf")
        return ["perf", "record", "-q", "-F", RATE, "-g", "-p", pid, "-o", self.directory / "perf.data"]


class Bpftrace(Peer):
    name = "eBPF: bpftrace, user stacks (no Lua frames)"

    def command(self, pid):
        program = self.directory / "peers/bpftrace/usr/bin/bpftrace"
        if not program.exists():
            raise Unavailable("bpftrace could not be fetched")
        self.environment = os.environ | {"LD_LIBRARY_PATH": str(program.parents[1] / "lib/x86_64-linux-gnu")}
        return [program, "-e", f"profile:hz:{RATE} /pid == {pid}/ {{ @[ustack] = count(); }}"]


class Austin(Peer):
    name = "austin, on Python"
    kind = "Python"

    def target(self, amount):
        return ljspy.Target(["/usr/bin/python3", measure.HERE / "work.py", amount], limit=600)

    def command(self, pid):
        programs = list((self.directory / "peers/austin").glob("*/scripts/austin"))
        if not programs:
            raise Unavailable("it could not be fetched from PyPI")
        return [programs[0], "-i", 1_000_000 // RATE, "-p", pid, "-o", self.directory / "austin.txt"]


class JitP(Peer):
    """LuaJIT's own, inside the process, by a signal and a hook."""

    name = "jit.p, inside the program"

    def target(self, amount):
        modules = list((self.directory / "peers/jit").glob("usr/share/luajit-*/jit/p.lua"))
        if not modules:
            raise Unavailable("its modules could not be fetched")
        environment = os.environ | {"LUA_PATH": f"{modules[0].parents[1]}/?.lua;;"}
        program = [ljspy.luajit("luajit"), f"-jp=fi{1000 // RATE},/dev/null"]
        return ljspy.Target([*program, measure.HERE / "work.lua", "interpreted", amount], limit=600, env=environment)

    @contextlib.contextmanager
    def beside(self, pid):
        yield None


def elapsed(amount, peer, start):
    with start(amount) as target:
        with peer.beside(target.pid) if peer else contextlib.nullcontext():
            return measure.working_time(target)


def cpu_per_sample(peer):
    """As many samples as are due: none of them takes as long as a period."""
    with peer.target(10**9) as target:
        target.write("go\n")
        with peer.beside(target.pid) as process:
            begin, used = time.monotonic(), ljspy.cpu_ns(process.pid)
            time.sleep(LOOK)
            return (ljspy.cpu_ns(process.pid) - used) / 1e3 / ((time.monotonic() - begin) * RATE)


def rows_of(peer, options):
    amount = measure.amount_for(lambda some: elapsed(some, None, peer.target), options.seconds)
    alone = Ljspy(peer.directory).target if peer.kind == "Lua" else peer.target
    pairs = [
        (elapsed(amount, None, alone), elapsed(amount, peer, peer.target)) for _ in range(options.pairs)
    ]
    bases, values = zip(*pairs)
    yield measure.Row(f"peers: time for {peer.kind} work, {RATE} Hz: {peer.name}", "s", values, bases, None, "alone")
    if not isinstance(peer, JitP):
        costs = [cpu_per_sample(peer) for _ in range(3)]
        yield measure.Row(f"peers: CPU time for a sample, {RATE} Hz: {peer.name}", "µs", costs)


def gdb(options):
    """It takes far longer than a period for each stack: as fast as it can."""
    have("gdb")
    with measure.luajit("work.lua", "interpreted", 10**9) as target:
        target.write("go\n")
        state = re.search(r"state (0x[0-9a-f]+)", ljspy.run("info", "-p", target.pid).stdout)[1]
        done = subprocess.run(
            ["gdb", "-nx", "-batch", "-ex", "set debuginfod enabled off"]
            + ["-ex", f"python arguments = ({target.pid}, {state}, {LOOK * options.seconds}, {RATE})"]
            + ["-x", measure.HERE / "gdb_lua.py"],
            capture_output=True, text=True, timeout=100, check=False,
        )
        pauses = measure.record(target.pid, options.seconds, RATE, options)["pause_us"]
    try:
        held = json.loads(done.stdout.splitlines()[-1])["held_us"]
    except (IndexError, ValueError) as error:
        raise Unavailable(done.stderr.strip().splitlines()[-1]) from error
    what = "peers: pause, gdb with a Lua backtrace script"
    yield measure.Row(what, "µs", [statistics.median(held)], [pauses["p50"]], None, "ljspy")


def rows(options):
    fetched = subprocess.run([measure.HERE / "fetch-peers", options.directory / "peers"], capture_output=True, check=False)
    if fetched.returncode:
        print(fetched.stderr.decode(errors="replace"))
    for peer in (Ljspy, JitP, Perf, Bpftrace, Austin):
        try:
            yield from rows_of(peer(options.directory), options)
        except Unavailable as reason:
            yield measure.Row(f"peers: {peer.name}", "", [], absent=str(reason))
    try:
        yield from gdb(options)
    except Unavailable as reason:
        yield measure.Row("peers: gdb with a Lua backtrace script", "", [], absent=str(reason))
    yield measure.Row("peers: phpspy", "", [], absent="in no package source that this uses")
