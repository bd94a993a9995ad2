# SPDX-License-Identifier: MIT
"""Rows for machines that no test runs on match LuaJIT's own headers, compiled for the
machine and read from debug info."""

import subprocess

import builds
import packages
import pytest

pytestmark = pytest.mark.builds

DESCRIBED = builds.OBJECTS / "described"
TRIPLES = {"arm64": "aarch64-linux-gnu", "i386": "i386-linux-gnu", "x86-64": "x86_64-linux-gnu"}
SOURCES = [("bullseye", "luajit"), ("bookworm", "luajit"), ("bookworm", "luajit2"), ("trixie", "luajit"), ("sid", "luajit")]

# The part of LuaJIT that a layout describes.
TEXT = """\
#define LUA_CORE
#include "lj_obj.h"
#include "lj_jit.h"
#include "lj_dispatch.h"
#include "lj_bc.h"
GG_State gg; GCproto pt; GCtab tab; GCudata ud; GCupval uv; GCfunc fn; GCstr str; Node node; lua_State L;
GChead head; GCtrace trace; SnapShot snapshot; BCOp bc; IROp ir;
"""


@pytest.fixture(scope="module", autouse=True)
def described():
    with packages.locked(builds.BUILDS / ".tools.lock"):
        subprocess.run(["make", "-s", f"VARIANT={builds.OBJECTS.parents[1].name}", DESCRIBED.relative_to(packages.ROOT)],
                       cwd=packages.ROOT, check=True, timeout=600)


def debug_info(machine, source, directory):
    """Debug info for a machine. Split from the object file, it needs no relocations. The
    C library's headers are this machine's; for others they only lack lists of missing
    functions."""
    (directory / "gnu").mkdir()
    for name in ("lp64", "32", "64"):
        (directory / f"gnu/stubs-{name}.h").touch()
    (directory / "all.c").write_text(TEXT)
    subprocess.run(["clang", f"--target={TRIPLES[machine]}", "-w", f"-I{directory}", "-I/usr/include/x86_64-linux-gnu",
                    f"-I{source}/src", "-gdwarf-4", "-gsplit-dwarf", "-c", "all.c", "-o", "all.o"],
                   cwd=directory, check=True)
    return directory / "all.dwo"


@pytest.mark.parametrize("suite, package", SOURCES, ids="-".join)
@pytest.mark.parametrize("machine", TRIPLES)
def test_rows_are_those_of_the_headers(machine, suite, package, tmp_path):
    try:
        source = packages.source(suite, package)
    except packages.Unavailable as reason:
        pytest.skip(f"not to be had: {reason}")
    done = subprocess.run([DESCRIBED, machine, debug_info(machine, source, tmp_path)],
                          capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) == 5
    assert "none" not in done.stdout, done.stdout
