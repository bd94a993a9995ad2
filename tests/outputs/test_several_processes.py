# SPDX-License-Identifier: MIT
"""Commands that look at several processes tell which ones they leave out, and look at the others: then the exit status
is 1, and 2 if none could be looked at."""

import contextlib
import os
import re
import signal
import subprocess

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

NO_PROCESS = 2 ** 22 - 1


@pytest.fixture(scope="module")
def good():
    with ljspy.busy(limit=200) as target:
        yield target.pid


@pytest.fixture(scope="module")
def other():
    """A process without LuaJIT."""
    with ljspy.Target(["sleep", "200"], limit=200) as target:
        yield target.pid


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    """Two busy processes that another ljspy samples."""
    with ljspy.busy(limit=200) as first, ljspy.busy(limit=200) as second:
        recorder = ljspy.Recorder(tmp_path_factory.mktemp("traced"), "-p", f"{first.pid},{second.pid}", seconds=150)
        for target in (first, second):
            ljspy.wait_traced(target.pid)
        yield first.pid, second.pid
        recorder.process.send_signal(signal.SIGINT)
        recorder.finish()


@pytest.mark.parametrize("command", ["heap", "dump", "dump --json", "info"])
def test_what_was_looked_at_counts(command, good, other):
    for pids in [(good, NO_PROCESS), (NO_PROCESS, good), (good, other), (other, good)]:
        result = ljspy.run(*command.split(), "-p", ",".join(map(str, pids)))
        assert result.returncode == ljspy.WITH_ERRORS, (pids, result.stderr)
        assert str(good) in result.stdout and "rocess" in result.stderr
    for pids in [(other,), (NO_PROCESS,), (other, NO_PROCESS), (NO_PROCESS, other)]:
        result = ljspy.run(*command.split(), "-p", ",".join(map(str, pids)))
        assert result.returncode == ljspy.NOTHING_PROFILED, (pids, result.stderr)
    assert ljspy.run(*command.split(), "-p", good).returncode == ljspy.OK


@pytest.mark.parametrize("command", ["record -d 500ms -f text -o -", "check -d 500ms", "traces -d 500ms"])
def test_those_that_can_be_sampled_are(command, good, other):
    for pids, left_out in [((good, NO_PROCESS), NO_PROCESS), ((NO_PROCESS, good), NO_PROCESS),
                           ((good, other), other), ((other, good), other)]:
        result = ljspy.run(*command.split(), "-p", ",".join(map(str, pids)))
        assert result.returncode == ljspy.WITH_ERRORS, (pids, result.stderr)
        assert f"pid {good}" in result.stdout or f"Process {good}" in result.stdout or "main chunk" in result.stdout
        assert re.search(rf"rocess {left_out}( does not run LuaJIT|\.)", result.stderr), result.stderr
        assert not re.search(rf"(pid|Process) {left_out}\b", result.stdout)
    for pids in [(other,), (NO_PROCESS,), (other, NO_PROCESS), (NO_PROCESS, other)]:
        result = ljspy.run(*command.split(), "-p", ",".join(map(str, pids)))
        assert result.returncode == ljspy.NOTHING_PROFILED, (pids, result.stderr)


def test_the_title_does_not_tell_of_one_alone(good):
    with ljspy.busy() as second:
        for pids, others in ([good], ""), ([good, second.pid], " and 1 other process asked for"):
            result = ljspy.run("record", "-d", "300ms", "-f", "text", "-o", "-", "-p", ",".join(map(str, pids)))
            assert result.returncode == ljspy.OK, result.stderr
            title = result.stdout.splitlines()[0]
            assert title.startswith("CPU time of ") and (others in title) and (" other process" in title) == bool(others), title


def test_memory_can_be_told_of_those_that_are_there(good, other):
    for pids in [(good, NO_PROCESS), (NO_PROCESS, other)]:
        result = ljspy.run("memory", "-p", ",".join(map(str, pids)))
        assert result.returncode == ljspy.WITH_ERRORS, result.stderr
        assert result.stdout.startswith("Process ") and f"no process {NO_PROCESS}" in result.stderr


def test_a_tree_without_its_root_is_missed(tmp_path, good):
    result = ljspy.run("record", "-d", "500ms", "-o", tmp_path / "x.svg", "--tree", f"{NO_PROCESS},{good}")
    assert result.returncode == ljspy.WITH_ERRORS
    assert f"no process {NO_PROCESS}" in result.stderr and "Wrote" in result.stderr


def test_a_process_that_is_traced_is_left_out(tmp_path, good):
    with ljspy.busy() as target:
        recorder = ljspy.Recorder(tmp_path, "-p", target.pid, seconds=50)
        ljspy.wait_traced(target.pid)
        result = ljspy.run("record", "-d", "500ms", "-o", tmp_path / "x.svg", "-p", f"{target.pid},{good}")
        recorder.process.send_signal(signal.SIGINT)
        recorder.finish()
    assert result.returncode == ljspy.WITH_ERRORS
    assert f"Process {target.pid} " in result.stderr and "traced by process" in result.stderr
    assert "Wrote" in result.stderr


