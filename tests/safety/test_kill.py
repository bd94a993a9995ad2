# SPDX-License-Identifier: MIT
"""Kill ljspy at any moment: its target is neither stopped nor traced, and works on.

SAFETY_KILLS says how often (`make safety`)."""

import os
import pathlib
import random
import signal
import subprocess
import time

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

KILLS = int(os.environ.get("SAFETY_KILLS", 10))
# The latest kill, by the time that ljspy takes until it traces: most kills come during the recording.
LATEST = 3
THREADS = 3

SPIN = "void *spin(void *unused) { for (volatile long i = 0;; i++) ; return unused; }"
COMPUTE = f"""
    ffi.cdef("int pthread_create(void *, void *, void *(*)(void *), void *); void *spin(void *);")
    local library = ffi.load("%s")
    for _ = 1, {THREADS} do assert(ffi.C.pthread_create(ffi.new("long[1]"), nil, library.spin, nil) == 0) end
"""


@pytest.fixture(params=["one thread", "several threads"])
def target(request, tmp_path):
    code = ""
    if request.param == "several threads":
        library = tmp_path / "spin.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", library], input=SPIN, text=True, check=True)
        code = COMPUTE % library
    with ljspy.busy(code, limit=ljspy.LIMIT_SECONDS + 2 * KILLS) as process:
        yield process


def tasks(pid):
    return sorted(pathlib.Path(f"/proc/{pid}/task").iterdir())


def field(task, name):
    return next(line.split()[1] for line in (task / "status").read_text().splitlines() if line.startswith(name + ":"))


def used(task):
    return int((task / "schedstat").read_text().split()[0])


def work_on(pid):
    """Whether every thread is untraced, unstopped and uses CPU time."""
    before = {task: used(task) for task in tasks(pid)}
    return ljspy.wait_until(
        lambda: all(
            field(task, "TracerPid") == "0" and field(task, "State") == "R" and used(task) > before[task]
            for task in before
        ),
        seconds=30,
    )


def test_target_works_on(target, tmp_path):
    threads = len(tasks(target.pid))
    traced = 0
    for kill in range(1 + KILLS):
        output = tmp_path / "profile.folded"
        arguments = ["-r", ljspy.HIGH_RATE, "-f", "folded", "-o", output, "-p", target.pid]
        begin = time.monotonic()
        with subprocess.Popen([ljspy.LJSPY, "record", *map(str, arguments)], stderr=subprocess.DEVNULL) as recorder:
            if kill == 0:
                ljspy.wait_traced(target.pid)
                tracing_after = time.monotonic() - begin
            else:
                time.sleep(random.uniform(0, LATEST * tracing_after))
            traced += ljspy.status_field(target.pid, "TracerPid") != "0"
            recorder.kill()
        assert work_on(target.pid)
        assert len(tasks(target.pid)) == threads
    assert traced > 0
    print(f"\n{1 + KILLS} kills, {traced} of them while it traced {threads} threads: all threads worked on")


def symbol_servers(guard):
    return [pid for pid in ljspy.children_of(guard) if ljspy.status_field(pid, "Name") == "ljspy-symbols"]


@pytest.mark.parametrize("how", ["killed", "interrupted"])
def test_a_stopped_reader_of_symbols_is_not_left_behind(how, tmp_path):
    with ljspy.busy() as target:
        arguments = ["record", "-o", tmp_path / "profile.svg", "--native", "all", "-p", target.pid]
        with subprocess.Popen([ljspy.LJSPY, *map(str, arguments)], stderr=subprocess.DEVNULL) as recorder:
            ljspy.wait_traced(target.pid)
            guard = int(ljspy.status_field(ljspy.tracer(target.pid), "PPid"))
            assert ljspy.wait_until(lambda: symbol_servers(guard))
            time.sleep(0.5)  # until it has been asked
            servers = symbol_servers(guard)
            for server in servers:
                os.kill(server, signal.SIGSTOP)
            recorder.send_signal(signal.SIGKILL if how == "killed" else signal.SIGINT)
            recorder.wait(timeout=60)
        try:
            assert servers and ljspy.wait_until(lambda: all(map(has_ended, servers)))
        finally:
            for server in filter(lambda pid: not has_ended(pid), servers):
                os.kill(server, signal.SIGKILL)


def has_ended(pid):
    return ljspy.is_zombie(pid) or not pathlib.Path(f"/proc/{pid}").exists()
