# SPDX-License-Identifier: MIT
"""test_leaf_caller.c: who called a leaf. It needs no kernel of its own: qemu's user mode runs it."""

import re
import subprocess
import sys

import machine

sys.path[:0] = [str(machine.ROOT / "tests/layouts")]

import packages  # noqa: E402, pylint: disable=wrong-import-position

SECONDS = 300


def judge(build, sysroot):
    """What is wrong."""
    emulator = packages.arm64_emulator()
    program = build / "tests/arm64/test_leaf_caller"
    result = subprocess.run([emulator, "-L", sysroot, program], timeout=SECONDS, capture_output=True, text=True, check=False)
    passed = re.search(r"\[  PASSED  \] (\d+) test", result.stderr + result.stdout)
    print(f"callers of leaves: {passed[1] if passed else 0} tests passed")
    if result.returncode or not passed:
        yield f"callers of leaves: {(result.stdout + result.stderr)[-900:]}"
