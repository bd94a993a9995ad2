# SPDX-License-Identifier: MIT
"""LuaJIT's bytecode handlers and fast functions have names in stripped programs: ljspy
finds the code of each in the dispatch table."""

import collections
import pathlib
import subprocess

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

SCRIPT = pathlib.Path(__file__).parent / "handlers.lua"
# Handlers of every build; some builds have more of a name ("lj_BC_ADDVV", "lj_BC_IFORL").
HANDLERS = ("lj_BC_MODVN", "lj_BC_ADDVV", "lj_BC_CALL", "lj_BC_UGET")
FAST_FUNCTIONS = ("lj_ff_math_floor", "lj_ff_string_char")


def programs():
    """Each luajit of a release that other tests have unpacked."""
    found = {str(path.relative_to(ljspy.PACKAGES)).split("/usr/")[0]: path
             for path in sorted(ljspy.PACKAGES.glob("**/usr/bin/luajit"))}
    return found or {runtime: ljspy.luajit(runtime) for runtime in ljspy.RUNTIMES}


def is_x86_64(program):
    """Whether the ELF header says so. Do not try another machine's program: env passes it to the shell."""
    header = program.read_bytes()[:20]
    return header[4] == 2 and header[18:20] == b"\x3e\0"


def start(program):
    libraries = ":".join(map(str, program.parent.parent.glob("lib/*-linux-gnu")))
    argv = ["env", f"LD_LIBRARY_PATH={libraries}", program]
    if not is_x86_64(program):
        pytest.skip("is for another machine")
    if subprocess.run([*argv, "-v"], check=False, capture_output=True, timeout=10).returncode:
        pytest.skip("does not run here")
    return ljspy.Target([*argv, SCRIPT, 50])


@pytest.mark.parametrize("name", programs())
def test_the_interpreters_code_has_names(name, tmp_path):
    with start(programs()[name]).wait_ready() as target:
        leaves = collections.Counter()
        # Whether one is among the samples is chance.
        for _ in range(8):
            recorded = ljspy.record_native(tmp_path, "-p", target.pid, seconds=0.5, options=["--native", "all"])
            for frames, weight in recorded:
                if any(frame.startswith("works ") for frame in frames):
                    leaves[frames[-1].removesuffix(" [vm]")] += weight
            is_named = leaves["[vm]"] < 0.5 * sum(leaves.values())
            if is_named and all(leaves[handler] for handler in HANDLERS) and any(leaves[name] for name in FAST_FUNCTIONS):
                break
    for handler in HANDLERS:
        assert leaves[handler], (handler, leaves)
    assert any(leaves[function] for function in FAST_FUNCTIONS), leaves
    # Handlers share some code, which has no single owner.
    assert leaves["[vm]"] < 0.5 * sum(leaves.values()), leaves
