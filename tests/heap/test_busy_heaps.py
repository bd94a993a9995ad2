# SPDX-License-Identifier: MIT
"""How long a busy process is held, and what becomes of its heap if that has a limit, grows meanwhile, or ends."""

import json
import os
import sys
import time

import pytest

import heaps
import ljspy

sys.path.append(str(ljspy.ROOT / "tests/busy"))

import gaps  # noqa: E402, pylint: disable=wrong-import-position

pytestmark = pytest.mark.usefixtures("built")

GROWING = heaps.HERE / "growing.lua"
GROWING_MB = 64
# `make heap-truth` looks more often.
LOOKS = int(os.environ.get("HEAP_LOOKS", "1"))
# No test here is about the time that a hold may take on a busy machine.
LONG_US = 20_000_000
SHORT_US = 1000
# Beside others, copying a large heap may take ljspy long. It holds nobody meanwhile.
PATIENCE_S = 200
# Without --max-pause.
LIMIT_MS = 100
ENDINGS = 4
NOTICES = 5
SPEED_MB = 16
MEGABYTES_MAX = 4000
MARGIN = 1.2
LARGE = "ffi = require('ffi') large = {{}} for i = 1, {megabytes} / 64 + 1 do large[i] = ffi.new('char[?]', 64 * 2^20) end"
BALLAST = "ballast = {{}} for i = 1, {megabytes} do ballast[i] = string.rep(string.char(i % 200 + 1), 2^20) .. i end"


def heap_json(pid, *options, through=()):
    done = ljspy.run("heap", "-p", pid, "-f", "json", "-o", "-", *options, through=through, timeout=PATIENCE_S)
    return done, json.loads(done.stdout)["processes"][0]["vms"][0] if done.returncode < 2 else None


@pytest.mark.parametrize("jit", ("on", "off"))
@pytest.mark.parametrize("build", heaps.BUILDS, ids=str)
def test_a_cache_that_grows_at_full_speed_is_read_right(build, jit):
    try:
        run = build.prepare()
    except heaps.builds.packages.Unavailable as error:
        pytest.skip(str(error))
    with ljspy.Target([*run.command, f"-j{jit}", GROWING, GROWING_MB], limit=60 + 5 * LOOKS) as target:
        target.wait_ready()
        for _ in range(LOOKS):
            heap = heaps.account(target.pid, LONG_US)
            print(f"{heap.total} bytes, attempt {heap.attempts}, {heap.method}")
            assert (heap.sum, heap.uncertain, heap.changed_pages) == (heap.total, 0, 0)


def test_what_does_not_fit_the_limit_is_compared(tmp_path):
    path = tmp_path / "graph"
    with ljspy.Target([ljspy.luajit("luajit"), heaps.GRAPH, "3", "500", path, "busy"]) as target:
        ljspy.wait_until(path.exists, seconds=30)
        heap = heaps.show(target.pid, SHORT_US)
    assert heap.method == "compared"
    assert heap.held_bytes < heap.total / 2 * heap.holds
    assert not heaps.wrong(heap, path.read_text(encoding="latin-1"))


def test_the_longest_hold_is_what_the_target_notices(tmp_path):
    """The target also notices what keeps a machine's CPU from it, so one look of some has to agree."""
    program = (ljspy.luajit("luajit"), "-e", BALLAST.format(megabytes=40), gaps.GAPS)
    looks = []
    with gaps.Gaps(tmp_path, program=program, calm=True) as target:
        for _ in range(NOTICES):
            target.take()
            _, heap = heap_json(target.pid, "--max-pause", "20s")
            looks.append((target.take(), heap["held"]["longest_us"] / 1000))
    # Both have a few microseconds at the ends that the other does not see.
    assert any(gaps.NOTED_MS < noticed_ms < longest_ms * 1.1 + 1 for noticed_ms, longest_ms in looks), looks


def measure(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def copied_megabytes_a_second():
    """How fast this machine copies memory at its best."""
    block = bytes(SPEED_MB << 20)
    copy = bytearray(block)
    return SPEED_MB / min(measure(lambda: copy.__setitem__(slice(None), block)) for _ in range(20))


def test_a_hold_that_would_be_long_is_refused(tmp_path):
    megabytes = int(copied_megabytes_a_second() * LIMIT_MS / 1000 * MARGIN)
    if megabytes > MEGABYTES_MAX:
        pytest.skip(f"{megabytes} MB can be copied in {LIMIT_MS} ms here")
    program = (ljspy.luajit("luajit"), "-e", LARGE.format(megabytes=megabytes), gaps.GAPS)
    with gaps.Gaps(tmp_path, program=program, calm=True) as target:
        done, _ = heap_json(target.pid, through=("taskset", "-c", "0"))
    assert done.returncode == 2, done.stderr
    assert "does not sleep, and copying its heap would hold it" in done.stderr
    assert "--max-pause" in done.stderr


@pytest.mark.parametrize("ending", ("exit", "exec"))
def test_a_process_that_ends_meanwhile_ends_the_capture(ending):
    for number in range(ENDINGS):
        with ljspy.Target([ljspy.luajit("luajit"), heaps.HERE / "ends.lua", ending, number * 0.1]) as target:
            target.wait_ready()
            done, heap = heap_json(target.pid, "--max-pause", "20s")
        assert done.returncode in (0, 2), done.stderr
        assert heap["difference"] == 0 if heap else done.stderr
