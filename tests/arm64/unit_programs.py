# SPDX-License-Identifier: MIT
"""Unit tests of code for arm64 alone, and of what reads arm64 code. They need no kernel of their own: qemu's user mode runs them."""

import re
import subprocess
import sys

import machine

sys.path[:0] = [str(machine.ROOT / "tests/layouts")]

import packages  # noqa: E402, pylint: disable=wrong-import-position

SECONDS = 300
PROGRAMS = {
    "arm64/test_frame_depth": "depths of frames",
    "arm64/test_leaf_caller": "callers of leaves",
    "arm64/test_trace_ffi": "calls of traces",
    "arm64/test_vm_frame": "code around an address",
    "unit/test_nginx_build": "where nginx keeps its requests",
}
NGINX = ("bookworm", "trixie")  # whose builds test_nginx_build reads


def judge(build, sysroot):
    """What is wrong."""
    emulator = packages.arm64_emulator()
    for suite in NGINX:
        packages.nginx(suite, "arm64")
    for name, subject in PROGRAMS.items():
        result = subprocess.run([emulator, "-L", sysroot, build / "tests" / name], cwd=machine.ROOT, timeout=SECONDS,
                                capture_output=True, text=True, check=False)
        passed = re.search(r"\[  PASSED  \] ([1-9]\d*) test", result.stderr + result.stdout)
        print(f"{subject}: {passed[1] if passed else 0} tests passed")
        if result.returncode or not passed:
            yield f"{subject}: {(result.stdout + result.stderr)[-900:]}"
