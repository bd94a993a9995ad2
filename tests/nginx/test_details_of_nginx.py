# SPDX-License-Identifier: MIT
"""Which pattern, which dictionary, whose lock, which host: against what the configuration says."""

import contextlib
import os
import re
import signal
import socket
import threading
import time

import pytest

import ljspy
import nginx_server

pytestmark = [
    pytest.mark.usefixtures("built"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the master must be root for its workers to be nobody"),
]

# Details are what FFI calls are given.
has_ffi = pytest.mark.skipif(nginx_server.IS_OLD, reason="lua-nginx-module 0.10.13 makes no FFI calls")
CONFIG = nginx_server.template("details.conf.in")
DETAIL = re.compile(r"\[(?:pattern|dict|lock|host) .*\]$")
PATTERNS = {"pattern ^(a+)+$", "pattern ^(a|aa)+$"}


@pytest.fixture(scope="module")
def server(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp("details")
    with nginx_server.Nginx(directory / "nginx", CONFIG, COMPILED=request.param) as nginx:
        nginx.wait_answers("/begin", "/fill")
        nginx.compiled = request.param == 1
        yield nginx


both = pytest.mark.parametrize("server", [0, 1], ids=["interpreted", "compiled"], indirect=True)
compiled = pytest.mark.parametrize("server", [1], ids=["compiled"], indirect=True)


def worker_of(server, name):
    match = re.search(rf"works on {name} in (\d+)\.", server.error_log.read_text())
    return int(match[1]) if match else None


@contextlib.contextmanager
def busy(server, *paths):
    """Have a worker for each location that answers nobody else meanwhile. Yields their pids."""
    server.get("/begin")
    threads, workers = [], []
    try:
        for path in paths:
            # Another request might be taken by this worker, too, and wait: it tells in its log that it works.
            name = str(time.monotonic_ns())
            threads.append(threading.Thread(target=server.answers, args=[f"{path}?id={name}"]))
            threads[-1].start()
            assert ljspy.wait_until(lambda: worker_of(server, name))
            workers.append(worker_of(server, name))
        yield workers
    finally:
        server.get("/end")
        for thread in threads:
            thread.join()


def record(directory, server, *options):
    """Stacks, root first, by lines."""
    path = directory / "details.folded"
    result = ljspy.run("record", "--tree", server.master.pid, "-d", "1s", "-r", 499, "--lines", "-f", "folded",
                       "-o", path, *options)
    assert result.returncode == ljspy.OK, result.stderr
    return [line.rpartition(" ")[0].split(";") for line in path.read_text().splitlines()]


def truths():
    """The detail that belongs to each line of a location's Lua: the comment at its end."""
    found, first = {}, None
    for number, line in enumerate(CONFIG.splitlines(), 1):
        if "content_by_lua_block" in line:
            first = number
        match = re.search(r"-- ((?:pattern|dict) .*)", line)
        if match:
            found[f"nginx.conf:{first}):{number - first + 1}"] = match[1]
    return found


def judge(stacks):
    """How many details are right and how many unknown, and which are right; none may be wrong."""
    truth, right = truths(), set()
    counts = {"right": 0, "unknown": 0}
    for frames in stacks:
        for at, frame in enumerate(frames):
            if not DETAIL.match(frame):
                continue
            lines = [below.partition("content_by_lua(")[2] for below in frames[:at] if "content_by_lua(" in below]
            expected = truth.get(lines[-1])
            if expected is None and any(text in frame for text in ("[dict flags", "[lock of flags", " unknown")):
                continue    # until_over() looks whether it is over
            if " unknown" in frame:
                counts["unknown"] += 1
                continue
            # The worker takes the lock of that dictionary, or has just done so.
            locked = f"[lock of {expected.split()[1].rstrip(':')}"
            if frame in (f"{locked}]", f"{locked}: taken]"):
                continue
            # Compiled code does not tell the key.
            without_key = expected.partition(' "')[0]
            assert frame in (f"[{expected}]", f"[{without_key}]"), frames
            counts["right"] += 1
            right.add(expected)
    return counts, right


def judge_until(directory, server, path, wanted):
    """Record until all that is wanted was seen: a busy machine gives a worker few samples."""
    stacks = []
    with busy(server, path):
        for _ in range(8):
            stacks += record(directory, server, "--detail")
            counts, right = judge(stacks)
            if right and right >= wanted:
                break
    return counts, right


@has_ffi
@both
def test_patterns_are_those_of_their_lines(server, tmp_path):
    counts, right = judge_until(tmp_path, server, "/patterns", PATTERNS)
    assert right == PATTERNS, counts
    assert counts["unknown"] <= counts["right"] / 10, counts


@has_ffi
@both
def test_dictionaries_are_those_of_their_lines(server, tmp_path):
    wanted = {'dict cats: get "tom"', 'dict dogs: store "rex"', 'dict dogs: incr "rex"'}
    if server.compiled:
        # Without the argument, the dictionary is known only while it is locked.
        counts, right = judge_until(tmp_path, server, "/dicts", set())
        assert right and right <= wanted, counts
    else:
        counts, right = judge_until(tmp_path, server, "/dicts", wanted)
        assert right == wanted and counts["unknown"] == 0, counts


@has_ffi
@compiled
def test_nothing_is_shown_unless_asked_for(server, tmp_path):
    with busy(server, "/patterns"):
        stacks = record(tmp_path, server)
    assert any("ngx_http_lua_ffi_exec_regex" in frame for frames in stacks for frame in frames)
    assert not any(DETAIL.match(frame) for frames in stacks for frame in frames)


@compiled
def test_locks_are_held_by_the_worker_that_works(server, tmp_path):
    with busy(server, "/holds", "/waits") as workers:
        stacks = record(tmp_path, server, "--detail", "--clock", "wall")
    locks = [frame for frames in stacks for frame in frames if frame.startswith("[lock of dogs")]
    assert f"[lock of dogs: held by {workers[0]}, running]" in locks
    # Whoever gets a lock may hold it, or have given it back, when its frame is copied.
    allowed = rf"\[lock of dogs(: taken|: held by ({workers[0]}|{workers[1]}), (running|asleep))?\]"
    assert all(re.fullmatch(allowed, lock) for lock in locks), locks


@compiled
def test_a_stopped_holder_is_named(server):
    with busy(server, "/holds", "/waits") as (holder, waiter):
        for _ in range(40):
            os.kill(holder, signal.SIGSTOP)
            try:
                assert ljspy.wait_until(lambda: ljspy.status_field(holder, "State") in "tT")
                time.sleep(0.02)
                text = ljspy.run("dump", "--detail", "-p", waiter).stdout
            finally:
                os.kill(holder, signal.SIGCONT)
            if f"held by {holder}" in text:
                break
            time.sleep(0.01)
    # Through C functions that return to Lua by themselves, only the outermost is there.
    below = r"(ngx_shmtx_lock \[nginx\]|get \[ngx_http_lua_module.so\])"
    assert re.search(rf"    \[lock of dogs: held by {holder}, stopped\]\n    {below}\n", text), text
    assert "[dict dogs: get" in text or nginx_server.IS_OLD


@compiled
def test_requests_show_the_host_that_they_wait_for(server):
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(b"GET /host HTTP/1.0\r\n\r\n")
        assert ljspy.wait_until(lambda: "connect" in ljspy.run("requests", "--tree", server.master.pid).stdout)
        plain, asked = (ljspy.run("requests", "--tree", server.master.pid, *option).stdout for option in ([], ["--detail"]))
    assert "slow.example.test" not in plain
    assert re.search(r"\[host slow\.example\.test(:80)?\] < connect ", asked), asked
