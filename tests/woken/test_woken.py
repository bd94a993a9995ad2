# SPDX-License-Identifier: MIT
"""`ljspy record --when` records nothing until a condition holds, and then what led to it, too."""

import contextlib
import errno
import json
import os
import pathlib
import re
import resource
import signal
import socket
import subprocess
import sys
import time

import pytest

import ljspy

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "nginx"))
import nginx_server  # noqa: E402

pytestmark = pytest.mark.usefixtures("built")

# Does what its file says: nothing much, which takes less than a hundredth of a CPU, work, keep more and more, or have
# much at once. It keeps twice as much at each step, so that its heap grows within a second with little of a CPU, too.
PROGRAM = """
local ffi = require("ffi")
ffi.cdef("int usleep(unsigned int)")
local kept, much = {}, nil
local function spin(seconds)
    local until_s = os.clock() + seconds
    while os.clock() < until_s do for i = 1, 1000 do kept[0] = {i} end end
end
local function calm() spin(0.00025) ffi.C.usleep(50000) end
local function storm() spin(0.1) end
local function grow() for i = 1, #kept < 5e5 and #kept + 100 or 0 do kept[#kept + 1] = {i} end spin(0.002) end
local function read() local file = io.open(arg[1]) local word = file and file:read() if file then file:close() end return word end
print("ready") io.stdout:flush()
while true do
    local word = read()
    if word == "storm" then storm() elseif word == "grow" then grow()
    elseif word == "much" then much = much or ("x"):rep(300e6) calm() else calm() end
end
"""

# In less, no request or turn of an event loop meets a condition of theirs below.
SOON_S = 0.3
ROUNDS = 5  # of requests, until those of one are all answered so soon


class Woken:
    """A running `ljspy record --when` into a directory."""

    def __init__(self, directory, *options):
        self.directory = directory / "kept"
        self.messages = directory / "messages"
        argv = [ljspy.LJSPY, "record", *options, "-o", self.directory]
        with open(self.messages, "w", encoding="utf-8") as messages:
            self.process = subprocess.Popen([str(a) for a in argv], stderr=messages)

    def said(self):
        return self.messages.read_text()

    def count(self, cause):
        """How many recordings have begun because of CAUSE, a pattern."""
        return len(re.findall(f"{cause}.*: recording until", self.said()))

    def recordings(self):
        return sorted(self.directory.glob("*.ljspy"))

    def wakes(self, cause=".", text=""):
        """
        Wait until there is a whole recording because of CAUSE, a pattern, that shows this text. Returns its path. There
        may be others: beside other programs a target waits for a CPU, and is slow for that.
        """
        def found():
            for path in self.recordings():
                run = ljspy.run("report", path)
                is_because = re.search(f"^recorded because of {cause}", run.stdout, re.MULTILINE)
                if is_because and text in run.stdout and "has no end" not in run.stderr:
                    return path
            return None

        assert ljspy.wait_until(found, seconds=60), self.said()
        return found()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=60)


def traced(pids):
    return lambda: all(ljspy.status_field(pid, "TracerPid") != "0" for pid in pids)


def report(path):
    return json.loads(ljspy.run("report", path, "-f", "json").stdout)


@contextlib.contextmanager
def program(directory, name):
    """A running program, and the file that says what it does."""
    source = directory / "program.lua"
    source.write_text(PROGRAM)
    with ljspy.Target([ljspy.luajit("luajit"), source, directory / name]) as target:
        yield target.wait_ready(), directory / name


