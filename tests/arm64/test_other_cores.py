# SPDX-License-Identifier: MIT
"""An ljspy that runs on arm64 shows of a core of x86-64 what one on x86-64 shows."""

import platform
import shutil
import subprocess
import sys

import pytest

import ljspy

sys.path.append(str(ljspy.ROOT / "tests/layouts"))

import packages  # noqa: E402, pylint: disable=wrong-import-position

OTHER = ljspy.ROOT / "build/debug-aarch64-linux-gnu-gcc/ljspy"
SYSROOT = ljspy.ROOT / "build/arm64/sysroot"

pytestmark = [
    pytest.mark.usefixtures("built"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="this machine makes no cores of x86-64"),
    pytest.mark.skipif(not OTHER.exists(), reason="ljspy is not built for arm64 (make arm64-part does)"),
    pytest.mark.skipif(not shutil.which("gcore"), reason="gdb's gcore is not installed"),
]


def dump(core, *command):
    argv = [*command, "dump", "--native", "all", "--core", core]
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == ljspy.OK, done.stderr
    return done.stdout


@pytest.mark.parametrize("program", ["shares", "callbacks", "idle"])
def test_a_core_of_x86_64_on_arm64(runtime, jit, program, tmp_path):
    emulator = packages.arm64_emulator()
    with ljspy.program(runtime, program, jit) as target:
        argv = ["gcore", "-o", tmp_path / "core", str(target.pid)]
        subprocess.run(argv, capture_output=True, timeout=60, check=True)
    core = tmp_path / f"core.{target.pid}"
    shown = dump(core, ljspy.LJSPY)
    assert f"{program}.lua" in shown and "main [" in shown and "[lost" not in shown, shown
    assert dump(core, emulator, "-L", SYSROOT, OTHER) == shown
