# SPDX-License-Identifier: MIT
"""`ljspy memory` of processes with several VMs, with allocators other than glibc's, and of real programs."""

import os
import pathlib
import subprocess
import sys

import pytest

import ljspy
from test_footprint import KIB, MIB, judge_sum, memory, rss_of

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / name) for name in ("layouts", "neovim")]

import builds  # noqa: E402
import packages  # noqa: E402
import test_neovim  # noqa: E402

pytestmark = pytest.mark.usefixtures("built")

VMS, MIB_EACH = 3, 6
INCLUDE = ljspy.PACKAGES / "libluajit-5.1-dev/usr/include/luajit-2.1"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    library = ljspy.PACKAGES / "libluajit-5.1-2/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2"
    made = tmp_path_factory.mktemp("vms") / "vms"
    subprocess.run(["gcc", "-O1", "-pthread", f"-I{INCLUDE}", HERE / "vms.c", "-o", made, library,
                    f"-Wl,-rpath,{library.parent}"], check=True)
    return made


@pytest.fixture(scope="module")
def static_program(tmp_path_factory):
    """The same with musl instead of glibc, in one file."""
    musl = unpacked("musl-dev") / "usr"
    made = tmp_path_factory.mktemp("vms") / "vms"
    library, gcc = musl / "lib/x86_64-linux-musl", ["gcc", "-nostdinc", "-fno-stack-protector", "-U_FORTIFY_SOURCE"]
    own = subprocess.run(["gcc", "-print-file-name=include"], capture_output=True, text=True, check=True).stdout.strip()
    subprocess.run([*gcc, "-O1", "-D_GNU_SOURCE", "-isystem", musl / "include/x86_64-linux-musl", "-isystem", own, f"-I{INCLUDE}",
                    "-c", HERE / "vms.c", "-o", f"{made}.o"], check=True)
    subprocess.run(["gcc", "-static", "-nostdlib", "-nostartfiles", "-no-pie", library / "crt1.o", library / "crti.o", f"{made}.o",
                    ljspy.PACKAGES / "libluajit-5.1-dev/usr/lib/x86_64-linux-gnu/libluajit-5.1.a", "-Wl,--start-group",
                    library / "libc.a", "-lgcc", "-lgcc_eh", "-Wl,--end-group,--eh-frame-hdr", library / "crtn.o", "-o", made],
                   check=True)
    return made


def unpacked(package):
    try:
        return packages.tree("bookworm", package)
    except packages.Unavailable as reason:
        return pytest.skip(f"not to be had: {reason}")


def judge_vms(target):
    """Each VM has its own rows. Returns the report."""
    told = sorted(int(line.split()[1]) for line in target.read_until(b"ready\n", seconds=30).splitlines() if line.startswith("vm "))
    assert len(told) == VMS
    process = memory(target.pid)
    judge_sum(process)
    assert sorted(vm["gc_total_bytes"] for vm in process["vms"]) == pytest.approx(told, abs=64 * KIB)
    assert len({vm["g"] for vm in process["vms"]}) == VMS
    assert all(vm["allocator"] == "lj_alloc" for vm in process["vms"])
    for vm in process["vms"]:
        heap = sum(row["rss_bytes"] for row in process["rows"] if row["vm"] == vm["g"] and row["kind"] == "lua_heap")
        assert vm["gc_total_bytes"] - 2 * MIB < heap < 1.1 * vm["gc_total_bytes"]
    return process


def test_several_vms(program):
    with ljspy.Target([program, VMS, MIB_EACH]) as target:
        process = judge_vms(target)
    assert process["malloc"]["library"] == "glibc"
    assert rss_of(process, "malloc", "malloc_free") > MIB_EACH * MIB
    assert rss_of(process, "anonymous") < 256 * KIB


def test_jemalloc(program):
    root = unpacked("libjemalloc2")
    (library,) = root.glob("usr/lib/*/libjemalloc.so.2")
    environment = os.environ | {"LD_PRELOAD": str(library), "LD_LIBRARY_PATH": str(library.parent)}
    with ljspy.Target([program, VMS, MIB_EACH], env=environment) as target:
        process = judge_vms(target)
        text = ljspy.run("memory", "-p", target.pid).stdout
    assert process["malloc"]["library"] == "jemalloc"
    # What malloc() gave is in mappings that only jemalloc can tell apart.
    assert rss_of(process, "malloc", "malloc_free") < MIB
    assert rss_of(process, "anonymous") > MIB_EACH * MIB
    assert "malloc() is jemalloc's; its memory is part of malloc() and of other anonymous memory" in text


def test_musl(static_program):
    with ljspy.Target([static_program, VMS, MIB_EACH]) as target:
        process = judge_vms(target)
    assert rss_of(process, "malloc", "anonymous") > MIB_EACH * MIB


def test_editor():
    if not test_neovim.NVIM.exists():
        pytest.skip("Debian's neovim packages cannot be had")
    argv = [test_neovim.NVIM, "--headless", "-u", "NONE", "-i", "NONE", "-n", "-c", "lua io.stdout:write('ready\\n') io.stdout:flush()"]
    with ljspy.Target(argv, env=test_neovim.ENVIRONMENT).wait_ready() as target:
        process = memory(target.pid)
        judge_sum(process)
    assert len(process["vms"]) == 1 and rss_of(process, "lua_heap") > process["vms"][0]["gc_total_bytes"]
    assert any(row["kind"] == "code" and row["name"].endswith("/nvim") for row in process["rows"])


def test_tarantool():
    try:
        run = builds.Program("bookworm", "tarantool", "usr/bin/tarantool").prepare()
    except packages.Unavailable as reason:
        pytest.skip(f"not to be had: {reason}")
    script = "kept = {} for i = 1, 1e4 do kept[i] = tostring(i):rep(100) end io.write('ready\\n') io.flush() io.read()"
    with ljspy.Target([*run.command, "-e", script]).wait_ready() as target:
        process = memory(target.pid)
        judge_sum(process)
    assert process["vms"] and rss_of(process, "lua_heap") > 4 * MIB
    # Fibers and arenas of Tarantool's own.
    assert rss_of(process, "anonymous") > 0