@pytest.mark.parametrize("word, condition, cause", [
    ("storm", "cpu>2% for 1s", r"used \d+ % of a core in 1 s"),
    ("grow", "heap+50%/1s", r"had a Lua heap that grew by \d+ %"),
    ("much", "rss>200M", r"had \d+\.\d MiB in memory"),
])
def test_what_led_to_it_is_recorded(tmp_path, word, condition, cause):
    with program(tmp_path, "a") as (calm, _), program(tmp_path, "b") as (busy, file):
        options = ("-p", f"{calm.pid},{busy.pid}", "--when", condition, "--for", "1s", "--at-most", 1, "-r", 499)
        with Woken(tmp_path, *options) as woken:
            assert ljspy.wait_until(traced([calm.pid, busy.pid]))
            time.sleep(2)
            assert woken.recordings() == [] and woken.said() == ""
            file.write_text(word)
            path = woken.wakes()
        said = woken.said()
    assert woken.process.returncode == ljspy.OK
    assert woken.recordings() == [path]
    cause = rf"{re.escape(condition)}: luajit \(pid {busy.pid}\) {cause}"
    assert said.count("recording until") == 1
    assert re.search(f"{cause}: recording until 1 s later, into {path.name}", said), said
    text = ljspy.run("report", path).stdout
    assert re.search(rf"^recorded because of {cause}, \d+ s after the beginning$", text, re.MULTILINE), text
    # What came before, of both, and what it was.
    functions = {"storm": ("calm", "storm"), "grow": ("calm", "grow"), "much": ("calm",)}[word]
    assert all(re.search(rf" {name} \S+program.lua:", text) for name in functions), text
    by_pid = ljspy.run("report", path, "--by", "pid").stdout
    assert f"(pid {calm.pid})" in by_pid and f"(pid {busy.pid})" in by_pid
    session = report(path)["session"]
    assert re.match(cause, session["cause"])
    assert session["duration_ns"] > 3e9
    picture = path.with_suffix(".svg")
    ljspy.run("report", path, "-o", picture)
    assert re.search(f"Recorded because of {cause.replace('>', '&gt;')}", picture.read_text())


def test_there_are_at_most_so_many_an_hour(tmp_path):
    with program(tmp_path, "a") as (target, file):
        options = ("-p", target.pid, "--when", "rss>200M", "--when", "cpu>2% for 1s", "--for", "200ms", "--at-most", 1)
        with Woken(tmp_path, *options) as woken:
            assert ljspy.wait_until(traced([target.pid]))
            file.write_text("much")
            path = woken.wakes()
            file.write_text("storm")
            assert ljspy.wait_until(lambda: "not recorded" in woken.said())
            time.sleep(1)
        said = woken.said()
    assert woken.recordings() == [path]
    assert said.count("recording until") == said.count("not recorded") == 1
    assert re.search(r"not recorded, for there is 1 recording within an hour \(--at-most\); the next one is possible "
                     r"in (59|60) minutes", said), said


def test_what_comes_before_and_cannot_be_kept_is_told_once_with_its_cause(tmp_path):
    """The limit is for files that keep messages, too, so they go into a pipe."""
    command = ["timeout", "60", ljspy.LJSPY, "record", "--when", "rss>100G", "-r", 499, "-o", tmp_path / "kept", "-p"]
    with program(tmp_path, "a") as (target, _):
        woken = subprocess.Popen([str(word) for word in [*command, target.pid]], stderr=subprocess.PIPE, text=True)
        assert ljspy.wait_until(traced([target.pid]))
        (front,) = ljspy.children_of(woken.pid)
        resource.prlimit(front, resource.RLIMIT_FSIZE, (64, 64))
        said = woken.stderr.readline() + woken.stderr.readline()
        time.sleep(3)
        os.kill(front, signal.SIGINT)
        said += woken.communicate()[1]
    cause = f"Samples are missing in what comes before a recording: {os.strerror(errno.EFBIG)}\n"
    assert said.startswith(f"ljspy: warning: {cause}ljspy: Allow larger files: ulimit -f unlimited\n"), said
    assert said.count(cause) == 1 and "Memory" not in said, said


