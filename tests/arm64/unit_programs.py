# SPDX-License-Identifier: MIT
"""Unit tests of code for arm64 alone. They need no kernel of their own: qemu's user mode runs them."""

import re
import subprocess
import sys

import machine

sys.path[:0] = [str(machine.ROOT / "tests/layouts")]

import packages  # noqa: E402, pylint: disable=wrong-import-position

SECONDS = 300
PROGRAMS = {"test_leaf_caller": "callers of leaves", "test_vm_frame": "code around an address"}


def judge(build, sysroot):
    """What is wrong."""
    emulator = packages.arm64_emulator()
    for name, subject in PROGRAMS.items():
        program = build / "tests/arm64" / name
        result = subprocess.run([emulator, "-L", sysroot, program], timeout=SECONDS, capture_output=True, text=True, check=False)
        passed = re.search(r"\[  PASSED  \] (\d+) test", result.stderr + result.stdout)
        print(f"{subject}: {passed[1] if passed else 0} tests passed")
        if result.returncode or not passed:
            yield f"{subject}: {(result.stdout + result.stderr)[-900:]}"
