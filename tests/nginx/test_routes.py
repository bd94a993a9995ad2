# SPDX-License-Identifier: MIT
"""Reports choose and sum samples by the request that a worker's Lua works for."""

import collections
import http.client
import json
import os
import pathlib
import signal
import subprocess
import threading

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
HOSTS = ["shop1.example.com", "shop2.example.com", "shop3.example.com"]
CPU_NS = 2e9  # of the worker, in each recording


@pytest.fixture
def nginx(tmp_path):
    settings = {"JIT": "on", "SILENT": 1}
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


def record(server, directory):
    output = directory / "nginx.ljspy"
    with Clients(server):
        until = ljspy.cpu_ns(server.worker) + CPU_NS
        argv = [ljspy.LJSPY, "record", "-p", str(server.worker), "-d", "60s", "-r", "499", "-o", output]
        with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as recording:
            ljspy.wait_until(lambda: ljspy.cpu_ns(server.worker) >= until, seconds=50, pause=0.1)
            recording.send_signal(signal.SIGINT)
    report = ljspy.run("report", output, "-f", "json", "-o", "-")
    return output, json.loads(report.stdout)["samples"]


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
