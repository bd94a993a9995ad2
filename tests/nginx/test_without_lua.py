# SPDX-License-Identifier: MIT
"""Samples of nginx's own code name the request that it works for: compression, files, upstreams, TLS, subrequests."""

import collections
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time

import pytest

import ljspy
import nginx_server

pytestmark = [
    pytest.mark.usefixtures("built"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the master must be root for its worker to be nobody"),
]

TEMPLATE = nginx_server.template("without_lua.conf.in")
ROUTES = ["zipped", "sent", "proxied", "refused", "parts", "lua"]
# What a request of a route does besides, as another route.
ALSO = {"proxied": "backend", "refused": "excuse", "parts": "part"}
WRK = """
local paths, count, threads = {%s}, 0, 0
function setup(thread)
	thread:set("count", threads * 3)
	threads = threads + 1
end
function request()
	count = count + 1
	return wrk.format("GET", paths[count %% #paths + 1], {["Accept-Encoding"] = "gzip"})
end
"""
# What nginx's exported functions on a stack work for: only requests of these routes call them.
ONLY = {"ngx_http_upstream_": {"proxied"}, "ngx_event_pipe": {"proxied"}, "deflate": {"zipped"}}
# These work for a request, whatever it is.
OF_REQUESTS = ("ngx_http_core_run_phases", "ngx_http_core_content_phase", "ngx_http_output_filter",
               "ngx_http_finalize_request", "ngx_http_log_request", "ngx_http_upstream_")
CPU_NS = 2e9


@pytest.fixture
def files():
    """A directory that workers of the user nobody may read."""
    with tempfile.TemporaryDirectory() as name:
        pathlib.Path(name).chmod(0o755)
        yield pathlib.Path(name)


@pytest.fixture
def nginx(tmp_path, files):
    directory = tmp_path / "nginx"
    directory.mkdir()
    text = "".join(f"line {n * 7919 % 10007} of some text\n" for n in range(2000))
    for name in ("zipped/7", "sent/7", "sent/tls", "backend/7", "excuse/1", "part/1", "part/2"):
        (files / name).parent.mkdir(parents=True, exist_ok=True)
        (files / name).write_text(text)
    (files / "parts").mkdir()
    (files / "parts/7").write_text('<!--#include virtual="/part/1" --><!--#include virtual="/part/2" -->')
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=shop",
                    "-keyout", directory / "key.pem", "-out", directory / "certificate.pem"],
                   check=True, stderr=subprocess.DEVNULL)  # fmt: skip
    with nginx_server.Nginx(directory, TEMPLATE, FILES=files) as server:
        server.wait_answers("/sent/7", "/lua/7")
        yield server


class TlsClient(threading.Thread):
    """Asks for files, over connections that are kept alive for a while."""

    def __init__(self, server):
        super().__init__()
        self.path = str(server.error_log.parent / "tls")
        self.ends = threading.Event()

    def run(self):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        ask = "GET /sent/tls HTTP/1.1\r\nHost: shop.example.com\r\n{}\r\n"
        while not self.ends.is_set():
            with socket.socket(socket.AF_UNIX) as plain:
                plain.settimeout(30)
                plain.connect(self.path)
                with context.wrap_socket(plain) as connection:
                    for n in range(20):
                        connection.sendall(ask.format("Connection: close\r\n" if n == 19 else "").encode())
                        left = None
                        while left is None or left > 0:
                            piece = connection.recv(1 << 16)
                            if left is None:
                                head, _, body = piece.partition(b"\r\n\r\n")
                                left = int(re.search(rb"Content-Length: (\d+)", head)[1]) - len(body)
                            else:
                                left -= len(piece)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.join()


def record(server, directory):
    script = directory / "wrk.lua"
    script.write_text(WRK % ", ".join(f'"/{route}/7?secret=1"' for route in ROUTES))
    output = directory / "nginx.ljspy"
    with TlsClient(server), server.load("/", 100, 8, ["-s", str(script)]) as load:
        until = ljspy.cpu_ns(server.worker) + CPU_NS
        argv = [ljspy.LJSPY, "record", "-p", str(server.worker), "-d", "60s", "-r", str(ljspy.HIGH_RATE), "--native", "all",
                "-o", output]
        with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as recording:
            assert ljspy.wait_until(lambda: ljspy.cpu_ns(server.worker) >= until, seconds=50, pause=0.1)
            recording.send_signal(signal.SIGINT)
            recording.communicate(timeout=60)
        load.stop()
    time.sleep(0.5)
    document = json.loads(ljspy.run("report", output, "-f", "json", "-o", "-").stdout)
    names = [document["functions"][frame["function"]]["name"] for frame in document["frames"]]
    begin = document["session"]["start_unix_ns"]
    for sample in document["samples"]:
        sample["functions"] = [names[frame] for frame in document["stacks"][sample["stack"]]]
        sample["unix"] = (begin + sample["time_ns"]) / 1e9
    return document["samples"]


def logged(server):
    """(route, when it ended, seconds), by $connection and $connection_requests."""
    requests = {}
    for line in (server.error_log.parent / "access.log").read_text().splitlines():
        ended, seconds, connection, number, _, _, uri = line.split(" ", 6)
        requests[int(connection), int(number)] = uri.split("/")[1], float(ended), float(seconds)
    return requests


def route_of(request):
    return request["route"].strip("/").split("/")[0]


def fault(sample, log):
    """What is wrong with a sample that names a request; None if nothing is."""
    request, functions = sample["request"], sample["functions"]
    route, known = route_of(request), log.get((request["connection"], request["number"]))
    if not known:
        return "not in the log"
    if route not in (known[0], ALSO.get(known[0])):
        return "not the log's route"
    if not known[1] - known[2] - 1 <= sample["unix"] <= known[1] + 1:
        return "not at that time"
    for function, routes in ONLY.items():
        if route not in routes and any(name.startswith(function) for name in functions):
            return "not the functions' route"
    if request["subrequest"] != (route == "part"):
        return "no subrequest"
    return None


def test_samples_without_lua_name_their_request(nginx, tmp_path):
    samples = record(nginx, tmp_path)
    log = logged(nginx)
    counts, named, faults, nameless = collections.Counter(), collections.Counter(), [], []
    for sample in samples:
        request = sample.get("request")
        if request and request["route"] == "[unknown request]":
            counts["unknown"] += 1
        elif request:
            counts["named"] += 1
            named[route_of(request)] += 1
            what = fault(sample, log)
            faults += [(what, sample)] if what else []
        elif any(name.startswith(OF_REQUESTS) for name in sample["functions"]):
            nameless.append(sample["functions"])
    print(len(samples), counts, len(nameless), named, collections.Counter(what for what, _ in faults))
    assert len(faults) <= 0.001 * counts["named"], faults[:5]
    assert counts["named"] > 0.5 * len(samples)
    assert set(named) == {*ROUTES, *ALSO.values()}
    # These functions end requests, too: then they have none any more.
    assert counts["unknown"] + len(nameless) <= 0.05 * counts["named"], nameless
