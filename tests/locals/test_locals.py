# SPDX-License-Identifier: MIT
"""ljspy dump --locals says what debug.getlocal and debug.getupvalue say."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import generate
import judge_locals
import ljspy

sys.path.append(str(pathlib.Path(__file__).parent.parent / "layouts"))
import arm64_core  # noqa: E402
import builds  # noqa: E402
import packages  # noqa: E402

pytestmark = pytest.mark.usefixtures("built")

HERE = pathlib.Path(__file__).parent

# Each of another GC mode, number mode or time: packages' names, and sources with other options.
PACKAGES = [build for build in builds.PROGRAMS
            if isinstance(build, builds.Program) and build.package in ("luajit", "luajit2")]
SOURCES = (builds.Source(*builds.FORK, "-DLUAJIT_NUMMODE=2 " + builds.NO_GC64),
           builds.Source(*builds.FORK, "-DLUAJIT_NUMMODE=2"), builds.Source(*builds.NEW, builds.NO_GC64))
BUILDS = [*PACKAGES, *(pytest.param(build, marks=pytest.mark.builds) for build in SOURCES)]
PROGRAMS = int(os.environ.get("LJSPY_LOCALS_PROGRAMS", "4"))


def start(build, path, jit="off", limit=ljspy.LIMIT_SECONDS):
    try:
        command = [ljspy.luajit(build)] if build in ljspy.RUNTIMES else build.prepare().command
    except packages.Unavailable as reason:
        pytest.skip(f"not to be had: {reason}")
    return ljspy.Target([*command, f"-j{jit}", HERE / "run.lua", path.name], cwd=path.parent, limit=limit)


LEAF = 4  # the line of the function that busy programs call


def judged(process, truth, file, strict=True):
    """The number of variables that are known, in all frames of the only thread."""
    (thread,) = process["threads"]
    frames = [f for f in judge_locals.lua_frames(thread, file) if f["firstline"] != LEAF]
    true = [f for f in truth if f[2].endswith(file)]
    assert len(frames) == len(true) > 0, ([f["label"] for f in thread["frames"]], true)
    return sum(judge_locals.compare(frame, frame_truth, strict) for frame, frame_truth in zip(frames, true))


def write_program(path, seed, busy=False):
    path.write_text(generate.program(seed, busy))
    return path


@pytest.mark.parametrize("build", BUILDS, ids=str)
def test_random_programs(build, tmp_path):
    known = 0
    for seed in range(PROGRAMS):
        path = write_program(tmp_path / f"p{seed}.lua", f"{build}{seed}")
        with start(build, path) as target:
            truth = judge_locals.parse_truth(target.read_until(b"ready\n", seconds=ljspy.READY_SECONDS))
            known += judged(judge_locals.dump("-p", target.pid), truth, path.name)
    assert known > 10 * PROGRAMS


@pytest.mark.parametrize("build", BUILDS, ids=str)
def test_random_busy_programs(build, jit, tmp_path):
    """A busy program is held anywhere. In compiled code values may be unknown, but not wrong."""
    known = innermost = compiled = lost = 0
    # Between compiled code and the interpreter, part of a stack may be unknown.
    statuses = (ljspy.OK, ljspy.WITH_ERRORS) if jit == "on" else (ljspy.OK,)
    for seed in range(PROGRAMS):
        path = write_program(tmp_path / f"p{seed}.lua", f"{build}{jit}{seed}", busy=True)
        with start(build, path, jit) as target:
            truth = judge_locals.parse_truth(target.read_until(b"ready\n", seconds=ljspy.READY_SECONDS))
            for worked_ns in (5e7, 1e6, 1e6, 1e6, 1e6):
                # Elsewhere than before, and compiled by then.
                enough = ljspy.cpu_ns(target.pid) + worked_ns
                assert ljspy.wait_until(lambda: ljspy.cpu_ns(target.pid) >= enough)
                process = judge_locals.dump("-p", target.pid, statuses=statuses)
                if any(frame["kind"] == "lost" for frame in process["threads"][0]["frames"]):
                    lost += 1
                    continue
                known += judged(process, truth, path.name, strict=jit == "off")
                top = judge_locals.lua_frames(process["threads"][0], path.name)[0]
                compiled += top["compiled"]
                innermost += sum(v["value"] is not None for v in top["variables"])
    assert known > 20 * PROGRAMS and innermost > PROGRAMS
    assert (compiled > 0) == (jit == "on")
    assert lost <= PROGRAMS * 5 * 0.1


def test_without_the_option_there_are_no_values(tmp_path):
    with start("luajit", write_program(tmp_path / "p.lua", "off")) as target:
        target.wait_ready()
        text = ljspy.run("dump", "-p", target.pid)
        process = json.loads(ljspy.run("dump", "-p", target.pid, "--json").stdout)["processes"][0]
        wanted = ljspy.run("dump", "-p", target.pid, "--locals").stdout
    assert " local " in wanted and " upvalue " in wanted
    assert " local " not in text.stdout and " upvalue " not in text.stdout
    assert not any("variables" in frame for frame in process["threads"][0]["frames"])


def test_parked_coroutines(runtime, tmp_path):
    """Each coroutine shows its own values."""
    path = tmp_path / "parked.lua"
    path.write_text("""
        local truth = require("truth")
        local kept = {}
        for i = 1, 100 do
          kept[i] = coroutine.create(function(number, ...)
            local name, list = "coroutine " .. number, { number, ... }
            coroutine.yield(name)
            return name, list
          end)
          coroutine.resume(kept[i], i, i / 3, nil, "last")
        end
        truth.park()
    """)
    with start(runtime, path) as target:
        target.wait_ready()
        (vm,) = judge_locals.dump("-p", target.pid)["vms"]
    parked = [group for group in vm["groups"] if group["state"] == "suspended"]
    assert sum(group["count"] for group in parked) == len(parked) == 100
    numbers = set()
    for group in parked:
        (frame,) = [f for f in group["frames"] if f["kind"] == "lua"]
        values = {v["name"] or v["index"]: v["value"] for v in frame["variables"]}
        number = values["number"]
        numbers.add(number)
        assert values["name"] == f'"coroutine {number}"'
        assert re.fullmatch(rf"table: 0x[0-9a-f]+ \(3 entries\) {{\[1\] = {number}, .*}}", values["list"])
        assert values[1].startswith(f"{int(number) / 3:.14g}"[:10]) and (values[2], values[3]) == ("nil", '"last"')
    assert len(numbers) == 100


def test_stripped_bytecode_has_numbers_for_names(runtime, tmp_path):
    path = tmp_path / "stripped.lua"
    path.write_text("""
        local truth = require("truth")
        local function source(a, b) local c = a .. b; coroutine.yield(c) return c, a, b end
        local co = coroutine.create(loadstring(string.dump(source, true)))
        coroutine.resume(co, "one", "two")
        truth.park()
    """)
    with start(runtime, path) as target:
        target.wait_ready()
        (vm,) = judge_locals.dump("-p", target.pid)["vms"]
    (group,) = [group for group in vm["groups"] if group["state"] == "suspended"]
    (frame,) = [f for f in group["frames"] if f["kind"] == "lua"]
    found = [(v["kind"], v["index"], v["name"], v["value"]) for v in frame["variables"]]
    assert found[:3] == [("argument", 0, None, '"one"'), ("argument", 1, None, '"two"'), ("slot", 2, None, '"onetwo"')]


def test_a_core_has_the_values(runtime, tmp_path):
    if not shutil.which("gcore"):
        pytest.skip("gdb's gcore is not installed")
    path = write_program(tmp_path / "p.lua", f"core {runtime}")
    with start(runtime, path) as target:
        truth = judge_locals.parse_truth(target.read_until(b"ready\n", seconds=ljspy.READY_SECONDS))
        live = judge_locals.dump("-p", target.pid)
        subprocess.run(["gcore", "-o", tmp_path / "core", str(target.pid)], capture_output=True, timeout=60, check=True)
    core = judge_locals.dump("--core", tmp_path / f"core.{target.pid}")
    assert judged(core, truth, path.name) == judged(live, truth, path.name) > 5


def test_arm64_cores_have_the_values(tmp_path):
    path = write_program(tmp_path / "p.lua", "arm64")
    try:
        process = arm64_core.Emulated("bookworm", tmp_path, HERE / "run.lua", path.name, cwd=tmp_path)
    except packages.Unavailable as reason:
        pytest.skip(f"not to be had: {reason}")
    with process:
        truth = judge_locals.parse_truth(process.said)
        assert ljspy.wait_until(lambda: ljspy.status_field(process.target.pid, "State") == "S")
        core = process.core()
    assert judged(judge_locals.dump("--core", core), truth, path.name) > 5
