# SPDX-License-Identifier: MIT
"""`ljspy requests --tree` shows how the work is spread over nginx's workers, and what waits for them."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import tempfile

import pytest

import ljspy
import nginx_server

pytestmark = [
    pytest.mark.usefixtures("built"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the master must be root for its workers to be nobody"),
]

WORKERS = 4
TCP_LIMIT, UNIX_LIMIT = 40, 7  # as in spread.conf.in


@pytest.fixture
def nginx():
    """A server in a directory that every user can access. Its workers stop to work and to block when it ends."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="ljspy-nginx-"))
    path.chmod(0o777)
    with nginx_server.Nginx(path / "nginx", nginx_server.template("spread.conf.in"), WORKERS=WORKERS) as server:
        server.wait_answers("/who")
        assert ljspy.wait_until(lambda: len(server.workers) == WORKERS)
        try:
            yield server
        finally:
            directory_of(server).joinpath("go").touch()
    shutil.rmtree(path)


def directory_of(server):
    return server.error_log.parent


def connect(server, stack, family=socket.AF_INET):
    connection = stack.enter_context(socket.socket(family))
    connection.settimeout(10)
    unix = family == socket.AF_UNIX
    connection.connect(str(directory_of(server) / "socket") if unix else ("127.0.0.1", server.port))
    return connection


def ask(connection, path):
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: spread\r\n\r\n".encode())


def who_serves(connection):
    """The worker that has accepted the connection, which stays open."""
    ask(connection, "/who")
    answer = b""
    while not answer.endswith(b"0\r\n\r\n"):
        answer += connection.recv(4096)
    return int(answer.split(b"\r\n\r\n")[1].split()[1])


def sockets_of(pid):
    links = []
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            links.append(os.readlink(fd))
    return {link for link in links if link.startswith("socket:")}


def accepted(server):
    """How many connections of clients each worker has, by the kernel."""
    rows = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
    mine = {f"socket:[{row[9]}]" for row in rows if row[1].endswith(f":{server.port:04X}") and row[3] == "01"}
    return {pid: len(mine & sockets_of(pid)) for pid in server.workers}


def look(server, **options):
    return json.loads(ljspy.run("requests", "--tree", server.master.pid, "--json", **options).stdout)


def queues(document):
    return {q["address"]: q for q in document["accept_queues"]}


def block_all(server, stack):
    """Have each worker wait for a child of its own."""
    def blocked():
        return sum(bool(nginx_server.children(pid)) for pid in server.workers)

    for n in range(WORKERS):
        ask(connect(server, stack), "/blocks")
        assert ljspy.wait_until(lambda: blocked() > n)


def test_uneven_connections_and_cpu(nginx):
    with contextlib.ExitStack() as stack:
        by_worker = {pid: [] for pid in nginx.workers}
        for _ in range(40):
            connection = connect(nginx, stack)
            by_worker[who_serves(connection)].append(connection)
        crowded = max(by_worker, key=lambda pid: len(by_worker[pid]))
        for pid, connections in by_worker.items():
            for connection in connections[1:] if pid != crowded else []:
                connection.close()
        waiting = by_worker[crowded][1:4]
        for connection in waiting:
            ask(connection, "/waits")
        ask(by_worker[crowded][0], "/works")
        left = {pid: len(c) if pid == crowded else min(len(c), 1) for pid, c in by_worker.items()}
        assert ljspy.wait_until(lambda: accepted(nginx) == left), (accepted(nginx), left)
        start = ljspy.cpu_ns(crowded)
        assert ljspy.wait_until(lambda: ljspy.cpu_ns(crowded) > start + 5e7)
        before = {pid: ljspy.cpu_ns(pid) for pid in nginx.workers}
        document = look(nginx)
        after = {pid: ljspy.cpu_ns(pid) for pid in nginx.workers}
        text = ljspy.run("requests", "--tree", nginx.master.pid).stdout
    workers = {w["pid"]: w for w in document["workers"]}
    assert {pid: w["connections"] for pid, w in workers.items()} == left
    assert {pid: w["requests"] for pid, w in workers.items()} == {pid: 4 * (pid == crowded) for pid in left}
    assert {(w["connections_limit"], w["accepts"]) for w in workers.values()} == {(128, True)}
    assert all(before[pid] // 10**6 <= w["cpu_ms"] <= after[pid] // 10**6 for pid, w in workers.items())
    cpu, connections = document["imbalance"]["cpu"], document["imbalance"]["connections"]
    assert cpu["pid"] == crowded and cpu["times_the_mean"] > WORKERS / 2
    times = WORKERS * left[crowded] / sum(left.values())
    assert connections == {"pid": crowded, "amount": left[crowded], "total": sum(left.values()),
                           "times_the_mean": pytest.approx(times, abs=0.06)}
    assert f"Worker {crowded} has {left[crowded]} of {sum(left.values())} connections of clients, {times:.1f} times" in text
    assert f"Worker {crowded} uses " in text


def test_the_accept_queue_of_workers_that_block(nginx):
    tcp, unix = f"127.0.0.1:{nginx.port}", f"unix:{directory_of(nginx)}/socket"
    assert {a: (q["waiting"], q["limit"]) for a, q in queues(look(nginx)).items()} == {
        tcp: (0, TCP_LIMIT), unix: (0, UNIX_LIMIT)}
    with contextlib.ExitStack() as stack:
        block_all(nginx, stack)
        for _ in range(9):
            connect(nginx, stack)
        for _ in range(5):
            connect(nginx, stack, socket.AF_UNIX)
        found = look(nginx)
        assert found["accept_queues_complete"]
        assert {a: (q["waiting"], q["limit"], sorted(q["pids"])) for a, q in queues(found).items()} == {
            tcp: (9, TCP_LIMIT, sorted(nginx.workers)), unix: (5, UNIX_LIMIT, sorted(nginx.workers))}
        # The kernel tells limits only of ljspy's own network.
        elsewhere = look(nginx, through=["unshare", "-n"])
        assert not elsewhere["accept_queues_complete"]
        assert {a: (q["waiting"], q["limit"]) for a, q in queues(elsewhere).items()} == {tcp: (9, None)}
        for _ in range(TCP_LIMIT + 1 - 9):
            connect(nginx, stack)
        (row,) = [r for r in ljspy.run("requests", "-p", nginx.workers[0]).stdout.splitlines() if tcp in r]
        assert row.split()[:2] == [str(TCP_LIMIT + 1), str(TCP_LIMIT)] and "full" in row


def test_a_worker_that_shuts_down_is_no_part_of_the_balance(nginx):
    with contextlib.ExitStack() as stack:
        connection = connect(nginx, stack)
        old = who_serves(connection)
        ask(connection, "/waits")
        others = set(nginx.workers) - {old}
        assert ljspy.wait_until(lambda: any(w["requests"] for w in look(nginx)["workers"]))
        nginx.master.process.send_signal(signal.SIGHUP)
        assert ljspy.wait_until(lambda: len(nginx.workers) == WORKERS + 1 and not others & set(nginx.workers))
        who_serves(connect(nginx, stack))
        document = look(nginx)
        expected = {pid: pid != old for pid in nginx.workers}
    assert {w["pid"]: w["accepts"] for w in document["workers"]} == expected
    assert document["imbalance"]["connections"]["total"] == 1
