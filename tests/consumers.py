# SPDX-License-Identifier: MIT
"""Programs of others that read what ljspy writes."""

import pathlib
import subprocess

import pytest

PROGRAM = pathlib.Path(__file__).resolve().parent / "formats/consumers"
INSTALL_SECONDS = 300


def consumer(name):
    """Install a consumer and return its directory, or skip the test."""
    try:
        result = subprocess.run([PROGRAM, name], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, check=False, timeout=INSTALL_SECONDS)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{name} could not be installed in time")
    if result.returncode:
        reason = result.stderr.strip().splitlines() or ["for no reason given"]
        pytest.skip(f"{name} could not be installed: {reason[-1]}")
    return pathlib.Path(result.stdout.strip())
