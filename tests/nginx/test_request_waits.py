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

# A worker that runs is held for a twentieth of the time at most: not each machine reads as many requests more often.
SECONDS, RATE, TRIES = 6, 99, 3
LATE_MS_MAX = 100  # of a worker that waits for a CPU between the log and the end of a request
SLEEP_S = 0.05  # of /up50, for which the other routes of WAITS wait
CONNECTIONS = {"/proxied": 4, "/asks": 1, "/lives": 1}
WAITS = {"/proxied": "upstream first byte", "/asks": "socket receive", "/up50": "sleep"}


@pytest.fixture(scope="module", name="recorded")
def fixture_recorded():
    """A recording under load, what the log says of its time, and the port of the server."""
    with contextlib.ExitStack() as stack:
        path = stack.enter_context(nginx_server.directory_for_workers())
        server = stack.enter_context(nginx_server.Nginx(path / "nginx", nginx_server.template("waits.conf.in")))
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
    found["numbers"] = {}
    for line in log.read_text().splitlines():
        ended, seconds, route, number, arrived = line.split(" ")
        overlap = min(float(ended), end) - max(float(arrived), begin)
        if overlap > 0:
            found[route][0] += overlap / (end - begin)
        if begin < float(ended) < end:
            found[route][1].append(float(seconds))
            found["numbers"][number] = route, float(seconds)
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
    recording, log, port = recorded
    waits = collections.Counter()
    for sample in samples_of(recording):
        waits[sample["request"]["route"], sample["names"][0].removesuffix(" [nginx]")] += sample["wall_ns"]
    for route, kind in WAITS.items():
        of_route = {wait: ns for (known, wait), ns in waits.items() if known == route}
        named = sum(ns for wait, ns in of_route.items() if wait.split(":")[0] == kind)
        # The rest of its time a request waits for others' events.
        slept = SLEEP_S / statistics.mean(log[route][1])
        assert named > 0.8 * slept * sum(of_route.values()), (route, slept, of_route)
    assert waits["/proxied", f"upstream first byte: 127.0.0.1:{port}"] > 0


def test_the_text_report(recorded):
    recording, log, _ = recorded
    shown = ljspy.run("report", recording, "--include-request", "/proxied").stdout
    assert re.search(r"ms  route and what its requests waited for\n.* /proxied\n.* upstream first byte\n", shown)
    about, seen, p50 = re.search(r"About (\d+) requests, (\d+) of them seen, p50 ([\d.]+) ms, p99 [\d.]+ ms, p99.9 "
                                 r"[\d.]+ ms, oldest seen [\d.]+ ms\n", shown).groups()
    truth = sorted(log["/proxied"][1])
    # The recording is a part of the time that the log is of.
    part = length_of(samples_of(recording)) / 1e9 / log["seconds"]
    assert int(seen) <= int(about) and int(about) == pytest.approx(part * len(truth), rel=0.2)
    # On a full machine there may be fast ones and slow ones, and nothing in between.
    low, high = (1000 * truth[int(part * len(truth))] for part in (0.35, 0.65))
    assert 0.8 * low <= float(p50) <= 1.2 * high
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


def listed(recording, *options):
    """The slowest requests that the text report lists: number, and age when last seen in ms."""
    shown = ljspy.run("report", recording, *options).stdout
    rows = re.findall(r"^ +([\d.]+) ms  (\d+\.\d+) +\d+  (\S+)$", shown, re.MULTILINE)
    return [(number, float(ms)) for ms, number, _ in rows]


def life_of(recording, number):
    return json.loads(ljspy.run("report", recording, "--request", number, "-f", "json").stdout)


def seen_steps(life):
    return {(step["phase"], step["what"].split(":")[0]) for step in life["steps"] if step["looks"]}


def test_the_slowest_requests_are_listed_with_their_numbers(recorded):
    recording, log, _ = recorded
    slowest = listed(recording)
    assert len(slowest) == 10 and [ms for _, ms in slowest] == sorted((ms for _, ms in slowest), reverse=True)
    ended = [(number, ms, log["numbers"][number][1]) for number, ms in slowest if number in log["numbers"]]
    assert ended
    for number, ms, seconds in ended:
        # nginx's log leaves out the last turn of the loop, in which a look may meet the request.
        assert 500 * seconds <= ms <= 1100 * seconds + 5, number


def test_the_life_of_a_request(recorded):
    recording, log, _ = recorded
    lives = [(life_of(recording, number), log["numbers"][number][1])
             for number, _ in listed(recording, "--include-request", "/lives") if number in log["numbers"]]
    seen = collections.Counter()
    # The request in flight when the recording ends is in the log, too, if the log is read late enough.
    whole = [(life, seconds) for life, seconds in lives if not life["recording_ends"]]
    assert whole and len(lives) - len(whole) <= CONNECTIONS["/lives"]
    for life, seconds in whole:
        assert life["request"]["route"] == "/lives"
        ends = [step["start_ms"] + step["duration_ms"] for step in life["steps"]]
        assert life["steps"][0]["start_ms"] == 0 and ends[-1] == pytest.approx(life["last_seen_ms"])
        assert all(step["start_ms"] == pytest.approx(end) for step, end in zip(life["steps"][1:], ends))
        assert life["last_seen_ms"] < 1000 * seconds + LATE_MS_MAX
        steps = [(step["phase"], step["what"].split(":")[0]) for step in life["steps"] if step["looks"]]
        seen.update(step for step in steps)
        # What was seen of it began in this order. Its last look may find it printing.
        order = [("access", "sleep"), ("content", "CPU"), ("content", "sleep")]
        places = [order.index(step) for step in dict.fromkeys(steps) if step in order]
        assert places == sorted(places), steps
    # On a busy machine the looks of one request may miss a part of it.
    assert all(seen[step] > 0.5 * len(whole) for step in order), seen


