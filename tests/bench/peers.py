# SPDX-License-Identifier: MIT
"""Other profilers, in turn, at the same rate on the same process: how much longer the
target's work takes, how long it is held for a sample, and the profiler's own CPU time.
Profilers that do not know Lua profile their own language. A profiler that cannot run
gets a row that says why."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import time

import ljspy
import measure

RATE = 99
GDB_SECONDS = 2
END = 10  # seconds for a profiler to write its output


class Unavailable(Exception):
    """Says why a peer cannot run."""


def program(name):
    path = shutil.which(name)
    if not path:
        raise Unavailable(f"there is no {name}")
    return path


class Peer:
    """A profiler that looks at a process until it is stopped."""

    start = 0.7  # seconds it needs to begin
    environment = None

    def __init__(self, directory):
        self.directory = directory

    def command(self, pid):
        raise NotImplementedError

    @contextlib.contextmanager
    def beside(self, pid):
        with subprocess.Popen(
            measure.strings(self.command(pid)),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.environment,
        ) as process:
            try:
                time.sleep(self.start)
                if process.poll() is not None:
                    raise Unavailable(f"it ends with {process.returncode}")
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
        return [program("perf"), "record", "-q", "-F", RATE, "-g", "-p", pid, "-o", self.directory / "perf.data"]


class Bpftrace(Peer):
    name = "eBPF: bpftrace, user stacks (no Lua frames)"
    start = 1.5

    def command(self, pid):
        path = self.directory / "peers/bpftrace/usr/bin/bpftrace"
        if not path.exists():
            raise Unavailable("bpftrace could not be fetched")
        self.environment = os.environ | {"LD_LIBRARY_PATH": str(path.parents[1] / "lib/x86_64-linux-gnu")}
        return [path, "-e", f"profile:hz:{RATE} /pid == {pid}/ {{ @[ustack] = count(); }}"]


class JitP(Peer):
    """LuaJIT's own profiler, inside the process, by a signal and a hook."""

    name = "jit.p, inside the program"

    def command(self, pid):
        raise AssertionError

    @property
    def modules(self):
        """The directory of LuaJIT's Lua modules, or None."""
        found = list((self.directory / "peers/jit").glob("usr/share/luajit-*/jit/p.lua"))
        return found[0].parents[1] if found else None

    @property
    def switch(self):
        return self.directory / "jit.p"

    @contextlib.contextmanager
    def beside(self, pid):
        if not self.modules:
            raise Unavailable("its modules could not be fetched")
        whole = self.switch.with_suffix(".new")
        whole.write_text(f"fi{1000 // RATE}")
        whole.rename(self.switch)
        try:
            time.sleep(self.start)
            yield None
        finally:
            self.switch.unlink()
            time.sleep(measure.SETTLED)


