# SPDX-License-Identifier: MIT
"""Samples have the phase of the request that a worker's Lua works for."""

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

import pytest

import ljspy
import nginx_server
import stacks

pytestmark = [
    pytest.mark.usefixtures("built"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the master must be root for its worker to be nobody"),
]

TEMPLATE = nginx_server.template("phases.conf.in")

# Units of work in each phase, by location.
WORK = {
    "/phases": {
        "rewrite": 1,
        "access": 2,
        "content": 3,
        "header_filter": 4,
        "body_filter": 5,
        "log": 6,
        "timer": 7,
    },
    "/files": {"rewrite": 1, "content": 2, "log": 3},
}
if not nginx_server.IS_OLD:
    WORK["/balanced"] = {"balancer": 2, "content": 1}

FILES = {"rewrite.lua": "work(1)", "content.lua": "ngx.sleep(0.001) work(2) ngx.print('done')", "log.lua": "work(3)"}


@pytest.fixture
def files():
    """A directory of Lua files that workers of the user nobody may read."""
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        directory.chmod(0o755)
        for file, source in FILES.items():
            (directory / file).write_text(source)
        yield directory


@pytest.fixture
def nginx(tmp_path, files, jit):
    with nginx_server.Nginx(tmp_path / "nginx", TEMPLATE, JIT=jit, FILES=files) as server:
        server.wait_answers(*WORK)
        yield server


@pytest.fixture
def report():
    """Returns a function: folded stacks of a recording, by phase."""
    if "report" not in ljspy.run("--help").stdout:
        pytest.skip("this ljspy has no report")

    def run(recording):
        result = ljspy.run("report", recording, "--by", "phase", "-f", "folded", "-o", "-")
        assert result.returncode == ljspy.OK, result.stderr
        return result.stdout

    return run


def record_under_load(nginx, path, recording, seconds, options=()):
    with nginx.load(path, seconds + 60) as load:
        busy = ljspy.cpu_ns(nginx.worker)
        assert ljspy.wait_until(lambda: ljspy.cpu_ns(nginx.worker) > busy + 1e8)
        result = ljspy.run("record", "-p", nginx.worker, "-d", f"{seconds}s", "-r", ljspy.HIGH_RATE, "-o", recording, *options)
        assert result.returncode == ljspy.OK, result.stderr
        output = load.stop()
    assert "Non-2xx" not in output and "Socket errors" not in output, output
    return recording


# As many samples of equal weight tell a share to some 0.015.
ENOUGH = 1000
RECORDINGS_MAX = 10


def enough_by_phase(record, report, function="work"):
    """
    Weights by phase of as many recordings as it takes: on a busy machine there are few samples in one, and some stand
    for much time.
    """
    weights, spans = collections.Counter(), []
    for _ in range(RECORDINGS_MAX):
        recording = record()
        weights += by_phase(report(recording), function)
        document = json.loads(ljspy.run("report", recording, "-f", "json", "-o", "-").stdout)
        spans += [sample["cpu_ns"] for sample in document["samples"]]
        if sum(spans) ** 2 > ENOUGH * sum(span**2 for span in spans):
            break
    return weights


@pytest.mark.slow
@pytest.mark.parametrize("path", WORK)
def test_each_phase_has_its_share(nginx, report, path, tmp_path):
    weights = enough_by_phase(lambda: record_under_load(nginx, path, tmp_path / "phases.ljspy", seconds=4), report)
    units = sum(WORK[path].values())
    shares = {phase: weight / sum(weights.values()) for phase, weight in weights.items()}
    for phase, work in WORK[path].items():
        assert shares.pop(phase, 0) == pytest.approx(work / units, abs=0.06, rel=0.2), (phase, weights)
    assert sum(shares.values()) < 0.01, shares


def times(nginx):
    return {phase: float(ns) for phase, ns in (line.split() for line in nginx.get("/times").decode().splitlines())}


@pytest.mark.slow
def test_shares_are_those_of_the_cpu_clock(nginx, report, tmp_path):
    """Phases run in the coroutine of the request, and in the main thread."""
    nginx.wait_answers("/timed")
    before = times(nginx)
    seen = enough_by_phase(lambda: record_under_load(nginx, "/timed", tmp_path / "timed.ljspy", seconds=4), report, "timed")
    spent = {phase: ns - before[phase] for phase, ns in times(nginx).items()}
    for phase, ns in spent.items():
        truth, share = ns / sum(spent.values()), seen[phase] / sum(seen.values())
        print(f"{phase}: truth {truth:.4f}, seen {share:.4f}")
        assert share == pytest.approx(truth, abs=0.02 + truth / 3)


# -- Handshakes, and a worker's life --

HANDSHAKE = {
    "ssl_client_hello": 1,
    "ssl_session_fetch": 2,
    "ssl_cert": 3,
    "ssl_session_store": 4,
    "server_rewrite": 5,
    "set": 6,
}


@pytest.fixture
def tls_nginx(tmp_path):
    if nginx_server.IS_OLD:
        pytest.skip("lua-nginx-module 0.10.13 has no ssl_client_hello, server_rewrite and exit_worker")
    directory = tmp_path / "nginx"
    directory.mkdir()
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
        + ["-keyout", directory / "key.pem", "-out", directory / "certificate.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    with nginx_server.Nginx(directory, nginx_server.template("handshakes.conf.in")) as server:
        assert ljspy.wait_until(lambda: server.workers, seconds=30)
        yield server


class Client(threading.Thread):
    """Makes TLS requests until it is stopped, each in a new connection that resumes the
    last session."""

    def __init__(self, port):
        super().__init__()
        self.port, self.stopped, self.session = port, threading.Event(), None
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.check_hostname, self.context.verify_mode = False, ssl.CERT_NONE
        self.context.maximum_version = ssl.TLSVersion.TLSv1_2

    def request(self):
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as plain:
            with self.context.wrap_socket(plain, session=self.session) as connection:
                connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
                answer = b"".join(iter(lambda: connection.recv(4096), b""))
                self.session = connection.session
        assert answer.endswith(b"done"), answer

    def run(self):
        while not self.stopped.is_set():
            self.request()

    def __enter__(self):
        self.request()  # wait for nginx, and get the first session
        self.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.join()


def by_phase(text, function="work"):
    """Weights of stacks that contain the function, by phase."""
    weights = collections.Counter()
    for line in text.splitlines():
        stack, _, weight = line.rpartition(" ")
        if f";{function} " in stack:
            weights[stack.split(";")[0]] += int(weight)
    return weights


@pytest.mark.slow
def test_each_phase_of_a_handshake_has_its_share(tls_nginx, report, tmp_path):
    def record():
        recording = tmp_path / "handshakes.ljspy"
        result = ljspy.run("record", "-p", tls_nginx.worker, "-d", "4s", "-r", ljspy.HIGH_RATE, "-o", recording)
        assert result.returncode == ljspy.OK, result.stderr
        return recording

    with Client(tls_nginx.port):
        weights = enough_by_phase(record, report)
    assert set(weights) == set(HANDSHAKE), weights
    for phase, work in HANDSHAKE.items():
        share = weights[phase] / sum(weights.values())
        assert share == pytest.approx(work / sum(HANDSHAKE.values()), abs=0.06, rel=0.2), weights


def test_a_worker_begins_and_ends_in_phases_of_their_own(tls_nginx, report, tmp_path):
    old = tls_nginx.worker
    with Client(tls_nginx.port):  # the worker runs once a request succeeds
        pass
    recording = tmp_path / "life.ljspy"
    argv = [ljspy.LJSPY, "record", "--tree", tls_nginx.master.pid, "-r", ljspy.HIGH_RATE, "-o", recording]
    with ljspy.Target(argv) as recorder:
        assert ljspy.wait_until(lambda: ljspy.status_field(old, "TracerPid") != "0", seconds=30)
        tls_nginx.master.process.send_signal(signal.SIGHUP)
        assert ljspy.wait_until(lambda: old not in tls_nginx.workers, seconds=30)
        with Client(tls_nginx.port):
            pass
        recorder.process.send_signal(signal.SIGINT)
        assert recorder.process.wait(30) == ljspy.OK
    weights = by_phase(report(recording))
    assert weights["init_worker"] > 0 and weights["exit_worker"] > 0, weights


def line_of(tag):
    """A line of the block of /threads, counted from the block's beginning."""
    first = next(n for n, line in enumerate(TEMPLATE.splitlines()) if line.endswith("-- @threads"))
    return next(n for n, line in enumerate(TEMPLATE.splitlines()[first:], 1) if line.endswith(f"-- @{tag}"))


def block_lines(sample):
    """The lines of a stack's frames in the block of /threads, root first."""
    found = (re.fullmatch(r".*content_by_lua\(nginx.conf:\d+\):(\d+)", frame) for frame in sample.frames)
    return [int(match[1]) for match in found if match]


def test_threads_of_a_request_are_above_what_they_run_for(nginx, tmp_path):
    """The creator of a light thread or coroutine is not on the C stack: it has yielded
    to nginx. ljspy shows the line it waits on below."""
    folded = record_under_load(nginx, "/threads", tmp_path / "threads.folded", seconds=3, options=["--lines"])
    samples = stacks.parse_folded(folded.read_text())
    expected = {
        line_of("in_thread"): [line_of("waits"), line_of("in_thread")],
        line_of("in_coroutine"): [line_of("wrapped"), line_of("in_coroutine")],
    }
    for own, lines in expected.items():
        inside = [sample for sample in samples if own in block_lines(sample)]
        total = ljspy.weight_of(inside)
        assert total > 0.05 * ljspy.weight_of(samples)
        right = ljspy.weight_of(inside, lambda sample, lines=lines: block_lines(sample) == lines)
        assert right > 0.98 * total, [sample.frames for sample in inside if block_lines(sample) != lines]
    # A mark says that the frame below is not the caller.
    for line in folded.read_text().splitlines():
        if ";work init_by_lua(" in line:
            assert ";child coroutine [lua-nginx-module];" in line


def entry(phase):
    return f"function <{phase}_by_lua" if nginx_server.IS_OLD else f"main chunk {phase}_by_lua("


def test_filters_are_above_what_prints(nginx, tmp_path):
    """Filters run in the main thread, called by C code in the coroutine of the request."""
    folded = record_under_load(nginx, "/phases", tmp_path / "filters.folded", seconds=3)
    samples = [sample.frames for sample in stacks.parse_folded(folded.read_text())]
    inside = [frames for frames in samples if any(entry("header_filter") in frame for frame in frames)]
    wrong = [frames for frames in inside if not any(entry("content") in frame for frame in frames)]
    assert len(inside) > 0 and not wrong, wrong