@pytest.mark.parametrize("command", ["serve --listen 127.0.0.1:0", "record --every 1h", "record -d 60s"])
def test_who_is_left_out_is_told_at_once(tmp_path, good, other, traced, command):
    """And not again in the end."""
    path = tmp_path / ("x.ljspy" if "-d" in command else "archive")
    argv = [*command.split(), *([] if "serve" in command else ["-o", path]), "-p", f"{good},{other},{traced[0]}"]
    errors = tmp_path / "errors"
    with errors.open("w") as file, subprocess.Popen([ljspy.LJSPY, *map(str, argv)], stdout=file, stderr=file) as run:
        told = ljspy.wait_until(lambda: "2 of the processes cannot be sampled" in errors.read_text())
        run.send_signal(signal.SIGINT)
        run.wait(timeout=60)
    text = errors.read_text()
    assert told and run.returncode == ljspy.WITH_ERRORS, text
    assert text.count(f"Process {other} does not run LuaJIT") == 1
    assert len(re.findall(rf"Process {traced[0]} .*traced by process", text)) == 1
    assert "2 processes were left out" in text


def test_a_root_that_is_traced_is_told_at_once(tmp_path, good, traced):
    errors = tmp_path / "errors"
    argv = [ljspy.LJSPY, "record", "--every", "1h", "-o", tmp_path / "archive", "--tree", f"{traced[0]},{good}"]
    with errors.open("w") as file, subprocess.Popen([*map(str, argv)], stderr=file) as run:
        told = ljspy.wait_until(lambda: "1 of the processes cannot be sampled" in errors.read_text())
        run.send_signal(signal.SIGINT)
        run.wait(timeout=60)
    text = errors.read_text()
    assert told and run.returncode == ljspy.WITH_ERRORS, text
    assert len(re.findall(rf"Process {traced[0]} .*traced by process", text)) == 1
    assert "left out" in text


def test_of_many_that_are_left_out_some_are_named(good):
    with contextlib.ExitStack() as stack:
        pids = [stack.enter_context(ljspy.Target(["sleep", "60"])).pid for _ in range(10)]
        result = ljspy.run("record", "-d", "500ms", "-f", "text", "-o", "-", "-p", ",".join(map(str, [good, *pids])))
    assert result.returncode == ljspy.WITH_ERRORS
    assert result.stderr.count("does not run LuaJIT") == 8
    assert "10 of the processes cannot be sampled, or not yet." in result.stderr
    assert f"10 processes were left out, process {pids[0]} among them." in result.stderr


@pytest.mark.parametrize("command", ["traces", "traces --json", "traces --bytecode heavy"])
def test_where_none_is_there_in_the_end_nothing_is_printed(command):
    with ljspy.busy() as first, ljspy.busy() as second:
        with subprocess.Popen([ljspy.LJSPY, *command.split(), "-d", "50s", "-p", f"{first.pid},{second.pid}"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as traces:
            for target in (first, second):
                ljspy.wait_traced(target.pid)
            for target in (first, second):
                target.stop()
            out, err = traces.communicate(timeout=60)
    assert traces.returncode == ljspy.NOTHING_PROFILED
    assert out == "" and "rocess" in err


def test_a_profile_bears_the_name_of_one_that_is_in_it(tmp_path, other, traced):
    with ljspy.busy("local in_the_profile") as target:
        for left_out in (other, traced[0]):
            result = ljspy.run("record", "-d", "500ms", "-p", f"{left_out},{target.pid}", cwd=tmp_path)
            written = re.search(r"Wrote (ljspy-luajit-\S+\.svg)", result.stderr)
            assert written, result.stderr
            text = (tmp_path / written[1]).read_text()
            assert "in_the_profile" in text and "sleep 200" not in text


def test_however_many_are_stopped_none_is_called_idle(tmp_path):
    with contextlib.ExitStack() as stack:
        pids = [stack.enter_context(ljspy.busy()).pid for _ in range(10)]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        for pid in pids:
            assert ljspy.wait_until(lambda p=pid: ljspy.status_field(p, "State").startswith("T"))
        listed = ",".join(map(str, pids))
        record = ljspy.run("record", "-d", "500ms", "-o", tmp_path / "x.svg", "-p", listed)
        check = ljspy.run("check", "-d", "500ms", "-p", listed)
    assert record.returncode == ljspy.NOTHING_PROFILED
    assert record.stderr.count("is stopped, as by") == 8 and "There is no sample: the same goes for 2 more." in record.stderr
    assert all(f"it was stopped, as by SIGSTOP or Ctrl-Z (kill -CONT {pid})" in check.stdout for pid in pids)


@pytest.mark.parametrize("command", ["record -f text -o -", "check", "traces", "serve --listen 127.0.0.1:0"])
def test_where_none_can_be_sampled_ljspy_ends_at_once(traced, other, command):
    """It would wait without an end: no time is given."""
    for pids in [traced, (traced[0], other), (other, traced[1])]:
        result = ljspy.run(*command.split(), "-p", ",".join(map(str, pids)))
        assert result.returncode == ljspy.NOTHING_PROFILED, (pids, result.stderr)
        assert "traced by process" in result.stderr and "idle" not in result.stderr
        assert result.stdout == ""
