# SPDX-License-Identifier: MIT
"""Samples have the request that a worker's Lua works for, judged by nginx's own log."""

import collections
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

import pytest

import ljspy
import nginx_server

pytestmark = [
    pytest.mark.usefixtures("built"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the master must be root for its worker to be nobody"),
]

TEMPLATE = nginx_server.template("routes.conf.in")

PATHS = [*(f"/work/{name}/7" for name in "abcde"), "/filtered", "/yields", "/captures", "/redirects", "/fails",
         "/proxied", "/target"]
# What a request of a path does besides, as another route.
ALSO = {"/captures": {"/inner/*"}, "/redirects": {"/target"}, "/fails": {"/excuse"}}
HOSTS = ["shop1.example.com", "shop2.example.com", "shop3.example.com"]
TURN_SECONDS_MAX = 2
CPU_NS = 2e9  # of the worker, in each recording


@pytest.fixture(params=["on", "off"])
def nginx(request, tmp_path):
    settings = {"JIT": request.param, "SILENT": 1}
    with nginx_server.Nginx(tmp_path / "nginx", TEMPLATE, **settings) as server:
        server.wait_answers(*PATHS[:-3])
        yield server


class Clients:
    """Ask for all paths and hosts, on connections that are kept alive for a while, and now and then give up."""

    def __init__(self, server, count=12):
        self.server = server
        self.ends = False
        self.threads = [threading.Thread(target=self.ask, args=(n,)) for n in range(count)]

    def ask(self, n):
        connection, done = None, n
        while not self.ends:
            path, host = PATHS[done % len(PATHS)], HOSTS[done // 5 % len(HOSTS)]
            try:
                connection = connection or http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=10)
                connection.request("GET", f"{path}?secret={n}", headers={"Host": host})
                if done % 23 == 0:
                    raise ConnectionError("the client gives up")
                connection.getresponse().read()
            except (OSError, http.client.HTTPException):
                connection.close()
                connection = None
            done += 1

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ends = True
        for thread in self.threads:
            thread.join()


def fold(path):
    return re.sub(r"/\d+", "/*", path)


def logged(server):
    """What nginx's log says of each request, by connection and number."""
    requests = {}
    for line in (server.error_log.parent / "access.log").read_text().splitlines():
        connection, number, status, seconds, host, method, asked, path = line.split(" ")
        requests[int(connection), int(number)] = (int(status), float(seconds), host, method, asked.split("?")[0], path)
    return requests


def record(server, directory):
    output = directory / "nginx.ljspy"
    with Clients(server):
        until = ljspy.cpu_ns(server.worker) + CPU_NS
        argv = [ljspy.LJSPY, "record", "-p", str(server.worker), "-d", "60s", "-r", "499", "-o", output]
        with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as recording:
            ljspy.wait_until(lambda: ljspy.cpu_ns(server.worker) >= until, seconds=50, pause=0.1)
            recording.send_signal(signal.SIGINT)
    # The log of those that were in flight at the end.
    assert ljspy.wait_until(lambda: logged(server)), "the log"
    time.sleep(0.3)
    report = ljspy.run("report", output, "-f", "json", "-o", "-")
    return output, json.loads(report.stdout)["samples"]


def judge(request, log):
    """Whether the sample's request is what the log has under its number. None: not in the log."""
    known = log.get((request["connection"], request["number"]))
    if known is None:
        return None
    status, seconds, host, method, asked, path = known
    legal = {fold(asked), fold(path)} | ALSO.get(asked, set())
    return (request["route"] in legal and request["host"] == host and request["method"] == method
            and request.get("status", status) in (status, 200)
            # nginx's clock stands still while it serves what has come at once.
            and request["age_ns"] / 1e9 <= seconds + TURN_SECONDS_MAX)


def test_routes_and_hosts_are_those_of_the_log(nginx, tmp_path):
    _, samples = record(nginx, tmp_path)
    log = logged(nginx)
    requests = [s["request"] for s in samples if "request" in s]
    assert len(samples) > 500 and len(log) > 1000
    lua = [s for s in samples if s["phase"] not in (None, "timer")]
    assert sum("request" in s for s in lua) >= 0.99 * len(lua), "samples of a phase without a request"
    verdicts = collections.Counter(judge(request, log) for request in requests)
    assert verdicts[True] > 500 and verdicts[True] >= 0.999 * len(requests), (
        verdicts, [(r, log.get((r["connection"], r["number"]))) for r in requests if not judge(r, log)][:10])
    assert {r["route"] for r in requests} >= {fold(p) for p in PATHS if p != "/proxied"} | {"/inner/*", "/excuse"}
    assert {r["host"] for r in requests} >= set(HOSTS)
    assert {r["route"] for r in requests if r["subrequest"]} == {"/inner/*"}
    assert "secret" not in json.dumps(requests)
    # Routes with known work have time in proportion.
    time_of = collections.Counter()
    for sample in samples:
        if "request" in sample:
            time_of[sample["request"]["route"]] += sample["cpu_ns"]
    work = [time_of[f"/work/{name}/*"] for name in "abcde"]
    assert max(work) < 2 * min(work)


def test_reports_by_request(nginx, tmp_path):
    output, samples = record(nginx, tmp_path)

    def report(*options):
        done = ljspy.run("report", output, "-f", "json", "-o", "-", *options)
        return json.loads(done.stdout)["samples"]

    shown = ljspy.run("report", output, "--by", "route", "-f", "folded", "-o", "-").stdout
    roots = {line.split(";")[0].split(" [")[0] for line in shown.splitlines()}
    assert roots >= {"/work/a/*", "/filtered", "/inner/*"}
    shown = ljspy.run("report", output, "--by", "host", "-f", "folded", "-o", "-").stdout
    assert {line.split(";")[0] for line in shown.splitlines()} >= set(HOSTS)
    shown = ljspy.run("report", output, "--by", "status", "-f", "folded", "-o", "-").stdout
    assert "no status yet" in {line.split(";")[0] for line in shown.splitlines()}

    one = report("--include-request", "GET shop1[.]example[.]com/work/a/")
    assert one and all(s["request"]["route"] == "/work/a/*" and s["request"]["host"] == HOSTS[0] for s in one)
    assert len(one) == sum("request" in s and s["request"]["route"] == "/work/a/*" and
                           s["request"]["host"] == HOSTS[0] for s in samples)

    ages = collections.Counter()
    for sample in samples:
        if "request" in sample:
            key = sample["request"]["connection"], sample["request"]["number"]
            ages[key] = max(ages[key], sample["request"]["age_ns"])
    limit = sorted(ages.values())[len(ages) // 2] // 1000000
    slow = {key for key, age in ages.items() if age >= limit * 1000000}
    found = report("--slower-than", f"{limit}ms")
    assert 0 < len(slow) < len(ages)
    assert {(s["request"]["connection"], s["request"]["number"]) for s in found} == slow


def test_recordings_of_version_4_lack_requests():
    old = pathlib.Path(__file__).parent / "version-4.ljspy"
    assert "no request" in ljspy.run("report", old, "--by", "route").stdout
    samples = json.loads(ljspy.run("report", old, "-f", "json", "-o", "-").stdout)["samples"]
    assert len(samples) > 50 and all("request" not in sample for sample in samples)
    assert "heavy" in ljspy.run("report", old).stdout
