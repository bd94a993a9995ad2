# SPDX-License-Identifier: MIT
"""`record --requests` tells what requests wait for; the times add up to those of nginx's own log."""

import collections
import contextlib
import json
import math
import os
import re
import statistics
import time

import pytest

import ljspy
import nginx_server

pytestmark = [
    pytest.mark.usefixtures("built"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the master must be root for its worker to be nobody"),
]

SECONDS, RATE, TRIES = 4, 199, 3
CONNECTIONS = {"/proxied": 4, "/asks": 1}
WAITS = {"/proxied": "upstream first byte", "/asks": "socket", "/up50": "sleep"}


@pytest.fixture(scope="module", name="recorded")
def fixture_recorded(tmp_path_factory):
    """A recording under load, what the log says of its time, and the port of the server."""
    path = tmp_path_factory.mktemp("waits")
    path.chmod(0o777)
    for parent in list(path.parents)[:2]:
        parent.chmod(0o755)
    with nginx_server.Nginx(path / "nginx", nginx_server.template("waits.conf.in")) as server, contextlib.ExitStack() as stack:
        server.wait_answers("/answers")
        loads = [stack.enter_context(server.load(route, TRIES * SECONDS + 30, count))
                 for route, count in CONNECTIONS.items()]
        time.sleep(0.5)
        begin, end = record_often(server, path / "waits.ljspy")
        for load in loads:
            load.stop()
        time.sleep(0.3)
        yield path / "waits.ljspy", in_flight(path / "nginx/access.log", begin, end), server.port


def record_often(server, output):
    """Record until ljspy gets a CPU when a look is due. Returns when the recording began and ended."""
    for _ in range(TRIES):
        begin = time.time()
        done = ljspy.run("record", "--requests", "-p", server.worker, "-d", f"{SECONDS}s", "-r", RATE, "-o", output)
        end = time.time()
        assert done.returncode == ljspy.OK, done.stderr
        reached = len({sample["time_ns"] for sample in samples_of(output)}) / SECONDS
        if reached > 0.7 * RATE:
            return begin, end
    pytest.skip(f"the machine is too busy: {reached:.0f} looks a second of {RATE} took place")


def in_flight(log, begin, end):
    """By route: how many requests were in flight on average, and the latencies of those that ended."""
    found = collections.defaultdict(lambda: [0, []])
    found["seconds"] = end - begin
    for line in log.read_text().splitlines():
        ended, seconds, route = line.split(" ")
        overlap = min(float(ended), end) - max(float(ended) - float(seconds), begin)
        if overlap > 0:
            found[route][0] += overlap / (end - begin)
        if begin < float(ended) < end:
            found[route][1].append(float(seconds))
    return found


def samples_of(recording):
    """The samples, with the names of their functions, the innermost first."""
    document = json.loads(ljspy.run("report", recording, "-f", "json", "-o", "-").stdout)
    for sample in document["samples"]:
        frames = [document["frames"][frame] for frame in document["stacks"][sample["stack"]]]
        sample["names"] = [document["functions"][frame["function"]]["name"] for frame in reversed(frames)]
    return document["samples"]


def length_of(samples):
    """From the first look to the last, in ns: ljspy takes a while to begin on a busy machine."""
    times = [sample["time_ns"] for sample in samples]
    return max(times) - min(times)


def test_times_are_those_of_the_log(recorded):
    recording, log, _ = recorded
    samples = samples_of(recording)
    wall = collections.Counter()
    for sample in samples:
        wall[sample["request"]["route"]] += sample["wall_ns"]
    length = length_of(samples)
    looks = collections.defaultdict(collections.Counter)
    for sample in samples:
        looks[sample["time_ns"]][sample["request"]["route"]] += 1
    assert len(log["/proxied"][1]) > 100 and len(looks) > 30
    for route in WAITS:
        # On a busy machine there are few looks; then what they find at random counts.
        error = statistics.stdev(look[route] for look in looks.values()) / math.sqrt(len(looks))
        assert wall[route] / length == pytest.approx(log[route][0], abs=0.03 * log[route][0] + 3 * error), route


def test_what_each_route_waits_for(recorded):
    recording, _, port = recorded
    waits = collections.Counter()
    for sample in samples_of(recording):
        waits[sample["request"]["route"], sample["names"][0].removesuffix(" [nginx]")] += sample["wall_ns"]
    for route, kind in WAITS.items():
        of_route = {wait: ns for (known, wait), ns in waits.items() if known == route}
        named = sum(ns for wait, ns in of_route.items() if wait.split(":")[0] == kind)
        assert named > 0.6 * sum(of_route.values()), (route, of_route)
    assert waits["/proxied", f"upstream first byte: 127.0.0.1:{port}"] > 0


def test_the_text_report(recorded):
    recording, log, _ = recorded
    shown = ljspy.run("report", recording, "--include-request", "/proxied").stdout
    assert re.search(r"ms  route and what its requests waited for\n.* /proxied\n.* upstream first byte\n", shown)
    about, seen, p50 = re.search(r"About (\d+) requests, (\d+) of them seen, p50 ([\d.]+) ms, p99 [\d.]+ ms, p99.9 "
                                 r"[\d.]+ ms, longest [\d.]+ ms\n", shown).groups()
    truth = sorted(log["/proxied"][1])
    # The recording is a part of the time that the log is of.
    part = length_of(samples_of(recording)) / 1e9 / log["seconds"]
    assert int(seen) <= int(about) and int(about) == pytest.approx(part * len(truth), rel=0.2)
    assert float(p50) == pytest.approx(1000 * truth[len(truth) // 2], rel=0.2)
    buckets = [int(count) for count in re.findall(r"^ +(\d+) +[\d.]+ ms  #", shown, re.MULTILINE)]
    assert abs(sum(buckets) - int(about)) <= len(buckets)


def test_sums_by_upstream(recorded):
    recording, _, port = recorded
    shown = ljspy.run("report", recording, "--by", "upstream").stdout
    rows = re.findall(r"^ +[\d.]+ ± [\d.]+ +([\d.]+)  (127\.0\.0\.1:\d+|no upstream)$", shown, re.MULTILINE)
    groups = {name: float(ms) for ms, name in rows}
    waits = sum(sample["wall_ns"] for sample in samples_of(recording) if sample["names"][0].endswith(f":{port} [nginx]"))
    assert waits > 0 and groups[f"127.0.0.1:{port}"] == pytest.approx(waits / 1e6, rel=0.01)
    assert groups["no upstream"] > 0


def test_lua_that_runs_has_its_stack(tmp_path):
    with nginx_server.Nginx(tmp_path / "nginx", nginx_server.template("waits.conf.in")) as server:
        server.wait_answers("/answers")
        with server.load("/works", 20, 2):
            ljspy.run("record", "--requests", "-p", server.worker, "-d", "2s", "-o", tmp_path / "works.ljspy")
    samples = [s for s in samples_of(tmp_path / "works.ljspy") if s["request"]["route"] == "/works"]
    running = [s for s in samples if s["state"] != "parked"]
    assert len(running) > 5 and all(s["phase"] == "content" for s in running)
    assert sum(any("os.clock" in name for name in s["names"]) for s in running) > 0.5 * len(running)


def test_options_that_exclude_each_other():
    for other in ("--coroutines", "--blocked", "--no-stop"):
        done = ljspy.run("record", "--requests", other, "-p", os.getpid())
        assert done.returncode == ljspy.USAGE and "does not go together" in done.stderr
