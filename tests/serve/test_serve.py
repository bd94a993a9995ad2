# SPDX-License-Identifier: MIT
"""`ljspy serve`: what it answers, to the programs that ask and to those that mean harm."""

import concurrent.futures
import contextlib
import errno
import gzip
import http.client
import json
import os
import pathlib
import random
import re
import resource
import select
import signal
import socket
import stat
import subprocess
import threading
import time

import pytest

import consumers
import ljspy

pytestmark = pytest.mark.usefixtures("built")

CAPTURES_MAX = 16
CLIENTS_MAX = 64

# CPU time that many samples are of: a profile that was taken meanwhile has some.
SEEN_NS = 300_000_000

# Each takes a second or more.
LOOKS_MAX = 30

PROMTOOL = ljspy.PACKAGES / "prometheus/usr/bin/promtool"


class UnixConnection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.host)


class Server:
    """A running `ljspy serve`."""

    def __init__(self, process, path=None):
        self.process = process
        said = process.stderr.readline() if process.stderr else f"ljspy: Listening on unix:{path}\n"
        found = re.match(r"ljspy: Listening on (?:http://(\S+):(\d+)|unix:(\S+))\n", said)
        assert found, said + process.stderr.read()
        self.host, self.port, self.path = found[1], found[2] and int(found[2]), found[3]

    def connection(self, timeout=60):
        if self.path:
            return UnixConnection(self.path, timeout=timeout)
        return http.client.HTTPConnection(self.host.strip("[]"), self.port, timeout=timeout)

    def get(self, path, status=200, method="GET", headers=None):
        connection = self.connection()
        if self.path:
            headers = {"Host": "localhost"} | (headers or {})
        connection.request(method, path, headers=headers or {})
        response = connection.getresponse()
        body = response.read()
        assert response.status == status, (response.status, body[:200])
        self.type = response.getheader("Content-Type")
        connection.close()
        return body

    def wait_sampling(self):
        assert ljspy.wait_until(lambda: self.metric("ljspy_samples_total") > 0, seconds=60, pause=0.2)

    def shows_work(self, page, pid):
        """Whether the function is on the page, by the first look during which the process had a CPU: beside others, that
        may take a while."""
        for _ in range(LOOKS_MAX):
            before = ljspy.cpu_ns(pid)
            if b"heavy" in strings(self.get(page)):
                return True
            if ljspy.cpu_ns(pid) - before >= SEEN_NS:
                break
        return False

    def metrics(self):
        """The values, by name with labels."""
        lines = self.get("/metrics").decode().splitlines()
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}

    def metric(self, name):
        return self.metrics()[name]

    def socket(self, room=None):
        """With room for so many bytes only, or as much as is usual."""
        raw = socket.socket()
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF) if room else ():
            raw.setsockopt(socket.SOL_SOCKET, option, room)
        if room:  # the server's room for what it sends begins with some segments
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        raw.settimeout(30)
        raw.connect((self.host, self.port))
        return raw


@contextlib.contextmanager
def serving(*options, listen="127.0.0.1:0", status=ljspy.OK):
    argv = [ljspy.LJSPY, "serve", "--listen", listen, *options]
    process = subprocess.Popen([str(a) for a in argv], stderr=subprocess.PIPE, text=True)
    try:
        server = Server(process)
        server.wait_sampling()
        yield server
        process.send_signal(signal.SIGINT)
        server.messages = process.communicate(timeout=60)[1]
        assert process.returncode == status, server.messages
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def target():
    code = "local parked = coroutine.wrap(function() while true do coroutine.yield() end end) parked()"
    with ljspy.busy(code, limit=400) as running:
        yield running


@pytest.fixture(scope="module")
def server(target):
    with serving("-p", target.pid) as running:
        yield running


def strings(profile):
    """The names in a pprof profile, roughly."""
    return gzip.decompress(profile)


@pytest.fixture(scope="module")
def pprof():
    return consumers.consumer("pprof") / "pprof"


