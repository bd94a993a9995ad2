# SPDX-License-Identifier: MIT
"""An nginx with twelve routes on each of three hosts, clients that ask it for all of them at once, and what its
log and its Lua know of the requests."""

import pathlib
import random
import re
import socket
import signal
import subprocess
import sys
import threading
import time
from typing import NamedTuple

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent), str(HERE.parent / "nginx")]

import ljspy  # noqa: E402
import nginx_server  # noqa: E402

HOSTS = ["shop1", "shop2", "shop3"]
ROUTES = ["work", "filters", "threads", "captures", "inner", "execs", "target", "rewrites", "rewritten", "fails",
          "excuse", "proxied"]
# What a request of a route does besides, as another route.
ALSO = {"captures": "inner", "execs": "target", "rewrites": "rewritten", "fails": "excuse"}
UNIT = {"on": 30000, "off": 12000}  # rounds of a loop: some tenths of a millisecond

COMMON = """
cpu_seconds = {}
local function work(n)
	local sum = 0
	for i = 1, n do sum = sum + i %% 7 end
	return sum
end
local function measured(name, units)
	local begin = os.clock()
	work(units * %(unit)d)
	cpu_seconds[name] = cpu_seconds[name] + os.clock() - begin
	-- nginx's clock stands still during a turn; $request_time is as exact as the clock is.
	ngx.update_time()
	return true
end
jit.%(jit)s()
"""
FUNCTION = """
cpu_seconds["%(route)s %(host)s"] = 0
function route_%(route)s_%(host)s(units)
	local done = measured("%(route)s %(host)s", units)
	return done
end
"""
TIMER = """
function timer_%(host)s()
	work(%(unit)d)
	ngx.update_time()
end
"""
WRK = """
local paths, hosts = {%(paths)s}, {%(hosts)s}
local count, threads = 0, 0
function setup(thread)
	thread:set("count", threads * 7)
	threads = threads + 1
end
function request()
	count = count + 1
	local host = hosts[math.floor(count / 5) %% #hosts + 1]
	return wrk.format("GET", paths[count %% #paths + 1], { Host = host .. ".example.com" })
end
"""


def serve(directory, jit, release=None):
    """A server, of a release of Debian if one is given. DIRECTORY exists, and others may read it."""
    directory.mkdir(exist_ok=True)
    known = {"jit": jit, "unit": UNIT[jit]}
    lua = COMMON % known
    lua += "".join(FUNCTION % {"route": route, "host": host} for host in HOSTS for route in ROUTES)
    lua += "".join(TIMER % (known | {"host": host}) for host in HOSTS)
    (directory / "routes.lua").write_text(lua)
    servers = "".join((HERE / "host.conf.in").read_text().replace("@HOST@", host) for host in HOSTS)
    config = (HERE / "http.conf.in").read_text().replace("@SERVERS@", servers)
    server = nginx_server.Nginx(directory, config, limit=600, release=release)
    server.wait_answers("/sums")
    return server


def functions_by_line(server):
    """The route and host that a function is of, or "timer", by its first line in routes.lua."""
    functions = {}
    for number, line in enumerate((server.error_log.parent / "routes.lua").read_text().splitlines(), 1):
        match = re.match(r"function (?:(timer)|route_([a-z]+))_(\w+)\(", line)
        if match:
            functions[number] = match[1] or (match[2], match[3])
    return functions


HEADERS, SETTINGS, END_STREAM, END_HEADERS = 1, 4, 1, 4
STREAMS, KEPT_ALIVE = 4, 48


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def get(stream, path, host):
    """A request of HTTP/2."""
    # GET and http by their numbers; the path and the authority as they are.
    texts = b"".join(bytes([name, len(text)]) + text.encode() for name, text in ((4, path), (1, host)))
    return frame(HEADERS, END_STREAM | END_HEADERS, stream, b"\x82\x86" + texts)


def wait_answers(answers, streams):
    """Read frames until all the streams have ended. They are short: no window fills."""
    while streams:
        head = answers.read(9)
        if len(head) < 9:
            raise ConnectionError(f"without answers: {streams}")
        answers.read(int.from_bytes(head[:3], "big"))
        if head[3] < 2 and head[4] & END_STREAM:
            streams.discard(int.from_bytes(head[5:], "big"))


