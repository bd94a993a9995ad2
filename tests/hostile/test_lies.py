# SPDX-License-Identifier: MIT
"""ljspy profiles or refuses a process that lies on purpose about names, sizes and
addresses. It does not crash, hang or use unbounded memory, and it escapes all of the
target's bytes in every output. See lies.lua."""

import gzip
import json
import pathlib
import subprocess

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

HERE = pathlib.Path(__file__).resolve().parent
FORMATS = ("svg", "html", "folded", "speedscope", "firefox", "pprof", "callgrind", "perf", "json")
# Of the engine. It keeps at most some tens of megabytes of a target's memory.
MEMORY_MAX_KB = 400 * 1024


@pytest.fixture
def liar(runtime):
    with ljspy.Target([ljspy.luajit(runtime), HERE / "lies.lua", 50]) as target:
        yield target.wait_ready()


def is_clean(text):
    return all(c.isprintable() or c in "\n\t\u00a0\u2009" for c in set(text))


def test_every_format_is_whole(liar, tmp_path):
    recording = tmp_path / "liar.ljspy"
    recorded = ljspy.run("record", "-p", liar.pid, "-d", "2s", "-r", "1000", "-o", recording)
    assert recorded.returncode == ljspy.WITH_ERRORS, recorded.stderr
    assert is_clean(recorded.stdout + recorded.stderr)
    for name in FORMATS:
        made = tmp_path / f"made.{name}"
        result = ljspy.run("report", recording, "-f", name, "--lines", "-o", made)
        assert result.returncode == ljspy.OK, result.stderr
        text = gzip.decompress(made.read_bytes()) if name == "pprof" else made.read_bytes()
        assert text
        if name == "pprof":
            continue
        text = text.decode()	# everything is UTF-8
        assert is_clean(text), name
        if name in ("speedscope", "firefox", "json"):
            json.loads(text)
        if name in ("svg", "html"):
            assert text.count("<script") == text.count("</script") == 1
        if name == "svg":
            subprocess.run(["xmllint", "--noout", "--huge", made], check=True, timeout=60)
        if name == "folded":
            assert all(line.rsplit(" ", 1)[1].isdigit() for line in text.splitlines())
            assert max(map(len, text.splitlines())) < 10000
    report = ljspy.run("report", recording)
    assert report.returncode == ljspy.OK and is_clean(report.stdout + report.stderr)


def test_what_its_objects_do_not_confirm_is_lost_and_said_so(liar, tmp_path):
    recorder = ljspy.Recorder(tmp_path, "-p", liar.pid, seconds=ljspy.RECORDING_SECONDS, rate=1000)
    recorder.end_after(liar.pid, 0.5)  # it takes a number of holds until ljspy gives the layout up
    recording = recorder.finish(ljspy.WITH_ERRORS)
    lost, samples = recording.stats["lost"], recording.stats["samples"]
    # Beside others, ljspy may come too late for some.
    unseen = sum(lost.get(reason, 0) for reason in ("thread asleep when sampled", "process not yet noticed"))
    assert lost["layout not confirmed"] + unseen == samples > 10 * unseen


def test_info_says_which_objects_do_not_confirm_the_layout(liar):
    told = ljspy.run("info", "-p", liar.pid).stdout
    assert "the objects of its Lua state have not confirmed it so far: objects: GC" in told, told


def test_every_coroutine_is_told_or_lost(liar):
    text = ljspy.run("dump", "-p", liar.pid)
    assert text.returncode in (ljspy.OK, 1), text.stderr
    assert is_clean(text.stdout + text.stderr)
    assert "[lost" in text.stdout
    document = ljspy.run("dump", "--json", "-p", liar.pid)
    assert document.returncode in (ljspy.OK, 1), document.stderr
    assert is_clean(document.stdout)
    assert json.loads(document.stdout)["processes"]
    assert is_clean(ljspy.run("info", "-p", liar.pid).stdout)


def test_memory_is_bounded(liar, tmp_path):
    """ljspy neither reads four gigabytes nor allocates memory for them."""
    meter = tmp_path / "meter"
    result = ljspy.run("record", "-p", liar.pid, "-d", "1s", "-r", ljspy.HIGH_RATE, "-o", tmp_path / "out.svg",
                       through=("/usr/bin/python3", "-c", METER, meter))
    # It takes a number of holds until ljspy gives the layout up: on a busy machine there may be fewer.
    assert result.returncode in (ljspy.OK, ljspy.WITH_ERRORS), result.stderr
    assert (tmp_path / "out.svg").stat().st_size > 0
    assert int(meter.read_text()) < MEMORY_MAX_KB


METER = """
import os, resource, sys
status = os.spawnv(os.P_WAIT, sys.argv[2], sys.argv[2:])
open(sys.argv[1], "w").write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(status)
"""
