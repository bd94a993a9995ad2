# SPDX-License-Identifier: MIT
"""All workers of an nginx in one recording, including those that come and go."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import tempfile
import time

import pytest

import ljspy
import nginx_server

pytestmark = [
    pytest.mark.usefixtures("built"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the master must be root for its workers to be nobody"),
]

# Each request has its own connection, so that none is open and unused when a worker ends.
LOAD = ["-H", "Connection: close", "--timeout", "60s"]


@pytest.fixture
def directory():
    """A directory that every user can access."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="ljspy-nginx-"))
    path.chmod(0o777)
    yield path
    shutil.rmtree(path)


@contextlib.contextmanager
def serving(directory, workers, user=None):
    config = nginx_server.template("workers.conf.in")
    # Each worker has its own queue of connections, so that each gets its share.
    settings = {"WORKERS": workers, "LISTEN": " reuseport" if workers > 1 else ""}
    with nginx_server.Nginx(directory / "nginx", config, user=user, **settings) as server:
        server.wait_answers("/work")
        assert ljspy.wait_until(lambda: len(server.workers) == workers)
        yield server


@contextlib.contextmanager
def under_load(server, may_fail=False):
    """Keep the server under load; afterwards, check that no request failed."""
    with server.load("/work", 100, connections=8, options=LOAD) as load:
        try:
            yield
        finally:
            report = load.stop()
    assert load.returncode == 0
    if not may_fail:
        assert "Non-2xx" not in report and "Socket errors" not in report, report


@contextlib.contextmanager
def recorded(directory, server, user=None, status=ljspy.OK):
    """Record the whole tree. Yields, once all workers are traced, a list that gets the recording."""
    workers = set(server.workers)
    recorder = ljspy.Recorder(directory, "--tree", server.master.pid, seconds=100, user=user)
    outcome = []
    try:
        wait_traced(workers)
        yield outcome
    finally:
        recorder.process.send_signal(signal.SIGINT)
        outcome.append(recorder.finish(status))


def wait(condition):
    assert ljspy.wait_until(condition, seconds=60)


def wait_traced(pids):
    for pid in pids:
        wait(lambda: ljspy.status_field(pid, "TracerPid") != "0")


def wait_busy(pids, cpu_ns):
    """Wait until each has used that much more CPU time."""
    before = {pid: ljspy.cpu_ns(pid) for pid in pids}
    wait(lambda: all(ljspy.cpu_ns(pid) > before[pid] + cpu_ns for pid in pids))


def shares(recording):
    """Weight by worker."""
    found = {}
    for sample in recording.samples:
        for frame in sample.frames:
            if worker := re.search(r"worker_(\d+)", frame):
                found[int(worker[1])] = found.get(int(worker[1]), 0) + sample.weight
                break
    return found


def interruptions(server):
    return server.error_log.read_text().count("Interrupted system call")


def complaints(log):
    """The kinds of lines in an error log above the level of notices."""
    lines = (re.match(r"\S+ \S+ \[(\w+)\] \d+#\d+: (?:\*\d+ )?(.*)", line) for line in log.splitlines())
    return {re.sub(r"\d+", "N", line[2]) for line in lines if line and line[1] not in ("debug", "notice")}


def test_log_has_no_line_that_it_has_not_without_ljspy(directory, tmp_path):
    """Requests make the workers fall asleep and wake up all the time."""
    logs = []
    for profiled in (False, True):
        with serving(directory, 2) as server:
            begin = server.error_log.stat().st_size
            with server.load("/short", 60, connections=8) as load:
                if profiled:
                    ljspy.record(tmp_path, "--tree", server.master.pid, seconds=2)
                else:
                    time.sleep(2)
                # Before the clients leave: how they close their connections is theirs to choose.
                logs.append(complaints(server.error_log.read_text()[begin:]))
                report = load.stop()
            assert load.returncode == 0
            assert "Non-2xx" not in report and "Socket errors" not in report, report
        shutil.rmtree(directory / "nginx")
    without, with_ljspy = logs
    assert with_ljspy <= without


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 4])
def test_shares_of_all_workers(directory, tmp_path, workers):
    with serving(directory, workers) as server, under_load(server):
        pids = server.workers
        with recorded(tmp_path, server) as outcome:
            before = {pid: ljspy.cpu_ns(pid) for pid in pids}
            wait_busy(pids, 1e9)
            used = {pid: ljspy.cpu_ns(pid) - before[pid] for pid in pids}
        assert interruptions(server) == 0
    weights = shares(outcome[0])
    assert sum(weights.values()) > 0.8 * ljspy.weight_of(outcome[0].samples)
    for pid in pids:
        share = weights.get(pid, 0) / sum(weights.values())
        assert share == pytest.approx(used[pid] / sum(used.values()), abs=0.1)


@pytest.mark.parametrize("user", [None, ljspy.NOBODY], ids=["root", "nobody"])
def test_recording_by_the_user_of_the_master(directory, user):
    """Workers of root's master run as nobody; workers of nobody's master run as its user."""
    with serving(directory, 2, user=user) as server, under_load(server):
        workers = set(server.workers)
        with recorded(directory, server, user=user) as outcome:
            wait_busy(workers, 3e8)
    assert set(shares(outcome[0])) == workers


def test_workers_without_their_master(directory):
    """The user nobody may trace the workers, but not their master."""
    with serving(directory, 2) as server, under_load(server):
        workers = set(server.workers)
        with recorded(directory, server, user=ljspy.NOBODY, status=ljspy.WITH_ERRORS) as outcome:
            wait_busy(workers, 3e8)
    message = outcome[0].run.stderr
    assert f"Process {server.master.pid} ({nginx_server.COMM}) belongs to user root" in message
    assert set(shares(outcome[0])) == workers


@pytest.mark.slow
def test_reload_under_load(directory, tmp_path):
    """ljspy records old workers until they end, and new ones from their start; no request fails."""
    with serving(directory, 2) as server, under_load(server):
        old = set(server.workers)
        with recorded(tmp_path, server) as outcome:
            wait_busy(old, 3e8)
            server.master.process.send_signal(signal.SIGHUP)
            wait(lambda: len(set(server.workers) - old) == 2 and not old & set(server.workers))
            new = set(server.workers)
            wait_traced(new)
            wait_busy(new, 3e8)
    assert set(shares(outcome[0])) == old | new


@pytest.mark.parametrize("crash", [signal.SIGKILL, signal.SIGSEGV], ids=lambda s: s.name)
def test_worker_that_crashes_is_replaced(directory, tmp_path, crash):
    with serving(directory, 2) as server:
        with under_load(server, may_fail=True):
            before = set(server.workers)
            with recorded(tmp_path, server) as outcome:
                wait_busy(before, 3e8)
                victim = min(before)
                os.kill(victim, crash)
                wait(lambda: set(server.workers) - before)
                (successor,) = set(server.workers) - before
                wait_traced([successor])
                wait_busy([successor], 3e8)
        assert f"worker process {victim} exited on signal {int(crash)}" in server.error_log.read_text()
        assert server.get("/work")
    assert set(shares(outcome[0])) == before | {successor}
