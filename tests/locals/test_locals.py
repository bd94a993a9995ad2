# SPDX-License-Identifier: MIT
"""ljspy dump --locals says what debug.getlocal and debug.getupvalue say."""

import os
import pathlib
import time

import pytest

import generate
import judge
import ljspy

pytestmark = pytest.mark.usefixtures("built")

HERE = pathlib.Path(__file__).parent

# Each of another GC mode, number mode or time; the packages' names.
BUILDS = ("luajit", "luajit2", "bookworm/luajit", "bookworm/luajit2", "bullseye/luajit")
PROGRAMS = int(os.environ.get("LJSPY_LOCALS_PROGRAMS", "6"))


def start(build, path, jit="off", limit=60):
    argv = [ljspy.PACKAGES / build / "usr/bin/luajit", f"-j{jit}", HERE / "run.lua", path.name]
    return ljspy.Target(argv, cwd=path.parent, limit=limit)


LEAF = 4  # the line of the function that busy programs call


def judged(process, truth, file, strict=True):
    """The number of variables that are known, in all frames of the only thread."""
    (thread,) = process["threads"]
    frames = [f for f in judge.lua_frames(thread, file) if f["firstline"] != LEAF]
    true = [f for f in truth if f[2].endswith(file)]
    assert len(frames) == len(true) > 0, ([f["label"] for f in thread["frames"]], true)
    return sum(judge.compare(frame, frame_truth, strict) for frame, frame_truth in zip(frames, true))


def write_program(path, seed, busy=False):
    path.write_text(generate.program(seed, busy))
    return path


@pytest.mark.parametrize("build", BUILDS)
def test_random_programs(build, tmp_path):
    known = 0
    for seed in range(PROGRAMS):
        path = write_program(tmp_path / f"p{seed}.lua", f"{build}{seed}")
        with start(build, path) as target:
            truth = judge.parse_truth(target.read_until(b"ready\n", seconds=ljspy.READY_SECONDS))
            known += judged(judge.dump("-p", target.pid), truth, path.name)
    assert known > 10 * PROGRAMS


def test_random_busy_programs(runtime, jit, tmp_path):
    """A busy program is held anywhere. In compiled code values may be unknown, but not wrong."""
    known = innermost = compiled = 0
    for seed in range(PROGRAMS):
        path = write_program(tmp_path / f"p{seed}.lua", f"{runtime}{jit}{seed}", busy=True)
        with start(runtime, path, jit) as target:
            truth = judge.parse_truth(target.read_until(b"ready\n", seconds=ljspy.READY_SECONDS))
            time.sleep(0.1)
            for _ in range(5):
                process = judge.dump("-p", target.pid)
                known += judged(process, truth, path.name, strict=jit == "off")
                top = judge.lua_frames(process["threads"][0], path.name)[0]
                compiled += top["compiled"]
                innermost += sum(v["value"] is not None for v in top["variables"])
    assert known > 20 * PROGRAMS and innermost > PROGRAMS
    assert (compiled > 0) == (jit == "on")
