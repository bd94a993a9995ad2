# SPDX-License-Identifier: MIT
"""ljspy dump --core shows of a core file what ljspy dump shows of the process."""

import json
import os
import pathlib
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys

import pytest

import ljspy
import stacks

pytestmark = pytest.mark.usefixtures("built")

PARKED = ljspy.ROOT / "tests/runtimes/parked.lua"


def gcore(directory, pid):
    if not shutil.which("gcore"):
        pytest.skip("gdb's gcore is not installed")
    argv = ["gcore", "-o", directory / "core", str(pid)]
    result = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    return directory / f"core.{pid}"


def dump(*target):
    result = ljspy.run("dump", *target, "--json")
    assert result.returncode == ljspy.OK, result.stderr
    (process,) = json.loads(result.stdout)["processes"]
    return process


def stack_of(thread):
    return [frame["label"] for frame in thread["frames"]]


@pytest.fixture
def parked(runtime):
    with ljspy.Target([ljspy.luajit(runtime), PARKED, "idle"]) as target:
        yield target.wait_ready()


def test_a_core_says_what_the_process_says(parked, tmp_path):
    live, core = dump("-p", parked.pid), dump("--core", gcore(tmp_path, parked.pid))
    assert core["pid"] == parked.pid
    assert core["name"] == "luajit"
    assert [stack_of(thread) for thread in core["threads"]] == [stack_of(thread) for thread in live["threads"]]
    assert [thread["tid"] for thread in core["threads"]] == [parked.pid]
    assert core["vms"] == live["vms"]
    assert core["vms"][0]["coroutines"]["suspended"] == 10000


def judge(program, process):
    """The verdict on the only thread of a process that spins in a program."""
    (thread,) = process["threads"]
    frames = list(reversed(stack_of(thread)))
    assert frames[0].startswith(f"main chunk {program.name}.lua:"), frames
    assert not any(frame.startswith("[lost") for frame in frames), frames
    lines = len(program.source.splitlines())
    for frame in frames:
        if f" {program.name}.lua:" in frame:
            assert 1 <= int(frame.rpartition(":")[2]) <= lines, frames


def program_named(name):
    return {program.name: program for program in stacks.all_programs()}[name]


def test_gcore_of_a_busy_program(runtime, jit, tmp_path):
    with ljspy.program(runtime, "shares", jit) as target:
        judge(program_named("shares"), dump("--core", gcore(tmp_path, target.pid)))


def kernel_core_path(directory, pid):
    """The path to which the kernel writes the core of a process that runs in the directory."""
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if pattern.startswith("|") or "/" in pattern or "%" in pattern.replace("%p", ""):
        pytest.skip(f"the kernel does not put cores where they can be found: core_pattern is {pattern}")
    uses_pid = pathlib.Path("/proc/sys/kernel/core_uses_pid").read_text().strip() == "1"
    name = pattern.replace("%p", str(pid))
    return directory / (f"{name}.{pid}" if uses_pid and "%p" not in pattern else name)


def test_kernel_core(runtime, jit, tmp_path):
    if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
        pytest.skip("the hard limit on the size of cores is 0")
    program = program_named("shares")
    shutil.copy(stacks.PROGRAMS / "shares.lua", tmp_path)
    shutil.copy(stacks.PROGRAMS / "harness.lua", tmp_path)
    with ljspy.Target([ljspy.luajit(runtime), "shares.lua", jit, 50], cwd=tmp_path) as target:
        path = kernel_core_path(tmp_path, target.pid)
        hard = resource.prlimit(target.pid, resource.RLIMIT_CORE)[1]
        resource.prlimit(target.pid, resource.RLIMIT_CORE, (hard, hard))
        target.wait_ready()
        os.kill(target.pid, signal.SIGABRT)
        target.process.wait(timeout=20)
        judge(program, dump("--core", path))