@pytest.mark.skipif(os.geteuid() != 0, reason="the master must be root for its worker to be nobody")
def test_slow_requests_and_blocked_loops_wake_it_after_a_reload_too(tmp_path):
    config = nginx_server.template("routes.conf.in")
    with socket.create_server(("127.0.0.1", 0)) as silent, contextlib.ExitStack() as stack:
        settings = {"JIT": "on", "SILENT": silent.getsockname()[1]}
        server = stack.enter_context(nginx_server.Nginx(tmp_path / "nginx", config, **settings))
        server.wait_answers("/work/a/1")
        first = server.worker

        def ask(path):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            return connection

        def seconds_of_get():
            begin = time.monotonic()
            server.get("/work/a/1")
            return time.monotonic() - begin

        def waited_s(pid):
            return int(pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9

        def is_quick_round():
            """Ten requests. If neither the client nor the kernel knows of a delay, nothing may be recorded."""
            said, waited_before_s = woken.said(), waited_s(first)
            longest_s = 0
            for _ in range(10):
                longest_s = max(longest_s, seconds_of_get())
                time.sleep(0.1)
            if longest_s >= SOON_S or waited_s(first) - waited_before_s >= SOON_S:
                time.sleep(2)  # until ljspy has told what it saw
                return False
            assert woken.said() == said
            return True

        def latency(pid):
            return rf"latency>600ms: nginx \(pid {pid}\) had a request in flight for \d+\.\d\d s"

        def blocked(pid):
            return rf"blocked>400ms: nginx \(pid {pid}\) took \d+ ms for a turn of its event loop"

        def assert_once(pid, path):
            """However long it is in flight, a request is recorded once."""
            before = woken.count(latency(pid))
            request = ask(path)
            woken.wakes(latency(pid))
            assert ljspy.wait_until(lambda: woken.count(latency(pid)) > before, seconds=60)
            time.sleep(1)
            assert woken.count(latency(pid)) == before + 1, woken.said()
            return request

        conditions = ("--when", "latency>600ms", "--when", "blocked>400ms")
        options = ("--tree", server.master.pid, *conditions, "--for", "500ms", "--at-most", 60, "-r", 49)
        with Woken(tmp_path, *options) as woken:
            assert ljspy.wait_until(traced([first]))
            is_quick = any(is_quick_round() for _ in range(ROUNDS))
            slow = assert_once(first, "/hangs/1")
            slow.close()
            waits_s = [waited_s(first)]
            server.master.process.send_signal(signal.SIGHUP)
            assert ljspy.wait_until(lambda: server.workers and first not in server.workers)
            second = server.worker
            assert ljspy.wait_until(traced([second]))
            server.get("/work/a/1")
            assert_once(second, "/hangs/2")
            ask("/spins")
            woken.wakes(blocked(second), " spin ")
            waits_s.append(waited_s(second))
            os.kill(second, signal.SIGKILL)
        causes = [report(path)["session"]["cause"] for path in woken.recordings()]
    awaited = [latency(first), latency(second), blocked(second)]
    assert all(re.match(f"{latency('[0-9]+')}|{blocked('[0-9]+')}", cause) for cause in causes), causes
    if max(waits_s) < SOON_S:
        assert len(causes) == len(awaited) and all(map(re.match, awaited, causes)), causes
    assert "several conditions" in ljspy.run("report", woken.directory).stdout
    if not is_quick:
        pytest.skip(f"of {ROUNDS} times ten requests, each had one that waited: whether those wake it was not judged")


@pytest.mark.parametrize("arguments, said", [
    (["--when", "cpu>90%"], "-o names the directory"),
    (["--when", "cpu=90%", "-o", "x"], "no condition to wait for"),
    (["--when", "rss>lots", "-o", "x"], "not a size"),
    (["--when", "blocked>1us", "-o", "x"], "not a time"),
    (["--when", "cpu>90%", "--every", "1m", "-o", "x"], "give one of them"),
    (["--when", "cpu>90%", "-f", "svg", "-o", "x"], "recordings only"),
    (["--when", "cpu>90%", "--blocked", "-o", "x"], "in place of --blocked"),
    (["--when", "cpu>90%", "--coroutines", "-o", "x"], "--coroutines"),
    (["--when", "cpu>90%", "--no-stop", "-o", "x"], "--no-stop"),
    (["--when", "cpu>90%", "--for", "2h", "-o", "x"], "an hour at most"),
    (["--when", "cpu>90%", "--at-most", "0", "-o", "x"], "number from 1"),
    (["--at-most", "3", "-o", "x"], "go with --when"),
    (["--for", "3s", "-o", "x"], "go with --when"),
    (["--when", "rss>1G"] * 9 + ["-o", "x"], "8 times at most"),
])
def test_options_that_make_no_sense(arguments, said):
    result = ljspy.run("record", "-p", os.getpid(), *arguments)
    assert result.returncode == ljspy.USAGE
    assert said in result.stderr and len(result.stderr.splitlines()) <= 2
    assert not pathlib.Path("x").exists()
