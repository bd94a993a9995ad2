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
def nginx(silent):
    settings = {"JIT": "on", "SILENT": silent.getsockname()[1]}
    with nginx_server.directory_for_workers() as directory:  # 1.18 files each body of unknown length
        with nginx_server.Nginx(directory / "nginx", TEMPLATE, **settings) as server:
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


def headers(stream, path, host="shop1.example.com", method=b"\x82", flags=5):
    """Ask for PATH: a GET without a body, if not told otherwise. The path and the host are spelled out."""
    texts = b"".join(bytes([name, len(text)]) + text.encode() for name, text in ((4, path), (1, host)))
    return frame(1, flags, stream, method + b"\x86" + texts)


def ask_streams(server, stack, paths):
    """Send requests on one connection of HTTP/2, which stays open until STACK ends."""
    connection = stack.enter_context(socket.socket(socket.AF_UNIX))
    connection.settimeout(30)
    connection.connect(str(server.error_log.parent / "http2"))
    asked = b"".join(headers(2 * n + 1, path) for n, path in enumerate(paths))
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0) + asked)
    return connection


def wait_end(answers, stream):
    """Read frames until one ends the answer of this stream."""
    while True:
        head = answers.read(9)
        assert len(head) == 9, "the connection has ended"
        answers.read(int.from_bytes(head[:3], "big"))
        if head[3] in (0, 1) and head[4] & 1 and int.from_bytes(head[5:], "big") == stream:
            return


def routes(server):
    return sorted(request["route"] for request in requests_of(server))


def test_the_streams_of_one_http2_connection(nginx):
    paths = [f"/waits/stream{n}x/7" for n in range(40)]
    with contextlib.ExitStack() as stack:
        ask_streams(nginx, stack, paths)
        expected = sorted(path[:-1] + "*" for path in paths)
        assert ljspy.wait_until(lambda: routes(nginx) == expected), requests_of(nginx)
        found = requests_of(nginx)
        assert {r["host"] for r in found} == {"shop1.example.com"} and {len(r["lua"]) for r in found} == {2}
    assert ljspy.wait_until(lambda: requests_of(nginx) == []), "streams of a client that has gone"


def test_a_stream_behind_many_that_have_ended(nginx):
    """nginx keeps the nodes of 32 closed streams, and puts new ones in front."""
    with contextlib.ExitStack() as stack:
        connection = ask_streams(nginx, stack, ["/waits/first/7"])
        answers = stack.enter_context(connection.makefile("rb"))
        for stream in range(3, 3 + 2 * 40, 2):
            connection.sendall(headers(stream, "/inner/7"))
            wait_end(answers, stream)
        assert routes(nginx) == ["/waits/first/*"]


def test_streams_beside_an_upload_that_pauses_within_a_frame(nginx):
    with contextlib.ExitStack() as stack:
        connection = ask_streams(nginx, stack, [f"/waits/stream{n}x/7" for n in range(3)])
        connection.sendall(headers(7, "/hangs/1", method=b"\x83", flags=4))
        connection.sendall(frame(0, 1, 7, 10000 * b"x")[:5000])
        assert ljspy.wait_until(lambda: any(r["received"] > 4900 for r in requests_of(nginx))), requests_of(nginx)
        assert routes(nginx) == ["/hangs/*", *(f"/waits/stream{n}x/*" for n in range(3))]


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