def test_what_no_look_saw_is_said(recorded, tmp_path):
    recording, log, _ = recorded
    cut = tmp_path / "cut.ljspy"
    # One of which the looks saw both sleeps.
    number = next(number for number, _ in listed(recording, "--include-request", "/lives") if number in log["numbers"]
                  and {("access", "sleep"), ("content", "sleep")} <= seen_steps(life_of(recording, number)))
    ljspy.run("report", recording, "--exclude", "access_by_lua", "-o", cut)
    first = life_of(cut, number)["steps"][0]
    assert first["looks"] == 0 and first["what"] is None and first["duration_ms"] > 30, first
    shown = ljspy.run("report", cut, "--request", number).stdout
    assert "not seen" in shown and re.search(r" content +sleep  ngx\.sleep .* < .*content_by_lua", shown), shown


def test_what_slow_requests_did_otherwise(recorded):
    """Of all routes, only /lives takes more than 100 ms, and only it sleeps in the access phase."""
    recording, _, _ = recorded
    shown = ljspy.run("diff", recording, "--slower-than", "100ms", "--include-request", "/lives|/asks").stdout
    assert "the other requests" in shown and "the slow requests" in shown
    total = {name: float(change) for change, name in re.findall(r"([+-][\d.]+) ± +[\d.]+ [* ]  (\S.*)$", shown, re.MULTILINE)}
    assert total["receive [ngx_http_lua_module.so]"] < -50
    assert sum(change for name, change in total.items() if "access_by_lua" in name) > 10
    done = ljspy.run("diff", recording, "--slower-than", "p100")
    assert done.returncode == ljspy.USAGE and "not a percentile" in done.stderr
    done = ljspy.run("diff", recording, "--slower-than", "1h")
    assert done.returncode == ljspy.NOTHING_PROFILED and "No request was seen" in done.stderr
    assert ljspy.run("diff", recording).returncode == ljspy.USAGE


def test_the_slowest_requests_without_a_number_copied_by_hand(recorded, tmp_path):
    def ages(*options):
        ljspy.run("report", recorded[0], *options, "--include-request", "/lives|/asks", "-f", "json",
                  "-o", tmp_path / "part.json")
        found = collections.defaultdict(int)
        for sample in json.loads((tmp_path / "part.json").read_text())["samples"]:
            request = sample["request"]
            key = request["connection"], request["number"]
            found[key] = max(found[key], request["age_ns"])
        return found

    everyone, half, one = ages(), ages("--slower-than", "p50"), ages("--slower-than", "p99.9999")
    assert max(everyone.values()) == max(one.values()) == min(one.values())
    assert len(everyone) / 2 <= len(half) < len(everyone)
    assert min(half.values()) > max((age for key, age in everyone.items() if key not in half), default=0)


def test_a_request_that_no_sample_has(recorded):
    done = ljspy.run("report", recorded[0], "--request", "4000000000.1")
    assert done.returncode == ljspy.NOTHING_PROFILED and "No sample has request 4000000000.1" in done.stderr


def test_lua_that_runs_has_its_stack(tmp_path):
    with nginx_server.Nginx(tmp_path / "nginx", nginx_server.template("waits.conf.in")) as server:
        server.wait_answers("/answers")
        with server.load("/works", 20, 2):
            ljspy.run("record", "--requests", "-p", server.worker, "-d", "2s", "-o", tmp_path / "works.ljspy")
    samples = [s for s in samples_of(tmp_path / "works.ljspy") if s["request"]["route"] == "/works"]
    running = [s for s in samples if s["state"] != "parked"]
    in_lua = [s for s in running if s["vm_state"] != "none"]
    assert len(in_lua) > 5
    # In the other phases the server only asks for the time.
    assert all(any(f"{s['phase']}_by_lua(" in name for name in s["names"]) for s in in_lua)
    assert sum(s["phase"] == "content" for s in in_lua) > 0.5 * len(in_lua)
    assert sum(any("os.clock" in name for name in s["names"]) for s in running) > 0.5 * len(running)


def test_a_worker_that_may_not_be_stopped_is_not_shown_asleep(tmp_path):
    """Half of its time it draws random bytes, in calls that a stop might cut short."""
    with nginx_server.Nginx(tmp_path / "nginx", nginx_server.template("waits.conf.in")) as server:
        server.wait_answers("/answers")
        with server.load("/draws", 20, 1):
            time.sleep(0.5)
            begin = time.time()
            done = ljspy.run("record", "--requests", "-p", server.worker, "-d", "4s", "-o", tmp_path / "draws.ljspy")
            end = time.time()
        log = in_flight(tmp_path / "nginx/access.log", begin, end)["/draws"]
    wall = collections.Counter()
    for sample in samples_of(tmp_path / "draws.ljspy"):
        if sample["request"]["route"] == "/draws":
            wall[sample["names"][0].removesuffix(" [nginx]")] += sample["wall_ns"]
    total = sum(wall.values())
    # The one request in flight draws for 30 ms of CPU time; the rest of its time it may sleep.
    asleep = 1 - 0.03 / statistics.mean(log[1])
    assert total and wall["sleep"] < (asleep + 0.15) * total, (wall, asleep)
    assert wall["unknown: not stopped"] > 0.5 * (total - wall["sleep"]), wall
    assert int(re.search(r"(\d+) ticks missed", done.stderr).group(1)) > 0, done.stderr


def test_options_that_exclude_each_other():
    for other in ("--coroutines", "--blocked", "--no-stop"):
        done = ljspy.run("record", "--requests", other, "-p", os.getpid())
        assert done.returncode == ljspy.USAGE and "does not go together" in done.stderr
