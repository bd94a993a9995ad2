# SPDX-License-Identifier: MIT
"""A short part of what `make check-arm64` judges, of an ljspy for arm64 that is not optimised."""

import pathlib
import shutil
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parent))
import emulated  # noqa: E402, pylint: disable=wrong-import-position
import machine  # noqa: E402, pylint: disable=wrong-import-position
import unit_programs  # noqa: E402, pylint: disable=wrong-import-position

BUILD = machine.ROOT / "build/debug-aarch64-linux-gnu-gcc"
SYSROOT = machine.WORK / "sysroot"
PROGRAMS = [f"tests/{name}" for name in unit_programs.PROGRAMS]
STEPS = 150
STEPPED = (("bookworm", "calls coroutines resumes"),)

pytestmark = [
    pytest.mark.skipif(not shutil.which("qemu-system-aarch64"), reason="qemu-system-arm is not installed"),
    pytest.mark.skipif(not all((BUILD / name).exists() for name in ("ljspy", "tests/exactness/exactness", *PROGRAMS)),
                       reason="ljspy is not built for arm64 (make arm64-part does)"),
]


def test_stacks_in_the_emulated_machine():
    """Stepped programs, a dump and a recording there, and no wrong stack."""
    said = emulated.boot_part(BUILD, SYSROOT, STEPS, STEPPED)
    assert not [*emulated.judge_part(said, STEPPED)]


def test_units_of_arm64():
    try:
        assert not [*unit_programs.judge(BUILD, SYSROOT)]
    except unit_programs.packages.Unavailable as reason:
        pytest.skip(f"not to be had: {reason}")