@pytest.mark.parametrize("page", ["profile", "wall", "blocked"])
def test_pprof_fetches_and_shows_functions(server, pprof, tmp_path, page):
    url = f"http://{server.host}:{server.port}/debug/pprof/{page}?seconds=2"
    environment = os.environ | {"PPROF_TMPDIR": str(tmp_path)}
    text = subprocess.run([pprof, "-top", url], env=environment, capture_output=True, text=True, check=True,
                          timeout=120).stdout
    assert not re.search(r" of 0 asked|target 0 ms", text) or page == "blocked", text
    own = sum(float(share) for share in re.findall(r" ([\d.]+)% +[\d.]+% +\S+ +[\d.]+% +(?:.*\bheavy\b|\[vm)", text))
    if page == "blocked":
        return  # a program without an event loop has no turns: that pprof reads it is all
    assert own > 50, text
    tags = subprocess.run([pprof, "-tags", url.replace("seconds=2", "seconds=1")], env=environment,
                          capture_output=True, text=True, check=True, timeout=120).stdout
    assert {"pid:", "process:", "thread:", "vm_state:"} <= set(tags.split()), tags


def test_each_page_has_what_it_is_for(server, target):
    assert server.shows_work("/profile?seconds=1", target.pid)
    assert server.get("/flamegraph?seconds=1").startswith(b"<!") and server.type.startswith("text/html")
    top = json.loads(server.get("/top?seconds=1"))
    assert server.type == "application/json"
    assert top["session"]["pid"] == target.pid and top["figures"]["samples"] > 0
    assert b"coroutine" in strings(server.get("/coroutines?seconds=2"))
    assert b"heavy" in strings(server.get("/debug/pprof/heap"))
    assert strings(server.get("/offcpu?seconds=1"))
    assert b"/metrics" in server.get("/")
    assert server.get("/healthz", status=200) == b"ok\n"
    assert server.get("/metrics", method="HEAD") == b""


def test_metrics_count_the_targets_time(server, target):
    def cpu_s():
        return sum(value for name, value in server.metrics().items() if name.startswith("ljspy_cpu_seconds_total"))

    def used_s():
        return ljspy.cpu_ns(target.pid) / 1e9

    server.get("/profile?seconds=1")
    # The server counts at some moment between the question and the answer.
    begins_s, counted_s, begun_s = used_s(), cpu_s(), used_s()
    assert ljspy.wait_until(lambda: used_s() > begun_s + 2, seconds=ljspy.WORK_SECONDS)
    least_s, counted_s, most_s = used_s() - begun_s, cpu_s() - counted_s, used_s() - begins_s
    assert 0.5 * least_s < counted_s < 1.5 * most_s
    metrics = server.metrics()
    assert metrics[f'ljspy_lua_heap_bytes{{pid="{target.pid}",process="luajit"}}'] > 10000
    assert metrics["ljspy_own_cpu_seconds_total"] > 0
    assert metrics["ljspy_hold_seconds_count"] > 0
    longest = metrics["ljspy_hold_seconds_max"]
    assert 0 < metrics['ljspy_hold_seconds{quantile="0.5"}'] <= longest <= metrics["ljspy_hold_seconds_sum"]


def test_the_heap_of_a_process_that_has_ended_is_no_metric():
    def heaps(server):
        return {int(pid) for name in server.metrics() for pid in re.findall(r'heap_bytes{pid="(\d+)"', name)}

    with ljspy.busy() as one, ljspy.busy() as other, serving("-p", f"{one.pid},{other.pid}") as server:
        assert ljspy.wait_until(lambda: heaps(server) == {one.pid, other.pid})
        other.stop()
        assert heaps(server) == {one.pid}


def test_it_is_well_while_it_changes_between_clocks_and_heaps(server):
    """A probe that failed then would have a healthy ljspy ended, or its series broken off."""
    ends = threading.Event()
    seen = []

    def watch():
        while not ends.is_set():
            connection = server.connection()
            connection.request("GET", "/healthz")
            seen.append((connection.getresponse().status, server.metric("ljspy_up")))
            connection.close()

    runs = server.metric("ljspy_runs_total")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        watching = pool.submit(watch)
        for page in ("heap", "wall?seconds=1", "coroutines?seconds=1", "heap", "profile?seconds=1"):
            server.get(f"/{page}")
        ends.set()
        watching.result()
    assert server.metric("ljspy_runs_total") >= runs + 4
    assert set(seen) == {(200, 1)}


def test_promtool_accepts_the_metrics(server):
    if not PROMTOOL.exists():
        pytest.skip("Debian's prometheus is not in build/packages")
    result = subprocess.run([PROMTOOL, "check", "metrics"], input=server.get("/metrics"), capture_output=True,
                            check=False, timeout=60)
    assert result.returncode == 0 and not result.stdout + result.stderr