def test_without_its_program_file_a_core_tells_what_it_can(runtime, tmp_path):
    program = tmp_path / "luajit"
    shutil.copy(ljspy.luajit(runtime), program)
    with ljspy.Target([program, PARKED, "idle"]) as target:
        target.wait_ready()
        core = gcore(tmp_path, target.pid)
    assert dump("--core", core)["vms"]
    program.write_bytes(pathlib.Path(sys.executable).read_bytes())
    result = ljspy.run("dump", "--core", core)
    assert result.returncode == ljspy.WITH_ERRORS
    assert "not here as they were" in result.stderr
    program.unlink()
    assert ljspy.run("dump", "--core", core).returncode == ljspy.WITH_ERRORS


@pytest.fixture(scope="module")
def core(tmp_path_factory, packages):
    """A small core that contains coroutines."""
    script = "local co = coroutine.create(function() coroutine.yield() end) coroutine.resume(co) "
    script += "print('ready') io.stdout:flush() io.read()"
    with ljspy.Target([ljspy.luajit("luajit"), "-e", script]) as target:
        target.wait_ready()
        return gcore(tmp_path_factory.mktemp("core"), target.pid)


def says_why(path, text):
    result = ljspy.run("dump", "--core", path)
    assert result.returncode == ljspy.NOTHING_PROFILED
    assert text in result.stderr
    assert str(path) in result.stderr
    assert not result.stdout
    for command in (("dump", "--json"), ("traces", "--show", "1", "--json"), ("heap", "-f", "json")):
        as_json = ljspy.run(*command, "--core", path)
        assert as_json.returncode == ljspy.NOTHING_PROFILED and as_json.stderr == result.stderr
        assert not as_json.stdout


def test_cut_short(core, tmp_path):
    data = core.read_bytes()
    cut = tmp_path / "cut"
    for length in (0, 10, 63, 64, 100, 1000, len(data) // 2):
        cut.write_bytes(data[:length])
        says_why(cut, "cut short" if length >= 64 else "too short")


def test_what_is_no_core(tmp_path):
    text = tmp_path / "text"
    text.write_text("no core " * 100)
    says_why(text, "is not an ELF file")
    says_why(ljspy.LJSPY, "no core file")
    says_why(tmp_path, "is not a regular file")
    says_why(tmp_path / "missing", "No such file")


@pytest.mark.parametrize("tool", ["zstd", "lz4", "xz", "gzip"])
def test_a_compressed_core_is_told(core, tmp_path, tool):
    """As systemd-coredump keeps cores."""
    if not shutil.which(tool):
        pytest.skip(f"{tool} is not installed")
    packed = tmp_path / "packed"
    with packed.open("wb") as out:
        subprocess.run([tool, "-c"], stdin=core.open("rb"), stdout=out, check=True, timeout=60)
    says_why(packed, f"unpack it by {tool} -d")


def test_a_core_of_another_machine(core, tmp_path):
    data = bytearray(core.read_bytes())
    struct.pack_into("<H", data, 18, 243)  # EM_RISCV
    other = tmp_path / "other"
    other.write_bytes(data)
    says_why(other, "machine that is not supported")
    for command in (("heap",), ("traces", "--show", "1")):
        result = ljspy.run(*command, "--core", other)
        assert result.returncode == ljspy.NOTHING_PROFILED and not result.stdout
        assert result.stderr == f"ljspy: {other} is a core file of a machine that is not supported.\n"


@pytest.mark.slow
def test_damaged_cores_do_no_harm(core, tmp_path):
    """ljspy ends by itself, and soon, whatever a core contains."""
    data, damaged = core.read_bytes(), tmp_path / "damaged"
    notes = 64 + 56 * struct.unpack_from("<H", data, 56)[0]
    chance = random.Random(1)
    whole = 0
    for _ in range(25):
        copy = bytearray(data)
        for _ in range(chance.choice((1, 10, 1000))):
            # Headers and notes; anything.
            at = chance.randrange(20, min(notes + 8192, len(copy)) if chance.random() < 0.5 else len(copy))
            copy[at] = chance.choice((0, 1, 0x7F, 0xFF, chance.randrange(256)))
        damaged.write_bytes(copy)
        result = ljspy.run("dump", "--core", damaged, timeout=60)
        assert result.returncode in (ljspy.OK, ljspy.WITH_ERRORS, ljspy.NOTHING_PROFILED)
        assert result.stdout or result.stderr
        whole += bool(ljspy.parse_dump(result.stdout))
    assert whole > 0
