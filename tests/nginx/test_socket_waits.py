# SPDX-License-Identifier: MIT
"""What a request waits for at a socket: what for, whose, and as long as its Lua measures."""

import collections
import contextlib
import json
import os
import pathlib
import signal
import socket
import tempfile
import threading

import pytest

import ljspy
import nginx_server

pytestmark = [
    pytest.mark.usefixtures("built"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the master must be root for its worker to be nobody"),
]

SECONDS, RATE, TRIES = 2, 199, 3
RELOADS = 3


def accept_all(listener, accepted):
    with contextlib.suppress(OSError):
        while True:
            accepted.append(listener.accept()[0])


@contextlib.contextmanager
def peers():
    """Peers that keep whoever asks them waiting: their settings for the configuration."""
    with contextlib.ExitStack() as stack:
        # Not pytest's: other runs of it close that to the worker.
        directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        directory.chmod(0o755)
        with open(directory / "large", "wb") as large:
            large.truncate(1 << 26)
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        # The place for one connection that nobody accepts is taken.
        for _ in range(3):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(full.getsockname())
        names = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        names.bind(("127.0.0.1", 0))
        silent = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        unix = stack.enter_context(socket.socket(socket.AF_UNIX))
        unix.bind(str(directory / "silent"))
        os.chmod(directory / "silent", 0o777)
        unix.listen()
        accepted, threads = [], []
        for listener in (silent, unix):
            threads.append(threading.Thread(target=accept_all, args=(listener, accepted), daemon=True))
            threads[-1].start()
        yield {"FULL": full.getsockname()[1], "NAMES": names.getsockname()[1], "SILENT": silent.getsockname()[1],
               "OPEN": directory, "CONNECTIONS": 64, "MORE": ""}
        for listener in (silent, unix):
            listener.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(timeout=5)
        for connection in accepted:
            connection.close()


@pytest.fixture(scope="module", name="server")
def fixture_server(tmp_path_factory):
    path = tmp_path_factory.mktemp("sockets") / "nginx"
    with peers() as settings, nginx_server.Nginx(path, nginx_server.template("sockets.conf.in"), **settings) as nginx:
        nginx.settings = settings
        nginx.wait_answers("/answers")
        yield nginx


def measured(server):
    return {kind: float(seconds) for kind, seconds in (line.split() for line in server.get("/measured").decode().splitlines())}


def document_of(recording):
    return json.loads(ljspy.run("report", recording, "-f", "json", "-o", "-").stdout)


def waits_of(recording):
    """The time of each wait, in ns: (route, wait)."""
    document = document_of(recording)
    sums = collections.Counter()
    for sample in document["samples"]:
        leaf = document["frames"][document["stacks"][sample["stack"]][-1]]
        name = document["functions"][leaf["function"]]["name"].removesuffix(" [nginx]")
        sums[sample["request"]["route"], name] += sample["wall_ns"]
    return sums


def record_often(server, output):
    """Record until ljspy gets a CPU when a look is due. Returns what Lua measured meanwhile, in seconds of each kind."""
    for _ in range(TRIES):
        before = measured(server)
        done = ljspy.run("record", "--requests", "--detail", "-p", server.worker, "-d", f"{SECONDS}s", "-r", RATE, "-o", output)
        after = measured(server)
        assert done.returncode == ljspy.OK, done.stderr
        reached = len({sample["time_ns"] for sample in document_of(output)["samples"]}) / SECONDS
        if reached > 0.7 * RATE:
            return {kind: seconds - before[kind] for kind, seconds in after.items()}
    pytest.skip(f"the machine is too busy: {reached:.0f} looks a second of {RATE} took place")


def test_sockets_of_lua_wait_as_long_as_it_measures(server, tmp_path):
    recording = tmp_path / "waits.ljspy"
    with server.load("/waits", 30, 3) as load:
        assert ljspy.wait_until(lambda: "pool" in measured(server))
        of_lua = record_often(server, recording)
        load.stop()
    sums = collections.Counter()
    for (route, wait), ns in waits_of(recording).items():
        if route == "/waits":
            sums[wait] += ns
    peer = f"127.0.0.1:{server.settings['SILENT']}"
    kinds = {
        f"socket connect: 127.0.0.1:{server.settings['FULL']}": ["connect"],
        "socket DNS: slow.example.test:80": ["DNS"],
        f"socket receive: {peer}": ["receive", "receiveuntil"],
        f"socket send: unix:{server.settings['OPEN']}/silent": ["send"],
        "socket pool: 127.0.0.1": ["pool"],
    }
    total = sum(sums[wait] for wait in kinds)
    assert total > 0.8 * sum(sums.values()), sums
    # The recording is of a part of the time that Lua has measured: shares are the same in both.
    found = {wait: sums[wait] / total for wait in kinds}
    expected = {wait: sum(of_lua[kind] for kind in kinds[wait]) / sum(of_lua.values()) for wait in kinds}
    assert found == pytest.approx(expected, abs=0.04)
    assert not any("secret" in wait for wait in sums)
    # By peer, whatever it is waited for.
    shown = ljspy.run("report", recording, "--by", "upstream").stdout
    assert f"  {peer}\n" in shown and "  slow.example.test:80\n" in shown


def waits_now(server, tmp_path):
    done = ljspy.run("record", "--requests", "-p", server.worker, "-d", "300ms", "-r", RATE, "-o", tmp_path / "now.ljspy")
    assert done.returncode == ljspy.OK, done.stderr
    return set(waits_of(tmp_path / "now.ljspy"))


def test_clients_that_do_not_send_or_take(server, tmp_path):
    expected = {("/upload", "client read"), ("/asks", "client read"), ("/download", "client write"),
                ("/limited", "delay"), ("/paced", "limit_rate")}
    with contextlib.ExitStack() as stack:
        for path in ("/upload", "/asks", "/download", "/limited", "/limited", "/limited", "/paced"):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            body = "Content-Length: 100\r\n" if path in ("/upload", "/asks") else ""
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: h\r\n{body}\r\n".encode())
        seen = set()

        def look():
            seen.update(waits_now(server, tmp_path))
            return expected <= seen

        assert ljspy.wait_until(look), seen
    # The first of those that are limited is answered at once. A look may find one of them at work.
    kinds = {wait for _, wait in expected}
    assert {pair for pair in seen if pair[1] in kinds} - expected <= {("/limited", "client write")}, seen


def reload(server):
    """Until the master has other workers only."""
    old = set(server.workers)
    server.master.process.send_signal(signal.SIGHUP)
    assert ljspy.wait_until(lambda: server.workers and not old & set(server.workers)), server.error_log.read_text()
    server.wait_answers("/answers")


def test_clients_that_do_not_take_after_reloads(server, tmp_path):
    """Then malloc() gives a worker memory in which the configurations before have been."""
    lines = "".join(f"/page{n} title_of_page_{n};" for n in range(3000))
    settings = server.settings | {"CONNECTIONS": 512, "MORE": f"map_hash_max_size 8192; map $uri $title {{ {lines} }}"}
    with nginx_server.Nginx(tmp_path / "nginx", nginx_server.template("sockets.conf.in"), **settings) as nginx:
        nginx.wait_answers("/answers")
        for _ in range(RELOADS):
            reload(nginx)
        with contextlib.ExitStack() as stack:
            client = stack.enter_context(socket.create_connection(("127.0.0.1", nginx.port)))
            client.sendall(b"GET /download HTTP/1.1\r\nHost: h\r\n\r\n")
            seen = set()

            def look():
                seen.update(waits_now(nginx, tmp_path))
                return ("/download", "client write") in seen

            assert ljspy.wait_until(look), seen


def ask(server, stack, path, body="", length=0):
    """Send a request, of whose body something may be missing, and read nothing. Ends with STACK."""
    client = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
    method = "POST" if length else "GET"
    client.sendall(f"{method} {path} HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{body}".encode())


def wait_until_exactly(server, tmp_path, expected):
    """Until these are the waits of their routes."""
    routes = {route for route, _ in expected}
    found = set()

    def look():
        found.clear()
        found.update(pair for pair in waits_now(server, tmp_path) if pair[0] in routes)
        return found == expected

    assert ljspy.wait_until(look), found


def test_an_upstream_is_not_blamed_for_the_client_or_lua(server, tmp_path):
    expected = {("/unbuffered", "client write"), ("/unspooled", "client write"), ("/trickles", "limit_rate"),
                ("/streamed", "client read"), ("/unresolved", "sleep"), ("/resolves", "upstream DNS: -"),
                ("/exits", f"upstream first byte: 127.0.0.1:{server.settings['SILENT']}")}
    with contextlib.ExitStack() as stack:
        for route, _ in expected - {("/streamed", "client read")}:
            ask(server, stack, route)
        ask(server, stack, "/streamed", "some of it", 100)
        wait_until_exactly(server, tmp_path, expected)
        (process,) = json.loads(ljspy.run("requests", "-p", server.worker, "--json").stdout)["processes"]
        shown = ljspy.run("requests", "-p", server.worker).stdout
    upstreams = {request["route"]: request["upstream"] for request in process["requests"]}
    assert upstreams["/unresolved"] is None and upstreams["/resolves"]["state"] == "resolving", upstreams
    assert upstreams["/exits"]["state"] == "waiting" and shown.count("is being resolved by DNS") == 1, shown


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def test_a_stream_in_which_both_sides_may_be_next_to_speak(server, tmp_path):
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(socket.socket(socket.AF_UNIX))
        client.connect(str(server.error_log.parent / "http2"))
        # POST, http; the path and the authority as they are. The stream goes on.
        texts = b"".join(bytes([name, len(text)]) + text for name, text in ((4, b"/streamed"), (1, b"h")))
        client.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0) + frame(1, 4, 1, b"\x83\x86" + texts)
                       + frame(0, 0, 1, b"some of it"))  # fmt: skip
        wait_until_exactly(server, tmp_path, {("/streamed", "client read"),
                                              ("/streamed", f"upstream first byte: 127.0.0.1:{server.port}")})  # fmt: skip


def test_lua_that_waits_for_a_body_or_a_subrequest(server, tmp_path):
    expected = {("/reads", "client body"), ("/captures_many", "subrequest"), ("/captures_one", "subrequest")}
    with contextlib.ExitStack() as stack:
        for route, _ in expected:
            ask(server, stack, route, "some of it", 100 if route == "/reads" else 10)
        wait_until_exactly(server, tmp_path, expected)


def test_lua_that_waits_in_a_library_written_in_lua(server, tmp_path):
    with contextlib.ExitStack() as stack:
        ask(server, stack, "/awaits_signal")
        wait_until_exactly(server, tmp_path, {("/awaits_signal", "semaphore")})


def test_requests_say_which_socket_and_what_for(server):
    seen = set()

    def look():
        (process,) = json.loads(ljspy.run("requests", "-p", server.worker, "--json").stdout)["processes"]
        seen.update(lua["wait"] for request in process["requests"] for lua in request["lua"])
        return f"socket receive: 127.0.0.1:{server.settings['SILENT']}" in seen

    with server.load("/waits", 30, 3):
        assert ljspy.wait_until(look), seen
        assert ljspy.wait_until(lambda: "suspended (socket " in ljspy.run("requests", "-p", server.worker).stdout)