def test_one_loop_serves_all(server, target):
    tracer, runs = ljspy.tracer(target.pid), server.metric("ljspy_runs_total")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        profiles = list(pool.map(lambda seconds: server.get(f"/profile?seconds={seconds}"), (1, 2, 2, 3)))
    assert all(b"heavy" in strings(profile) for profile in profiles)
    assert (ljspy.tracer(target.pid), server.metric("ljspy_runs_total")) == (tracer, runs)


def test_a_client_that_goes_away_ends_its_capture(server, target):
    before = server.metric("ljspy_captures_abandoned_total")
    for _ in range(CAPTURES_MAX):
        raw = server.socket()
        raw.sendall(b"GET /profile?seconds=300 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        raw.close()
    assert ljspy.wait_until(
        lambda: server.metric("ljspy_captures_abandoned_total") == before + CAPTURES_MAX, seconds=30, pause=0.2)
    assert server.shows_work("/profile?seconds=1", target.pid)


def test_captures_are_bounded(server):
    held = []
    count = server.metric("ljspy_captures_total")
    for _ in range(CAPTURES_MAX):
        held.append(server.socket())
        held[-1].sendall(b"GET /profile?seconds=300 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert ljspy.wait_until(lambda: server.metric("ljspy_captures_total") == count + CAPTURES_MAX, pause=0.2)
    assert b"too many" in server.get("/profile?seconds=1", status=503)
    abandoned = server.metric("ljspy_captures_abandoned_total")
    for raw in held:
        raw.close()
    assert ljspy.wait_until(
        lambda: server.metric("ljspy_captures_abandoned_total") == abandoned + CAPTURES_MAX, seconds=30, pause=0.2)
    for seconds in ("0", "301", "-1", "1e1", "", "99999999999999999999", "x", "%00", "1%00"):
        server.get(f"/profile?seconds={seconds}", status=400)


def test_slow_clients_do_not_delay_sampling(server, target):
    """Some say nothing, some stop in their headers, some do not read their answer."""
    slow = [server.socket() for _ in range(12)]
    for i, raw in enumerate(slow):
        if i % 3 == 1:
            raw.sendall(b"GET /profile HTTP/1.1\r\nHost: loc")
        if i % 3 == 2:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            raw.sendall(b"GET /flamegraph?seconds=1 HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3)
    before = server.metrics()
    assert server.shows_work("/profile?seconds=3", target.pid)
    after = server.metrics()
    assert after["ljspy_samples_total"] > before["ljspy_samples_total"]
    assert after["ljspy_samples_dropped_total"] == before["ljspy_samples_dropped_total"]
    assert after["ljspy_away_seconds_total"] == before["ljspy_away_seconds_total"]
    for raw in slow:
        raw.close()


@contextlib.contextmanager
def dripping(sockets):
    """Each sends one more header now and then, but no end of its request."""
    ends = threading.Event()

    def drip():
        while not ends.wait(1):
            for raw in sockets:
                with contextlib.suppress(OSError):
                    raw.sendall(b"X: y\r\n")

    with concurrent.futures.ThreadPoolExecutor() as pool:
        pool.submit(drip)
        try:
            yield
        finally:
            ends.set()


def test_clients_without_a_whole_request_make_room(server):
    """The one that has waited the longest goes, none that has asked."""
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(server.socket()) for _ in range(CLIENTS_MAX)]
        slow[0].sendall(b"GET /profile?seconds=2 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for raw in slow[1:]:
            raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
        with dripping(slow[1:]):
            for page in ("/healthz", "/metrics") * 4:
                server.get(page)
            assert slow[1].recv(1) == b""
            assert slow[0].recv(65536).startswith(b"HTTP/1.1 200 ")
        slow[-1].sendall(b"\r\n")
        assert slow[-1].recv(65536).startswith(b"HTTP/1.1 200 ")


def fill(raw):
    """Ask again and again without reading an answer, until the server takes no more: it waits for its client."""
    raw.setblocking(False)
    while select.select([], [raw], [], 2)[1]:
        with contextlib.suppress(BlockingIOError):
            raw.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)


def test_clients_that_do_not_read_make_room(server):
    """Once all have asked, the one goes whose answer has waited the longest."""
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(server.socket(room=4096)) for _ in range(CLIENTS_MAX)]
        with concurrent.futures.ThreadPoolExecutor(CLIENTS_MAX) as pool:
            list(pool.map(fill, slow))
        for page in ("/healthz", "/metrics") * 4:
            server.get(page)


HOSTILE = [
    b"", b"\0", b"\r\n\r\n", b"GET", b"GET / HTTP/9.9\r\n\r\n", b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20000 + b"\r\n",
    b"POST /profile HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000000\r\n\r\n" + b"x" * 100000,
    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
    b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /%2e%2e/%00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET //// HTTP/1.1\r\nHost: localhost\r\n\r\n", b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /profile?seconds=1&seconds=300&" + b"&=" * 3000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\xff" * 500,
]


def test_hostile_requests_do_no_harm(server, target):
    chosen = random.Random(22)
    valid = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\n\r\n"
    mutants = []
    for _ in range(200):
        mutant = bytearray(valid)
        for _ in range(chosen.randint(1, 6)):
            mutant[chosen.randrange(len(mutant))] = chosen.randrange(256)
        mutants.append(bytes(mutant[: chosen.randint(1, len(mutant))]))
    for request in HOSTILE + mutants:
        with server.socket() as raw, contextlib.suppress(OSError):
            raw.sendall(request)
            raw.shutdown(socket.SHUT_WR)
            answer = raw.recv(65536)
            assert not answer or re.match(rb"HTTP/1\.[01] [2345]\d\d ", answer), (request, answer)
            assert b"root:" not in answer
    assert server.get("/healthz") == b"ok\n"
    assert ljspy.tracer(target.pid)
    assert server.shows_work("/profile?seconds=1", target.pid)


def test_pages_of_other_hosts_are_not_answered(server):
    assert b"host" in server.get("/metrics", status=403, headers={"Host": "attacker.example"})
    server.get("/metrics", status=403, headers={"Host": "localhost.attacker.example"})
    for host in ("127.0.0.1.attacker.example", "128.0.0.1", "[::2]", "[::1", "[", "[]", ":80", "127.0.0.1]"):
        server.get("/metrics", status=403, headers={"Host": host})
    for host in ("localhost:1234", "127.0.0.1", "127.1.2.3:80", "[::1]", "[::1]:80"):
        server.get("/metrics", headers={"Host": host})


FOLLOWED = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-User": "?1"}


def test_pages_of_other_sites_have_nothing_captured(server):
    before = server.metric("ljspy_captures_total")
    for site in ("cross-site", "same-site"):
        for into in ("image", "iframe", "empty", "document", None):
            asked = {"Sec-Fetch-Dest": into} if into else {}
            server.get("/top?seconds=1", status=403, headers={"Sec-Fetch-Site": site} | asked)
        by_script = {name: value for name, value in FOLLOWED.items() if name != "Sec-Fetch-User"}
        server.get("/heap", status=403, headers={"Sec-Fetch-Site": site} | by_script)
    assert server.metric("ljspy_captures_total") == before
    server.get("/healthz", headers={"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "image"})
    for site in ("cross-site", "same-site", "none"):
        server.get("/healthz", headers={"Sec-Fetch-Site": site} | FOLLOWED)


def test_who_asks_for_a_head_has_nothing_captured(server):
    before = server.metric("ljspy_captures_total")
    for page in ("heap", "profile", "debug/pprof/wall"):
        assert server.get(f"/{page}", method="HEAD") == b"" and server.type == "application/octet-stream"
    server.get("/profile?seconds=x", method="HEAD", status=400)
    assert server.metric("ljspy_captures_total") == before


def test_a_browser_that_guesses_has_nothing_captured(server):
    before = server.metric("ljspy_captures_total")
    for purpose in ({"Sec-Purpose": "prefetch"}, {"Sec-Purpose": "prefetch;prerender"}, {"Purpose": "prefetch"}):
        for site in ("none", "same-origin", "cross-site"):
            server.get("/heap", status=403, headers={"Sec-Fetch-Site": site} | FOLLOWED | purpose)
    assert server.metric("ljspy_captures_total") == before


def test_each_address_of_loopback_is_served():
    with ljspy.busy() as other, serving("-p", other.pid, listen="127.0.0.2:0") as server:
        assert server.host == "127.0.0.2"
        assert server.get("/healthz") == b"ok\n"


def test_other_machines_need_a_token(target, tmp_path):
    result = ljspy.run("serve", "-p", target.pid, "--listen", "0.0.0.0:0")
    assert result.returncode == ljspy.USAGE and "--token-file" in result.stderr
    token = tmp_path / "token"
    token.write_text("short\n")
    assert ljspy.run("serve", "-p", target.pid, "--token-file", token).returncode == ljspy.USAGE
    token.write_text("0123456789abcdef\nmore")
    argv = [ljspy.LJSPY, "serve", "--listen", "127.0.0.1:0", "--token-file", token, "--name", "no-such-program"]
    with subprocess.Popen([str(a) for a in argv], stderr=subprocess.PIPE, text=True) as process:
        server = Server(process)
        for given in (None, "Bearer 0123456789abcdeg", "Bearer 0123456789abcdef0", "Bearer ", "Basic 0123456789abcdef"):
            server.get("/metrics", status=401, headers={"Authorization": given} if given else {})
        right = {"Authorization": "Bearer 0123456789abcdef", "Host": "profiles.example"}
        assert b"ljspy_up" in server.get("/metrics", headers=right)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == ljspy.OK


def test_a_unix_socket_is_its_owners(target, tmp_path):
    path = tmp_path / "ljspy.sock"
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(path))
    stale.close()
    with ljspy.busy() as other, serving("-p", other.pid, listen=f"unix:{path}") as server:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert server.shows_work("/profile?seconds=1", other.pid)
        second = ljspy.run("serve", "-p", target.pid, "--listen", path)
        assert second.returncode == 2 and "in use" in second.stderr
    assert not path.exists()


def test_a_unix_socket_whose_queue_is_full_is_in_use(target, tmp_path):
    """Its owner may be stopped. To wait for it would take for ever, to remove its file would cut it off."""
    path = tmp_path / "other.sock"
    with socket.socket(socket.AF_UNIX) as owner, contextlib.ExitStack() as clients:
        owner.bind(str(path))
        owner.listen(0)
        while True:
            client = clients.enter_context(socket.socket(socket.AF_UNIX))
            client.setblocking(False)
            if client.connect_ex(str(path)) == errno.EAGAIN:
                break
        before = path.stat().st_ino
        refused = ljspy.run("serve", "-p", target.pid, "--listen", path, timeout=60)
        assert refused.returncode == ljspy.NOTHING_PROFILED and "in use" in refused.stderr
        assert "Let that program end, or name another path: --listen PATH" in refused.stderr
        assert path.stat().st_ino == before


@pytest.mark.parametrize("call, number, error, said", [
    # Without the first one, a helper that reads of the target, serve does its work itself.
    ("fork", 2, errno.EAGAIN, "No timer, thread or process can be had"),
    ("listen", 1, errno.EADDRINUSE, "Address already in use"),
])
def test_who_cannot_begin_to_serve_leaves_no_socket(target, tmp_path, call, number, error, said):
    path = tmp_path / "ljspy.sock"
    argv = [ljspy.helper("faulty"), call, number, number, error, tmp_path / "report", ljspy.LJSPY, "serve", "-p", target.pid,
            "--listen", path]
    result = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=60, check=False)
    assert (tmp_path / "report").read_text().split()[1] == "1", "no call has failed"
    assert result.returncode == ljspy.NOTHING_PROFILED and said in result.stderr, result.stderr
    assert not path.exists()


def test_why_there_is_no_answer_is_said_once():
    """An answer that finds no room on the disk is none; the next one may be. Those of other pages do not matter."""
    with ljspy.busy() as target, serving("-p", target.pid) as full:
        size = len(full.get("/metrics"))
        unlimited = resource.prlimit(full.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(full.process.pid, resource.RLIMIT_FSIZE, (size + 1024, unlimited[1]))
        for _ in range(3):
            full.get("/flamegraph?seconds=1", status=500)
            assert full.get("/metrics")
        resource.prlimit(full.process.pid, resource.RLIMIT_FSIZE, unlimited)
        assert full.get("/flamegraph?seconds=1").endswith(b"</html>\n")
    assert full.messages.count(os.strerror(errno.EFBIG)) == 1, full.messages
    assert full.messages.count("ulimit -f") == 1
    assert "answering /flamegraph: " in full.messages


def test_why_there_are_no_metrics_is_said():
    """What did not get to the disk before the end of the answer has a reason, too."""
    with ljspy.busy() as target, serving("-p", target.pid) as full:
        unlimited = resource.prlimit(full.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(full.process.pid, resource.RLIMIT_FSIZE, (1024, unlimited[1]))
        full.get("/metrics", status=500)
    assert f"answering /metrics: {os.strerror(errno.EFBIG)}" in full.messages, full.messages


def test_it_waits_for_processes_and_outlives_them(tmp_path):
    program = tmp_path / f"served-{os.getpid()}.lua"  # as nothing else is called, that another ljspy may trace
    program.write_text("local function heavy() for i = 1, 1e6 do end end while true do heavy() end")
    argv = [ljspy.LJSPY, "serve", "--listen", "127.0.0.1:0", "--name", program.name]
    with subprocess.Popen([str(a) for a in argv], stderr=subprocess.PIPE, text=True) as process:
        server = Server(process)
        for _ in range(2):
            with ljspy.Target([ljspy.luajit("luajit"), program]) as target:
                ljspy.wait_traced(target.pid)
                assert server.shows_work("/profile?seconds=2", target.pid)
        before = time.monotonic()
        with server.socket() as raw:
            raw.sendall(b"GET /profile?seconds=300 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            time.sleep(0.5)
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == ljspy.OK
        assert time.monotonic() - before < 60


@contextlib.contextmanager
def started(*options, through=(), env=None):
    """A `ljspy serve` that the test ends itself; the command line THROUGH runs it."""
    argv = [*through, ljspy.LJSPY, "serve", "--listen", "127.0.0.1:0", *options]
    process = subprocess.Popen([str(a) for a in argv], stderr=subprocess.PIPE, text=True, env=env)
    try:
        yield Server(process)
    finally:
        process.kill()
        process.communicate()


def test_it_leaves_no_process_to_the_first_one(tmp_path):
    """In a container that may be ljspy, or its target: neither expects other children."""
    program = tmp_path / "served.lua"
    program.write_text("local function heavy() for i = 1, 1e6 do end end while true do heavy() end")
    setup = f"timeout 100 {ljspy.luajit('luajit')} {program} &"
    with started("--name", "served", through=ljspy.in_namespaces(*ljspy.ALONE, setup=setup)) as server:
        first, = ljspy.children_of(server.process.pid)
        for page in ("coroutines?seconds=1", "profile?seconds=1", "heap"):
            assert server.get(f"/{page}")
        assert ljspy.wait_until(lambda: server.metric("ljspy_up") == 1, seconds=30)
        assert ljspy.wait_until(lambda: not any(map(ljspy.is_zombie, ljspy.children_of(first))))


@pytest.mark.parametrize("page", ["wall?seconds=100", "heap"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda s: s.name)
def test_a_signal_before_a_change_of_mode_ends_it(page, number):
    """The sampler looks about once a second whether another mode is wanted: the signal comes first."""
    with ljspy.busy(limit=200) as other, started("-p", other.pid) as server:
        server.wait_sampling()
        with server.socket() as raw:
            raw.sendall(f"GET /{page} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert ljspy.wait_until(lambda: server.metric("ljspy_captures_total") == 1)
            server.process.send_signal(number)
            assert server.process.wait(timeout=60) == ljspy.OK


def reads_heap(pid):
    with contextlib.suppress(*ljspy.GONE):
        return b"heap" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return False


def test_a_signal_ends_the_reading_of_a_heap():
    code = "local kept = {} for i = 1, 1e6 do kept[i] = { i } end"
    with ljspy.busy(code, limit=200) as other, started("-p", other.pid) as server:
        server.wait_sampling()
        with server.socket() as raw:
            raw.sendall(b"GET /heap HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert ljspy.wait_until(lambda: any(map(reads_heap, ljspy.children_of(server.process.pid))), seconds=30)
            server.process.send_signal(signal.SIGTERM)
            assert raw.recv(65536).startswith(b"HTTP/1.1 503 ")
        assert server.process.wait(timeout=60) == ljspy.OK
        assert ljspy.wait_until(lambda: ljspy.status_field(other.pid, "TracerPid") == "0")


def test_who_reads_messages_stalls(tmp_path):
    """What nobody reads holds neither samples nor answers, nor the end. A process runs no Lua, which is told of a heap."""
    path = tmp_path / "socket"
    argv = [ljspy.LJSPY, "serve", "--listen", f"unix:{path}", "-p"]
    with ljspy.busy() as target, subprocess.Popen(["sleep", "300"]) as sleeper, ljspy.stalled_pipe() as writing:
        with subprocess.Popen([*argv, f"{target.pid},{sleeper.pid}"], stderr=writing) as process:
            try:
                assert ljspy.wait_until(path.exists, seconds=60)
                server = Server(process, path)
                server.wait_sampling()
                assert b"heavy" in strings(server.get("/heap"))
                assert server.shows_work("/profile?seconds=1", target.pid)
                process.send_signal(signal.SIGTERM)
                assert process.wait(timeout=60) == ljspy.WITH_ERRORS
            finally:
                process.kill()
                sleeper.kill()


def test_a_clock_that_is_set_back_does_not_delay_answers(tmp_path):
    """The kernel's clock is an hour behind the one that ljspy has read."""
    env, ahead = ljspy.clock_that_can_be_set(tmp_path)
    with ljspy.busy() as other, started("-p", other.pid, env=env) as server:
        server.wait_sampling()
        ahead.write_text("3600")
        assert server.shows_work("/profile?seconds=1", other.pid)


def test_it_goes_on_without_a_process_that_has_ended():
    with ljspy.busy(limit=300) as one, ljspy.busy(limit=300) as other, started("-p", f"{one.pid},{other.pid}") as server:
        server.wait_sampling()
        assert server.shows_work("/profile?seconds=1", one.pid)
        one.stop()
        for page in ("profile?seconds=1", "wall?seconds=1", "coroutines?seconds=1"):
            server.get("/" + page)
        assert server.shows_work("/wall?seconds=1", other.pid)
        assert b"heavy" in strings(server.get("/heap"))
        # It asks before: who asks while the server ends may be answered no more.
        captures = server.metric("ljspy_captures_total")
        with server.socket() as raw:
            raw.sendall(b"GET /coroutines?seconds=100 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert ljspy.wait_until(lambda: server.metric("ljspy_captures_total") > captures)
            other.stop()
            assert raw.recv(65536).startswith(b"HTTP/1.1 503 ")
        said = server.process.communicate(timeout=60)[1]
    assert server.process.returncode == ljspy.OK, said
    assert "with the last of its targets" in said and "no process" not in said


def test_heaps_are_read_as_the_targets_are_sampled():
    with ljspy.busy(limit=200) as other:
        through = [ljspy.helper("refused"), "seize", str(errno.EIO)]
        with started("-p", other.pid, "--allow-attach", through=through) as server:
            server.wait_sampling()
            assert server.shows_work("/profile?seconds=1", other.pid)
            assert b"heavy" in strings(server.get("/debug/pprof/heap"))


def test_who_cannot_be_sampled_is_told_before_it_listens(tmp_path):
    path = tmp_path / "socket"
    gone = subprocess.Popen(["true"])
    gone.wait()
    refused = ljspy.run("serve", "-p", gone.pid, "--listen", f"unix:{path}", timeout=60)
    assert refused.returncode == ljspy.NOTHING_PROFILED
    assert f"There is no process {gone.pid}" in refused.stderr and "Listening" not in refused.stderr
    assert not path.exists()


@pytest.mark.parametrize("address", ["", "6060", "localhost", "localhost:http", "127.0.0.1:65536", "[::1:6060",
                                     "example.org:80", "unix:", "unix:" + "x" * 200, "1.2.3:80"])
def test_wrong_addresses_are_refused(address):
    result = ljspy.run("serve", "-p", os.getpid(), "--listen", address)
    assert result.returncode == ljspy.USAGE and "no address" in result.stderr


def test_a_file_where_the_socket_is_to_be_stays(tmp_path):
    path = tmp_path / "notes"
    path.write_text("kept")
    result = ljspy.run("serve", "-p", os.getpid(), "--listen", path)
    assert result.returncode == ljspy.NOTHING_PROFILED and path.read_text() == "kept"
    assert "no socket" in result.stderr and "name another path" in result.stderr.lower()
    assert "port" not in result.stderr


def test_an_address_in_use():
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        result = ljspy.run("serve", "-p", os.getpid(), "--listen", address)
    assert result.returncode == ljspy.NOTHING_PROFILED
    assert f"listening on {address}: Address already in use" in result.stderr
    assert "name another port: --listen" in result.stderr
