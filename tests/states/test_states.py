# SPDX-License-Identifier: MIT
"""Several Lua states in one process: each in a separate thread, one after the other
in one thread, and one within another. No stack has frames of another state."""

import collections
import pathlib
import re
import subprocess

import pytest

import ljspy
import stacks

pytestmark = pytest.mark.usefixtures("built")

THREADS, IN_TURN = 4, 20
LIMIT = ljspy.LIMIT_SECONDS  # of a target that has to share its CPUs
# By the line on which each begins.
FUNCTIONS = {6: "run", 7: "outer", 8: "middle"}
NESTED = ["outer_100", "cross", "middle_101", "cross_back", "run_100", "work_100"]


def compiled(name, directory):
    library = ljspy.PACKAGES / "libluajit-5.1-2/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2"
    include = ljspy.PACKAGES / "libluajit-5.1-dev/usr/include/luajit-2.1"
    subprocess.run(
        ["gcc", "-O2", "-D_GNU_SOURCE", "-pthread", f"-I{include}", pathlib.Path(__file__).parent / f"{name}.c"]
        + ["-o", directory / name, library, f"-Wl,-rpath,{library.parent}"],
        check=True,
    )
    return directory / name


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    return compiled("host", tmp_path_factory.mktemp("states"))


@pytest.fixture
def target(host, jit):
    with ljspy.Target([host, jit, LIMIT], limit=LIMIT).wait_ready() as target:
        yield target


def names(frames):
    """Names of the states' functions, also of those that C calls without a name, and of
    those that cross between the states."""
    found = []
    for frame in frames:
        if by_line := re.match(r"function <state_(\d+)\.lua:(\d)>", frame):
            found.append(f"{FUNCTIONS[int(by_line[2])]}_{by_line[1]}")
        elif by_name := re.match(r"(work_\d+|cross|cross_back) ", frame):
            if found[-1:] != [by_name[1]]:  # the native frame of a function that Lua calls comes, too
                found.append(by_name[1])
    return found


def is_legal(found):
    if found == NESTED[: len(found)]:
        return True
    numbers = {name.rpartition("_")[2] for name in found}
    return len(numbers) == 1 and [name.rpartition("_")[0] for name in found] in (["run"], ["run", "work"])


def test_states_are_told_apart(target, tmp_path, note_lost, request):
    recorder = ljspy.Recorder(tmp_path, "-p", target.pid, seconds=ljspy.RECORDING_SECONDS)
    recorder.end_after(target.pid, 4, elapsed=4)
    recorder.finish()
    recorded = ljspy.native_stacks(recorder)
    weights, wrong, seen = collections.Counter(), [], set()
    for frames, weight in recorded:
        if frames == [ljspy.UNSEEN]:  # ljspy read no stack
            continue
        lost = any(map(stacks.is_lost, frames))
        legal = is_legal(names(frames))
        weights["lost" if lost else "whole" if legal else "wrong"] += weight
        if not lost and not legal:
            wrong.append(";".join(frames))
        seen.update(names(frames))
    note_lost(request.node.name, len(recorded), weights)
    total = sum(weights.values())
    assert not wrong, wrong
    assert weights["lost"] <= stacks.LOST_SHARE_COMPILED * total
    assert {f"work_{i}" for i in range(THREADS)} | set(NESTED) <= seen
    assert sum(f"work_{i}" in seen for i in range(THREADS, THREADS + IN_TURN)) > IN_TURN / 2


def test_each_thread_is_shown_with_its_own_state(target):
    judged = collections.Counter()
    for _ in range(5):
        dump = ljspy.run("dump", "-p", target.pid).stdout
        for thread, text in re.findall(r'^Thread \d+ "(\S+)".*\n((?: .*\n)*)', dump, re.MULTILINE):
            found = names(line.strip() for line in reversed(text.splitlines()))
            numbers = {int(number) for number in re.findall(r"_(\d+)", " ".join(found))}
            if stacks.is_lost(text.strip()):
                continue
            judged[thread] += bool(numbers)
            if thread.startswith("lua-"):
                assert numbers <= {int(thread[4:])}, dump
            elif thread == "nested":
                assert found == NESTED[: len(found)], dump
            else:
                assert len(numbers) <= 1 and all(THREADS <= n < THREADS + IN_TURN for n in numbers), dump
    assert judged["nested"] and sum(count for thread, count in judged.items() if thread.startswith("lua-")), judged


def shows_calls(host, arguments, calls, directory):
    """Does a profile of this host have these calls, and no others in its script?"""
    script, found = f" {host}.lua", []
    with ljspy.Target([compiled(host, directory), *arguments, 50]).wait_ready() as target:
        for seconds in (1, 4, 10):  # the longer ones for a busy machine
            samples = ljspy.record(directory, "-p", target.pid, seconds=seconds).samples
            found += [[frame for frame in sample.frames if script in frame] for sample in samples]
            if calls in found:
                break
    return calls in found and all(frames == calls[: len(frames)] for frames in found)


@pytest.mark.parametrize("libraries", ["none", "some", "many"])
def test_state_without_the_standard_libraries(libraries, tmp_path):
    assert shows_calls("bare", [libraries], ["main chunk bare.lua", "run bare.lua:5", "work bare.lua:1"], tmp_path)


def test_state_with_an_allocator_of_its_own(tmp_path):
    calls = ["main chunk arena.lua", "run arena.lua:8", "work arena.lua:4"]
    assert shows_calls("arena", ["anonymous"], calls, tmp_path)


@pytest.mark.parametrize("memory", ["anonymous", "memfd"])
def test_state_is_found_where_the_allocator_put_it(memory, tmp_path):
    with ljspy.Target([compiled("arena", tmp_path), memory, 50]).wait_ready() as target:
        assert "  1 Lua state\n" in ljspy.run("info", "-p", target.pid).stdout
        assert ljspy.run("heap", "-p", target.pid).returncode == ljspy.OK


def test_traces_of_a_state_that_is_not_known_are_not_told_to_be_gone(tmp_path):
    """Shared memory is not searched for states: only threads that run show them."""
    with ljspy.Target([compiled("arena", tmp_path), "shared", 50]).wait_ready() as target:
        text = ljspy.run("traces", "-p", target.pid, "-d", "1s").stdout
    assert re.search(r", compiled \d|  compiled \d", text), text
    assert "  No Lua state is known in it, so its traces cannot be listed.\n" in text
    assert "not there any more" not in text


def test_nor_are_they_beside_a_state_that_is_known(tmp_path):
    with ljspy.Target([compiled("arena", tmp_path), "both", 50]).wait_ready() as target:
        text = ljspy.run("traces", "-p", target.pid, "-d", "2s").stdout
    assert re.search(r"^  [1-9][0-9.]* % in traces of Lua states that are not known in the end", text, re.MULTILINE), text
    assert "1  root" in text
    assert "not there any more" not in text


def test_a_private_memfd_is_not_called_shared(tmp_path):
    for memory, is_shared in [("memfd", False), ("shared", True)]:
        with ljspy.Target([compiled("arena", tmp_path), memory, 50]).wait_ready() as target:
            text = ljspy.run("memory", "-p", target.pid).stdout
        assert text.startswith("Process ")
        assert ("shared memory" in text) == is_shared, text
