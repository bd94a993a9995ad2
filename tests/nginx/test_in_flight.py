# SPDX-License-Identifier: MIT
"""`ljspy requests` shows the requests that nginx works on: all of them, no others, and where they wait."""

import contextlib
import json
import os
import socket
import time

import pytest

import ljspy
import nginx_server

pytestmark = [
    pytest.mark.usefixtures("built"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the master must be root for its worker to be nobody"),
]

TEMPLATE = nginx_server.template("routes.conf.in")


@pytest.fixture
def silent():
    """A listener that accepts connections, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


@pytest.fixture
def nginx(tmp_path, silent):
    settings = {"JIT": "on", "SILENT": silent.getsockname()[1]}
    with nginx_server.Nginx(tmp_path / "nginx", TEMPLATE, **settings) as server:
        server.wait_answers("/work/a/1")
        yield server


def ask(server, stack, path, host="shop1.example.com", method="GET"):
    """Send a request. The connection stays open until STACK ends."""
    connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
    connection.sendall(f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    return connection


def requests_of(server, *options):
    (process,) = json.loads(ljspy.run("requests", "-p", server.worker, "--json", *options).stdout)["processes"]
    return process["requests"]


def seen(server):
    return sorted((r["method"], r["host"], r["route"], r["phase"]) for r in requests_of(server))


def line_of(mark):
    """The line with this mark, counted from the start of its Lua block."""
    lines = TEMPLATE.splitlines()
    (line,) = [n for n, text in enumerate(lines) if f"-- @{mark}" in text]
    block = max(n for n in range(line) if "_by_lua_block" in lines[n])
    return line - block + 1


def test_all_requests_in_flight_are_shown_and_no_others(nginx):
    expected = [("GET", "shop1.example.com", "/waits/*/orders/*", "content"),
                ("POST", "shop2.example.com", "/waits/*", "content"),
                ("GET", "shop1.example.com", "/hangs/item-*", None)]
    with contextlib.ExitStack() as stack:
        idle = ask(nginx, stack, "/work/a/1")  # answered; its connection is kept alive
        idle.recv(4096)
        stack.enter_context(socket.create_connection(("127.0.0.1", nginx.port)))  # says nothing
        ask(nginx, stack, "/waits/42/orders/7f3a90bc?card=4711")
        ask(nginx, stack, "/waits/43", "shop2.example.com", "POST")
        ask(nginx, stack, "/hangs/item-12345")
        assert ljspy.wait_until(lambda: seen(nginx) == sorted(expected, key=lambda r: (r[0], r[1], r[2]))), seen(nginx)
        shown = ljspy.run("requests", "-p", nginx.worker).stdout
        assert "4711" not in shown and "/waits/*/orders/*" in shown
        assert "?card=4711" in ljspy.run("requests", "-p", nginx.worker, "--exact-paths").stdout
    assert ljspy.wait_until(lambda: seen(nginx) == []), "requests of clients that have gone"


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def ask_streams(server, stack, paths, host="shop1.example.com"):
    """Send requests on one connection of HTTP/2, which stays open until STACK ends."""
    connection = stack.enter_context(socket.socket(socket.AF_UNIX))
    connection.connect(str(server.error_log.parent / "http2"))
    sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0)
    for n, path in enumerate(paths):
        # GET, http; the path and the authority as they are
        texts = b"".join(bytes([name, len(text)]) + text.encode() for name, text in ((4, path), (1, host)))
        sent += frame(1, 5, 2 * n + 1, b"\x82\x86" + texts)
    connection.sendall(sent)


def test_the_streams_of_one_http2_connection(nginx):
    paths = [f"/waits/stream{n}x/7" for n in range(40)]
    with contextlib.ExitStack() as stack:
        ask_streams(nginx, stack, paths)
        expected = sorted(path[:-1] + "*" for path in paths)
        assert ljspy.wait_until(lambda: sorted(r["route"] for r in requests_of(nginx)) == expected), requests_of(nginx)
        found = requests_of(nginx)
        assert {r["host"] for r in found} == {"shop1.example.com"} and {len(r["lua"]) for r in found} == {2}
    assert ljspy.wait_until(lambda: requests_of(nginx) == []), "streams of a client that has gone"


def test_the_age_and_the_order(nginx):
    with contextlib.ExitStack() as stack:
        begun = {}
        for name in ("first", "second", "third"):
            before = time.time()
            ask(nginx, stack, f"/waits/{name}")
            assert ljspy.wait_until(lambda: any(r["route"] == f"/waits/{name}" for r in requests_of(nginx)))
            begun[f"/waits/{name}"] = (before, time.time())
            time.sleep(0.3)
        before = time.time()
        found = requests_of(nginx)
        after = time.time()
    assert [r["route"] for r in found] == list(begun)
    for request in found:
        earliest, latest = begun[request["route"]]
        # nginx's clock stands still during a turn.
        assert (before - latest) * 1000 - 50 <= request["age_ms"] <= (after - earliest) * 1000 + 50


def test_where_the_lua_of_all_light_threads_waits(nginx):
    with contextlib.ExitStack() as stack:
        ask(nginx, stack, "/waits/42")
        assert ljspy.wait_until(lambda: [len(r["lua"]) for r in requests_of(nginx)] == [2])
        (request,) = requests_of(nginx)
    lines = sorted(int(coroutine["frames"][1].rsplit(":", 1)[1]) for coroutine in request["lua"])
    assert lines == sorted((line_of("in_thread"), line_of("waits")))
    assert {coroutine["frames"][0].split()[0] for coroutine in request["lua"]} == {"ngx.sleep"}


def test_the_upstream_and_its_state(nginx, silent):
    with contextlib.ExitStack() as stack:
        ask(nginx, stack, "/hangs/1")
        ask(nginx, stack, "/slow/1")
        assert ljspy.wait_until(lambda: sum(r["upstream"] is not None for r in requests_of(nginx)) == 2)
        upstreams = {r["route"]: r["upstream"] for r in requests_of(nginx) if r["upstream"]}
    assert upstreams["/hangs/*"]["peer"] == f"127.0.0.1:{silent.getsockname()[1]}"
    assert upstreams["/slow/*"]["peer"] == f"127.0.0.1:{nginx.port}"
    assert {u["state"] for u in upstreams.values()} == {"waiting"}


def test_an_upstream_whose_name_is_being_resolved(nginx, silent, tmp_path):
    with contextlib.ExitStack() as stack:
        names = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        names.bind(silent.getsockname())
        ask(nginx, stack, "/resolves/1")
        ask(nginx, stack, "/fallback/1")
        resolving = {"state": "resolving", "peer": None}
        assert ljspy.wait_until(lambda: len(requests_of(nginx)) == 2)
        assert ljspy.wait_until(lambda: all((r["upstream"] or {}) | resolving == r["upstream"] for r in requests_of(nginx)))
        recording = tmp_path / "names.ljspy"
        ljspy.run("record", "--requests", "-p", nginx.worker, "-d", "1s", "-o", recording)
    shown = ljspy.run("report", recording).stdout
    waits = [line.split("  ")[-1] for line in shown.splitlines() if "    upstream " in line]
    assert waits and set(waits) == {"upstream DNS"}, shown


def test_a_worker_that_never_sleeps_is_read_all_the_same(nginx):
    with contextlib.ExitStack() as stack:
        ask(nginx, stack, "/waits/42")
        assert ljspy.wait_until(lambda: len(requests_of(nginx)) == 1)
        before_ns = ljspy.cpu_ns(nginx.worker)
        ask(nginx, stack, "/spins")
        assert ljspy.wait_until(lambda: ljspy.cpu_ns(nginx.worker) > before_ns + 5e8)
        shown = ljspy.run("requests", "-p", nginx.worker).stdout
    assert "it ran while it was read" in shown
    assert "/waits/*" in shown and "/spins" in shown


def test_the_tree_of_a_master(nginx):
    with contextlib.ExitStack() as stack:
        ask(nginx, stack, "/waits/42")
        assert ljspy.wait_until(lambda: len(requests_of(nginx)) == 1)
        tree = json.loads(ljspy.run("requests", "--tree", nginx.master.pid, "--json").stdout)
        assert [(p["pid"], len(p["requests"])) for p in tree["processes"]] == [(nginx.worker, 1)]


def test_a_program_that_is_no_nginx():
    with ljspy.Target(["sleep", "30"], limit=30) as target:
        done = ljspy.run("requests", "-p", target.pid)
    assert done.returncode == 2 and "no connections of nginx" in done.stderr