class Austin(Peer):
    name = "austin"

    def command(self, pid):
        programs = list((self.directory / "peers/austin").glob("*/scripts/austin"))
        if not programs:
            raise Unavailable("it could not be fetched from PyPI")
        return [programs[0], "-i", 1_000_000 // RATE, "-p", pid, "-o", self.directory / "austin.txt"]


class Phpspy(Peer):
    name = "phpspy"
    options = ()

    def command(self, pid):
        return [program("phpspy"), "-p", pid, "-H", RATE, "-o", self.directory / "phpspy.txt", *self.options]


class PhpspyPausing(Phpspy):
    """phpspy with the option that makes its stacks consistent."""

    name = "phpspy --pause-process"
    options = ("--pause-process",)

    @contextlib.contextmanager
    def beside(self, pid):
        with super().beside(pid) as process:
            yield process
        # phpspy can leave the process stopped when it ends.
        os.kill(pid, signal.SIGCONT)


def lua(directory):
    jit_p = JitP(directory)
    environment = os.environ | {"LUA_PATH": f"{jit_p.modules}/?.lua;;"}
    argv = [ljspy.luajit("luajit"), measure.HERE / "work.lua", "interpreted", "report", jit_p.switch]
    return ljspy.Target(argv, limit=600, env=environment)


def python(_):
    return ljspy.Target(["/usr/bin/python3", measure.HERE / "work.py"], limit=600)


def php(_):
    return ljspy.Target([program("php"), measure.HERE / "work.php"], limit=600)


PEERS = {
    "Lua": (lua, (Ljspy, JitP, Perf, Bpftrace)),
    "Python": (python, (Austin,)),
    "PHP": (php, (Phpspy, PhpspyPausing)),
}


def stopped_ns(pid):
    """How long a process that never sleeps has neither run nor waited for a CPU, since
    an arbitrary moment."""
    _, waited, _ = pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()
    return time.monotonic_ns() - ljspy.cpu_ns(pid) - int(waited)


def look(peer, target, options):
    """The time for a piece of work; and for each due sample, how long the target is
    stopped, and the peer's CPU time. Microseconds."""
    with peer.beside(target.pid) if peer else contextlib.nullcontext() as process:
        begin, stopped, used = time.monotonic(), stopped_ns(target.pid), measure.cpu_with_children(process) if process else 0
        piece = measure.piece_us(target, options.seconds)
        due = (time.monotonic() - begin) * RATE
        stopped = (stopped_ns(target.pid) - stopped) / 1e3 / due
        used = (measure.cpu_with_children(process) - used) / 1e3 / due if process else 0
        return piece, stopped, used


def runs(peer, target, options):
    """Whether the peer runs, and if not, the row that says why."""
    try:
        look(peer, target, options)
    except Unavailable as reason:
        return False, measure.Row(f"peers: {peer.name}", "", [], absent=str(reason))
    return True, None


def rows_of(peer, language, found):
    """FOUND is as measure.interleaved() returns it."""
    what = f"peers, {RATE} Hz, {language}: {peer.name}"
    beside, alone = zip(*found)
    pieces, stopped, used = zip(*beside)
    yield measure.Row(f"{what}: time for work", "µs", list(pieces), {"alone": [base[0] for base in alone]})
    # The peer does not cause the time that the process is off the CPU when alone.
    held = [mine - base[1] for mine, base in zip(stopped, alone)]
    yield measure.Row(f"{what}: held for a sample, mean", "µs", held)
    if not isinstance(peer, JitP):
        yield measure.Row(f"{what}: CPU time for a sample", "µs", list(used))


def rows_in(language, start, kinds, options):
    try:
        target = start(options.directory)
    except Unavailable as reason:
        for kind in kinds:
            yield measure.Row(f"peers: {kind.name}", "", [], absent=str(reason))
        return
    with target:
        target.write("go\n")
        time.sleep(measure.SETTLED)
        peers = []
        for peer in (kind(options.directory) for kind in kinds):
            usable, row = runs(peer, target, options)
            if usable:
                peers.append(peer)
            else:
                yield row
        found = measure.interleaved(peers, lambda peer: look(peer, target, options), options.pairs) if peers else {}
    for peer in peers:
        yield from rows_of(peer, language, found[peer])


def gdb(options):
    """gdb takes far longer than a period for each stack, so it samples as fast as it can."""
    debugger = program("gdb")
    with measure.at_work("interpreted") as target:
        state = re.search(r"state (0x[0-9a-f]+)", ljspy.run("info", "-p", target.pid).stdout)[1]
        done = subprocess.run(
            [debugger, "-nx", "-batch", "-ex", "set debuginfod enabled off"]
            + ["-ex", f"python arguments = ({target.pid}, {state}, {GDB_SECONDS * options.seconds}, {RATE})"]
            + ["-x", measure.HERE / "gdb_lua.py"],
            capture_output=True, text=True, timeout=100, check=False,
        )
        pauses = measure.record(target.pid, options.seconds, RATE, options)["pause_us"]
    try:
        held = json.loads(done.stdout.splitlines()[-1])["held_us"]
    except (IndexError, ValueError) as error:
        raise Unavailable(done.stderr.strip().splitlines()[-1]) from error
    what = "peers: gdb with a Lua backtrace script: held for a sample"
    yield measure.Row(what, "µs", [statistics.median(held)], {"ljspy": [pauses["p50"]]})


def rows(options):
    fetched = subprocess.run([measure.HERE / "fetch-peers", options.directory / "peers"], capture_output=True, check=False)
    if fetched.returncode:
        print(fetched.stderr.decode(errors="replace"))
    for language, (start, kinds) in PEERS.items():
        yield from rows_in(language, start, kinds, options)
    try:
        yield from gdb(options)
    except Unavailable as reason:
        yield measure.Row("peers: gdb with a Lua backtrace script", "", [], absent=str(reason))
