# SPDX-License-Identifier: MIT
"""The routes that Kong and APISIX have matched, judged by a function that only one route runs."""

import collections
import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import threading

import pytest

import ljspy
import nginx_server

pytestmark = [
    pytest.mark.usefixtures("built"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the master must be root for its worker to be nobody"),
]

TEMPLATE = nginx_server.template("gateways.conf.in")
NAMES = ["first", "second", "third", "fourth"]
ROUTES = {
    "kong": ["route orders v1", r"route users;\x1b[2m", "route 51e77dc2-8f3e-4afa-9d0e-0e3bbbcfd517 of shop",
             "route 51e77dc2-8f3e-4afa-9d0e-0e3bbbcfd518"],
    "apisix": ["route orders v1", "route " + 120 * "n", "route third", "route 4"],
    # No gateway: what such a program keeps in ngx.ctx.route may be a client's.
    "other": [f"/api/{name}/*" for name in NAMES],
}
CPU_NS = 0.6e9  # of the worker, in the recording


@pytest.fixture(params=list(ROUTES))
def server(request, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = {"GATEWAY": request.param, "SILENT": silent.getsockname()[1]}
        with nginx_server.Nginx(tmp_path / "nginx", TEMPLATE, **settings) as nginx:
            nginx.wait_answers("/api/first/1")
            nginx.routes = dict(zip(NAMES, ROUTES[request.param]))
            yield nginx


@contextlib.contextmanager
def clients(server):
    """Ask for all routes and for none, on connections that are kept alive."""
    ends = threading.Event()

    def ask(n):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        while not ends.is_set():
            connection.request("GET", f"/api/{[*NAMES, 'nowhere'][n % 5]}/{n}?secret=word{n}")
            connection.getresponse().read()
            n += 1

    threads = [threading.Thread(target=ask, args=[n]) for n in range(5)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ends.set()
        for thread in threads:
            thread.join()


def record(server, output):
    with clients(server):
        argv = [ljspy.LJSPY, "record", "-p", str(server.worker), "-d", "60s", "-r", "499", "-o", output]
        with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as recording:
            ljspy.wait_traced(server.worker)
            until = ljspy.cpu_ns(server.worker) + CPU_NS
            ljspy.wait_until(lambda: ljspy.cpu_ns(server.worker) >= until, seconds=50, pause=0.05)
            recording.send_signal(signal.SIGINT)
    return json.loads(ljspy.run("report", output, "-f", "json", "-o", "-").stdout)


def routes_of(document):
    """How many samples each function of the configuration has, by route."""
    names = [document["functions"][frame["function"]]["name"] for frame in document["frames"]]
    routes = collections.defaultdict(collections.Counter)
    for sample in document["samples"]:
        for frame in document["stacks"][sample["stack"]]:
            function, _, role = names[frame].partition(" ")[0].partition("_")
            if role in ("plugin", "routing"):
                routes[function][sample["request"]["route"]] += 1
    return routes


def in_flight(server):
    (process,) = json.loads(ljspy.run("requests", "-p", server.worker, "--json").stdout)["processes"]
    return sorted((r["route"], r["phase"] is not None and bool(r["lua"])) for r in process["requests"])


def test_routes_in_one_location_are_told_apart(server, tmp_path):
    document = record(server, tmp_path / "gateway.ljspy")
    routes = routes_of(document)
    for name, route in server.routes.items():
        assert set(routes[name]) == {route} and routes[name][route] >= 3, routes
    assert routes["before"] and set(routes["before"]) <= {f"/api/{name}/*" for name in [*NAMES, "nowhere"]}
    assert "word" not in json.dumps(document)
    shown = ljspy.run("report", tmp_path / "gateway.ljspy", "--by", "route", "-f", "folded", "-o", "-").stdout
    roots = {line.split(";")[0].rsplit(" [")[0] for line in shown.splitlines()}
    assert len([root for root in roots if root.startswith("route")]) == sum(
        route.startswith("route ") for route in server.routes.values()), roots
    assert "\x1b" not in shown
    third = f"^GET 127[.]0[.]0[.]1 ?{server.routes['third'].replace('*', '[*]')}$"
    one = ljspy.run("report", tmp_path / "gateway.ljspy", "--include-request", third, "-f", "folded", "-o", "-").stdout
    assert "third_plugin" in one and "first_plugin" not in one and "fourth_plugin" not in one


def test_requests_in_flight_have_their_route(server):
    with contextlib.ExitStack() as stack:
        expected = []
        for name, route in server.routes.items():
            for place in ("lua", "proxy"):
                connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
                connection.sendall(f"GET /api/{name}/7?hold={place} HTTP/1.1\r\nHost: shop\r\n\r\n".encode())
                expected.append((route, place == "lua"))
        assert ljspy.wait_until(lambda: in_flight(server) == sorted(expected)), (in_flight(server), sorted(expected))
        assert "\x1b" not in ljspy.run("requests", "-p", server.worker).stdout
