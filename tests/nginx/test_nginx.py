# SPDX-License-Identifier: MIT
"""A real nginx under load: OpenResty's module in Debian's nginx.

The module needs OpenResty's branch of LuaJIT (for lua_setexdata), so it runs only with
libluajit2.
"""

import collections
import concurrent.futures
import json
import os
import re
import signal
import time

import pytest

import ljspy
import nginx_server
import stacks

pytestmark = [
    pytest.mark.usefixtures("built"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the master must be root for its worker to be nobody"),
]

TEMPLATE = nginx_server.template("nginx.conf.in")


# What a C function of Lua calls stands above it only on request.
INSIDE = ["--native", "all"] if nginx_server.IS_OLD else []


def line_of(tag):
    for number, line in enumerate(TEMPLATE.splitlines(), 1):
        if line.endswith(f"-- @{tag}"):
            return number
    raise ValueError(tag)


def label_of(block):
    """What lua-nginx-module calls the Lua of a block: by its first line, or before 0.10.14 by its last one."""
    lines, first = TEMPLATE.splitlines(), line_of(block)
    if not nginx_server.IS_OLD:
        return f"content_by_lua(nginx.conf:{first})"
    indent = lines[first - 1][: -len(lines[first - 1].lstrip())]
    return f"content_by_lua(nginx.conf:{lines.index(indent + '}', first) + 1})"


def function_in(block):
    """Returns a function: a tagged function's place in a block, whose lines count from the block's own."""
    label = label_of(block)
    return lambda tag: f"{label}:{line_of(tag) - line_of(block) + 1}"


def entry_of(block):
    """The outermost function of a block, as in a program's list of stacks."""
    return f"{{{label_of(block)}:1}}" if nginx_server.IS_OLD else f"main{{{label_of(block)}}}"


def stack_list():
    """The legal stacks, as a program would list them. The module's scheduler resumes
    coroutines, so a coroutine's creator may or may not be below it."""
    shares, inside = function_in("shares"), function_in("coroutine")
    shares_main, coroutine_main = entry_of("shares"), entry_of("coroutine")
    module = "(/.*ngx.*/ | /.*coroutine.*/ | /.*resty.*/ | /.* \\[builtin\\]/)*"
    # That chunk made the function, in each request.
    made = [f"main{{{label_of(block)}}}" for block in ("shares", "coroutine") if nginx_server.IS_OLD]
    return "\n".join(
        f"-- stack: {stack}"
        for stack in (
            *made,
            f"{shares_main} (foo{{{shares('foo')}}} | bar{{{shares('bar')}}}) heavy{{{shares('heavy')}}}!",
            f"{coroutine_main} {module}",
            f"({coroutine_main} {module})? {{{inside('body')}}} heavy{{{inside('heavy_inside')}}}!",
            f"({coroutine_main} {module})? {{{inside('body')}}} /yield .*/ {module}",
        )
    )


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "nginx.lua"
    path.write_text(stack_list())
    return stacks.Program(path)


@pytest.fixture
def nginx(tmp_path, jit):
    with nginx_server.Nginx(tmp_path / "nginx", TEMPLATE, JIT=jit) as server:
        server.wait_answers("/shares", "/coroutine")
        yield server


def record_under_load(nginx, path, directory, seconds):
    with nginx.load(path, seconds + 60) as load:
        busy = ljspy.cpu_ns(nginx.worker)
        assert ljspy.wait_until(lambda: ljspy.cpu_ns(nginx.worker) > busy + 1e8)
        recording = ljspy.record(directory, "-p", nginx.worker, seconds=seconds)
        report = load.stop()
    assert load.returncode == 0
    assert "Non-2xx" not in report and "Socket errors" not in report, report
    return recording


def verdicts(program, samples):
    """Weights by verdict, and wrong stacks. Skips nginx's stacks without Lua."""
    weights, wrong = collections.Counter(), []
    for sample in samples:
        if not sample.frames:
            continue
        verdict = program.judge(sample)
        weights[verdict] += sample.weight
        if verdict == "wrong":
            wrong.append(";".join(sample.frames))
    return weights, wrong


@pytest.mark.slow
def test_foo_has_two_thirds(nginx, jit, program, tmp_path, note_lost):
    recording = record_under_load(nginx, "/shares", tmp_path, seconds=8)
    weights, wrong = verdicts(program, recording.samples)
    note_lost(f"nginx, jit {jit}", len(recording.samples), weights)
    total = ljspy.weight_of(recording.samples)
    lost_share, wrong_share = stacks.limits(jit, program)
    assert weights["wrong"] <= wrong_share * total, wrong
    assert weights["lost"] <= lost_share * total
    foo = ljspy.weight_of(recording.samples, ljspy.has_frame("foo"))
    bar = ljspy.weight_of(recording.samples, ljspy.has_frame("bar"))
    assert foo / (foo + bar) == pytest.approx(2 / 3, abs=max(0.02, 4 * (2 / 9 / recording.stats["samples"]) ** 0.5))
    # nginx itself takes the rest, more of it on a busy machine.
    assert foo + bar > 0.6 * total


def test_coroutine_of_a_request(nginx, jit, program, tmp_path, note_lost):
    recording = record_under_load(nginx, "/coroutine", tmp_path, seconds=2)
    weights, wrong = verdicts(program, recording.samples)
    note_lost(f"nginx coroutine, jit {jit}", len(recording.samples), weights)
    lost_share, wrong_share = stacks.limits(jit, program)
    assert weights["wrong"] <= wrong_share * sum(weights.values()), wrong
    assert weights["lost"] <= lost_share * sum(weights.values())
    assert ljspy.weight_of(recording.samples, ljspy.has_frame("heavy")) > 0.5 * ljspy.weight_of(recording.samples)


def record_native_under_load(nginx, path, directory, *options):
    with nginx.load(path, 60):
        busy = ljspy.cpu_ns(nginx.worker)
        assert ljspy.wait_until(lambda: ljspy.cpu_ns(nginx.worker) > busy + 1e8)
        return ljspy.record_native(directory, "-p", nginx.worker, options=[*options, *INSIDE])


def test_what_lua_calls_stands_above_it(nginx, jit, tmp_path):
    """Functions of nginx and its libraries stand above the Lua line that called them,
    and nginx's event loop below everything."""
    recorded = record_native_under_load(nginx, "/leaves", tmp_path, "--lines")
    for function, called in (("matches", r"(pcre|match)"), ("digests", r"(MD5|md5)")):
        stacks_of = [(frames, weight) for frames, weight in recorded if any(f.startswith(function) for f in frames)]
        above = lost = 0
        for frames, weight in stacks_of:
            at = next(i for i, frame in enumerate(frames) if frame.startswith(function + " "))
            outside, inside = frames[:at], frames[at + 1 :]
            lost += weight * any(map(stacks.is_lost, frames))
            if any(map(stacks.is_lost, frames)):
                continue
            names = [frame.split(" ")[0] for frame in outside]
            assert names.index("main") < names.index("ngx_process_events_and_timers"), frames
            above += weight * any(re.search(called, frame) for frame in inside)
        total = sum(weight for _, weight in stacks_of)
        assert above > 0.3 * total, (function, stacks_of)
        assert lost <= stacks.LOST_SHARE_COMPILED * total, (function, stacks_of)


def test_compiled_patterns_have_their_callers(nginx, jit, tmp_path):
    """ngx.re.find with "jo" spends its time in machine code that PCRE made. ljspy knows
    the callers of this code in a recording, in one with --blocked, and in a dump."""
    find, pattern = r"find \S*resty/core/regex\.lua:\d+;", function_in("pattern")
    worked = "pcre|machine code|lost: (?!thread asleep)"
    if nginx_server.IS_OLD:
        find = r"(find|ngx\.re\.find) \[ngx_http_lua_module\.so\];"
    calls = rf"(main chunk [^;]*|function <[^;]*:1>);matches {re.escape(pattern('matches'))};{find}"
    with nginx.load("/pattern", 60):
        busy = ljspy.cpu_ns(nginx.worker)
        assert ljspy.wait_until(lambda: ljspy.cpu_ns(nginx.worker) > busy + 1e8)
        cpu = ljspy.record_native(tmp_path, "-p", nginx.worker, options=INSIDE)
        blocked = ljspy.record_native(tmp_path, "-p", nginx.worker, options=["--blocked", *INSIDE])
        dump = ljspy.run("dump", "-p", nginx.worker).stdout
    for recorded in (cpu, blocked):
        matching = [(frames, weight) for frames, weight in recorded if re.search(worked, ";".join(frames))]
        weight = sum(weight for _, weight in matching)
        told = sum(weight for frames, weight in matching if re.search(calls, ";".join(frames)))
        print(f"under ngx.re.find: truth {weight}, seen {told}")
        assert weight > 0.5 * sum(weight for _, weight in recorded), recorded
        assert told >= 0.99 * weight, matching
        assert sum(weight for frames, weight in matching if any(map(stacks.is_lost, frames))) <= 0.01 * weight
    assert "[lost" not in dump, dump


@pytest.mark.skipif(nginx_server.RELEASE is not None, reason="gdb takes the loader of another release for the program")
@pytest.mark.usefixtures("gdb")
@pytest.mark.parametrize("jit", ["off"], indirect=True)
def test_native_frames_are_gdbs(nginx, jit):
    with nginx.load("/leaves", 60):
        busy = ljspy.cpu_ns(nginx.worker)
        assert ljspy.wait_until(lambda: ljspy.cpu_ns(nginx.worker) > busy + 1e8)
        assert ljspy.compare_with_gdb(nginx.worker)


def test_idle_worker_is_left_alone(nginx, tmp_path):
    ljspy.wait_until(lambda: ljspy.status_field(nginx.worker, "State") == "S")
    log, sleeps = nginx.error_log.read_text(), ljspy.sleeps(nginx.worker)
    result = ljspy.run("record", "-p", nginx.worker, "-d", "2s", "-o", tmp_path / "idle.svg")
    assert result.returncode == ljspy.NOTHING_PROFILED and "There is no sample" in result.stderr
    assert nginx.error_log.read_text() == log
    assert ljspy.sleeps(nginx.worker) == sleeps
    assert nginx.get("/shares")


def test_idle_worker_is_left_alone_by_the_wall_clock(nginx, tmp_path):
    ljspy.wait_until(lambda: ljspy.status_field(nginx.worker, "State") == "S")
    log, sleeps = nginx.error_log.read_text(), ljspy.sleeps(nginx.worker)
    ljspy.record(tmp_path, "-p", nginx.worker, seconds=2, options=["--clock", "wall"])
    assert nginx.error_log.read_text() == log
    assert ljspy.sleeps(nginx.worker) == sleeps


def test_wall_clock_tells_what_blocks_a_worker(nginx, tmp_path):
    """The request measures the truth. Between requests the worker is idle. No system call is interrupted."""
    path = tmp_path / "wall.ljspy"
    begin = time.monotonic()
    options = ["--clock", "wall", "-f", "ljspy", "-o", path]
    recorder = ljspy.Recorder(tmp_path, "-p", nginx.worker, seconds=60, options=options)
    assert ljspy.wait_until(path.exists, seconds=30)  # the recording gets its name within the first second
    blocked = sum(float(nginx.get("/blocks")) for _ in range(3))
    recorder.process.send_signal(signal.SIGINT)
    assert recorder.process.communicate(timeout=60) and recorder.process.returncode == ljspy.OK
    document = json.loads(ljspy.run("report", path, "-f", "json").stdout)
    times = collections.Counter()
    for sample in document["samples"]:
        times[sample["state"], sample["phase"]] += sample["wall_ns"] / 1e9
    whole = sum(times.values())
    missed = document["figures"]["missed_ticks"] / ljspy.HIGH_RATE / whole
    assert whole <= time.monotonic() - begin
    share = sum(time for (_, phase), time in times.items() if phase == "content") / whole
    assert abs(share - blocked / whole) <= 0.03 + missed, times
    assert times["blocked", "content"] > 0.5 * blocked and times["idle", None] > 0, times
    assert not any(state == "idle" and phase for state, phase in times), times
    waits = {sample["wait"] for sample in document["samples"] if sample["state"] == "blocked"}
    assert "wait4 sh" in waits or "wait4 sleep" in waits, waits
    assert "Interrupted system call" not in nginx.error_log.read_text()


def test_dump_of_an_idle_worker(nginx):
    """Lua does not run: ljspy must not show the function that ran last."""
    result = ljspy.run("dump", "-p", nginx.worker)
    assert result.returncode == ljspy.OK, result.stderr
    assert str(nginx.worker) in result.stdout
    assert "heavy" not in result.stdout


def test_dump_tells_where_requests_wait(nginx):
    """The worker sleeps, and runs no Lua function."""
    block = function_in("parked")
    entry = rf"(main chunk|function <{re.escape(label_of('parked'))}:1>)"
    waiting = rf"3 coroutines \(suspended, content\)\n    (ngx\.)?sleep \[.*\]\n    {entry} {re.escape(block('sleeps'))}\n"
    # Before they are resumed, nothing connects them to the request.
    created = rf"300 coroutines \(not started\)\n    .* {re.escape(block('created'))}\n"
    dumps = []

    def are_told():
        result = ljspy.run("dump", "-p", nginx.worker)
        dumps.append(result.stdout)
        return result.returncode == ljspy.OK and re.search(waiting, result.stdout) and re.search(created, result.stdout)

    with concurrent.futures.ThreadPoolExecutor() as pool:
        requests = [pool.submit(nginx.get, "/parked") for _ in range(3)]
        assert ljspy.wait_until(are_told, seconds=3, pause=0.1), dumps
        assert [request.result() for request in requests] == [b"100\n"] * 3