class Clients:
    """Some keep connections alive, some send streams of HTTP/2, and some give up. A context manager; at its end,
    all requests have ended."""

    def __init__(self, server):
        self.server = server
        self.directory = server.error_log.parent
        self.ends = threading.Event()
        self.threads = [threading.Thread(target=self.multiplex, args=(host,)) for host in HOSTS]
        self.threads.append(threading.Thread(target=self.give_up))

    def multiplex(self, host):
        """HTTP/2: a few streams at a time, on one connection after the other."""
        asked = 0
        while not self.ends.is_set():
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(30)
                connection.connect(str(self.directory / "http2"))
                connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0))
                answers = connection.makefile("rb")
                for first in range(1, 2 * KEPT_ALIVE, 2 * STREAMS):
                    streams = range(first, first + 2 * STREAMS, 2)
                    paths = [f"/{ROUTES[(asked + n) % len(ROUTES)]}/{n}" for n in range(STREAMS)]
                    asked += STREAMS
                    connection.sendall(b"".join(get(stream, path, f"{host}.example.com")
                                                for stream, path in zip(streams, paths)))
                    wait_answers(answers, set(streams))

    def give_up(self):
        """Send requests, and close before the answer or in the middle of what nginx does."""
        dice = random.Random(1)
        while not self.ends.wait(0.005):
            with socket.create_connection(("127.0.0.1", self.server.port)) as connection:
                path, host = dice.choice(["threads", "proxied", "captures", "work"]), dice.choice(HOSTS)
                connection.sendall(f"GET /{path}/7 HTTP/1.1\r\nHost: {host}.example.com\r\n\r\n".encode())
                self.ends.wait(dice.uniform(0, 0.01))

    def __enter__(self):
        script = self.directory / "wrk.lua"
        script.write_text(WRK % {"paths": ", ".join(f'"/{route}/7?secret=1"' for route in ROUTES),
                                 "hosts": ", ".join(f'"{host}"' for host in HOSTS)})  # fmt: skip
        self.wrk = self.server.load("/", 300, 12, ["-s", str(script)])
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        for thread in self.threads:
            thread.join()
        self.wrk.stop()
        wait_quiet(self.server)


def wait_quiet(server):
    """Wait until no request of the log is missing: its length stays."""
    lengths = []

    def stays():
        lengths.append((server.error_log.parent / "access.log").stat().st_size)
        return len(lengths) > 5 and len(set(lengths[-5:])) == 1

    assert ljspy.wait_until(stays, pause=0.1), "requests go on"


class Logged(NamedTuple):
    """A request, as nginx's log has it. Times are in seconds."""

    ended: float
    seconds: float
    host: str
    route: str  # that the client asked for
    status: int


def logged(server):
    """Requests by $connection and $connection_requests."""
    requests = {}
    for line in (server.error_log.parent / "access.log").read_text().splitlines():
        ended, seconds, connection, number, status, host, uri = line.split(" ", 6)
        route = re.match(r"/(\w+)/", uri)
        requests[int(connection), int(number)] = Logged(
            float(ended), float(seconds), host.removesuffix(".example.com"), route[1] if route else "", int(status))
    return requests


def lines_of(server):
    return (server.error_log.parent / "access.log").read_bytes().count(b"\n")


def cpu_sums(server):
    """CPU time in ns that Lua has measured, by route and host."""
    rows = (line.split() for line in server.get("/sums").decode().splitlines())
    return {(route, host): int(ns) for route, host, ns in rows}


def is_traced(pid):
    return "TracerPid:\t0\n" not in pathlib.Path(f"/proc/{pid}/status").read_text()


class Recording:
    """ljspy records the worker; enter when it does, leave when it has written. A context manager."""

    def __init__(self, server, output, rate, options=()):
        argv = [ljspy.LJSPY, "record", "-p", server.worker, "-d", "300s", "-r", rate, "-o", output, *options]
        self.server = server
        self.ljspy = subprocess.Popen([str(a) for a in argv], stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        assert ljspy.wait_until(lambda: is_traced(self.server.worker) or self.ljspy.poll() is not None, pause=0.001)
        time.sleep(0.3)
        return self

    def __exit__(self, *exception):
        self.ljspy.send_signal(signal.SIGINT)
        said = self.ljspy.communicate(timeout=60)[1]
        assert exception[0] or self.ljspy.returncode == ljspy.OK, said
