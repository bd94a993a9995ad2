# SPDX-License-Identifier: MIT
"""`ljspy timers` shows what nginx has to do later: each timer once, when it is due, and where it leads to."""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import time

import pytest

import ljspy
import nginx_server

pytestmark = [
    pytest.mark.usefixtures("built"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the master must be root for its worker to be nobody"),
]

TEMPLATE = nginx_server.template("timers.conf.in")
ONCE, EVERY = range(1001, 1008), 2000  # seconds, in the configuration


@pytest.fixture
def silent():
    """A listener that accepts connections, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


@pytest.fixture
def nginx(tmp_path, silent):
    with nginx_server.Nginx(tmp_path / "nginx", TEMPLATE, SILENT=silent.getsockname()[1]) as server:
        server.wait_answers("/answers")
        yield server


def ask(server, stack, path):
    """Send a request. The connection stays open until STACK ends."""
    connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: shop\r\n\r\n".encode())
    return connection


def look(server, *options):
    (process,) = json.loads(ljspy.run("timers", "-p", server.worker, "--json", *options).stdout)["processes"]
    assert process["asleep"] and not process["torn"] and process["left_out"] == 0
    assert process["count"] == sum(timer["count"] for timer in process["timers"])
    return process["timers"]


def kinds(server):
    return {timer["kind"] for timer in look(server)}


def line_of(mark, block="init_worker_by_lua_block"):
    """The line with this mark, counted from the start of its Lua block."""
    lines = TEMPLATE.splitlines()
    (line,) = [n for n, text in enumerate(lines) if f"-- @{mark}" in text]
    start = max(n for n in range(line) if block in lines[n])
    return line - start + 1


@pytest.mark.parametrize("ahead", [3000, -60])
def test_timers_of_a_time_namespace(tmp_path, silent, ahead):
    """Its clock, by which timers count, is not that of ljspy."""
    launcher = ["unshare", "--time", "--monotonic", str(ahead)]
    if subprocess.run([*launcher, "true"], capture_output=True).returncode:
        pytest.skip("no time namespaces here")
    with nginx_server.Nginx(tmp_path / "nginx", TEMPLATE, SILENT=silent.getsockname()[1], launcher=launcher) as server:
        server.wait_answers("/answers")
        (once,) = [timer for timer in look(server) if timer["count"] == len(ONCE)]
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - process_start(server.master.pid)
        assert (ONCE[0] - age) * 1000 - 1000 <= once["first_due_ms"] < ONCE[0] * 1000


UNSHARE = """
		local ffi = require "ffi"
		ffi.cdef "int unshare(int);"
		assert(ffi.C.unshare(0x80) == 0) -- CLONE_NEWTIME
"""


def test_of_a_clock_whose_offset_is_unknown_no_times_are_told(tmp_path, silent):
    """The kernel tells the offset of the namespace of a process's children, which may be another one than its own."""
    launcher = ["unshare", "--time", "--monotonic", "3000"]
    if subprocess.run([*launcher, "true"], capture_output=True).returncode:
        pytest.skip("no time namespaces here")
    begin = "init_worker_by_lua_block {"
    config = TEMPLATE.replace("user nobody nogroup", "user root").replace(begin, begin + UNSHARE)
    with nginx_server.Nginx(tmp_path / "nginx", config, SILENT=silent.getsockname()[1], launcher=launcher) as server:
        server.wait_answers("/answers")
        worker = server.worker
        result = ljspy.run("timers", "-p", worker)
    assert result.returncode == ljspy.NOTHING_PROFILED and "None of" not in result.stderr
    assert f"Process {worker} is in another time namespace" in result.stderr


def test_pending_timers_of_lua_by_handler(nginx):
    timers = {timer["lua"][0]: timer for timer in look(nginx) if timer["kind"] == "ngx.timer"}
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - process_start(nginx.master.pid)
    (once,) = [timer for label, timer in timers.items() if label.endswith(f":{line_of('once')}>")]
    (every,) = [timer for label, timer in timers.items() if label.endswith(f":{line_of('sweep')}>")]
    assert len(timers) == 2 and once["count"] == len(ONCE) and every["count"] == 1
    assert once["last_due_ms"] - once["first_due_ms"] == (ONCE[-1] - ONCE[0]) * 1000
    for timer, seconds in ((once, ONCE[0]), (every, EVERY)):
        # The worker set them soon after it began, by the time that the master had noted before; the kernel counts in
        # ticks, nginx in milliseconds.
        assert (seconds - age) * 1000 - 50 <= timer["first_due_ms"] < seconds * 1000
    assert every["first_due_ms"] - once["first_due_ms"] == (EVERY - ONCE[0]) * 1000


def process_start(pid):
    """In seconds since boot."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


def test_timers_of_requests(nginx, silent):
    with contextlib.ExitStack() as stack:
        for path in ("/sleeps", "/sleeps", "/hangs/12"):
            ask(nginx, stack, path)
        ask(nginx, stack, "/answers").recv(100)  # kept alive
        assert ljspy.wait_until(lambda: kinds(nginx) >= {"coroutine", "upstream"})
        timers = {timer["kind"]: timer for timer in look(nginx)}
        shown = ljspy.run("timers", "-p", nginx.worker).stdout
    sleeps, upstream = timers["coroutine"], timers["upstream"]
    assert sleeps["count"] == 2 and sleeps["route"] == "/sleeps" and sleeps["last_due_ms"] <= 60_000
    assert sleeps["lua"][0].startswith("ngx.sleep ")
    assert sleeps["lua"][1].endswith(f":{line_of('sleeps', 'content_by_lua_block')}")
    assert upstream["count"] == 1 and upstream["route"] == "/hangs/*"
    assert upstream["peer"] == f"127.0.0.1:{silent.getsockname()[1]}"
    assert 400_000 < upstream["first_due_ms"] <= 500_000  # proxy_read_timeout
    assert "ngx.sleep" in shown and "of /hangs/*" in shown
    assert ljspy.wait_until(lambda: "upstream" not in kinds(nginx)), "a timer that nginx has removed"


def test_a_program_without_timers():
    with ljspy.Target(["sleep", "30"], limit=30) as target:
        done = ljspy.run("timers", "-p", target.pid)
    assert done.returncode == ljspy.NOTHING_PROFILED and "no timers of nginx" in done.stderr
