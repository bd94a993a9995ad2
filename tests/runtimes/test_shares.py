# SPDX-License-Identifier: MIT
"""ljspy attributes time to the right functions."""

import pytest

import ljspy

pytestmark = [pytest.mark.usefixtures("built"), pytest.mark.slow]

FOO_SHARE = 2 / 3
TOLERANCE = 0.02
STANDARD_ERRORS = 4  # that a share may be off, if samples are few


def test_foo_has_two_thirds(runtime, tmp_path):
    """Record with and without the JIT compiler at the same time, each on its own CPU."""
    modes = ("on", "off")
    targets = {jit: ljspy.program(runtime, "shares", jit, seconds=60) for jit in modes}
    try:
        recorders = {}
        for jit in modes:
            directory = tmp_path / jit
            directory.mkdir()
            recorders[jit] = ljspy.Recorder(directory, "-p", targets[jit].pid, seconds=10)
        recordings = {jit: recorder.finish() for jit, recorder in recorders.items()}
    finally:
        for target in targets.values():
            target.stop()
    for jit, recording in recordings.items():
        total = ljspy.weight_of(recording.samples)
        foo = ljspy.weight_of(recording.samples, ljspy.has_frame("foo"))
        bar = ljspy.weight_of(recording.samples, ljspy.has_frame("bar"))
        assert foo + bar > 0.9 * total, jit
        error = (FOO_SHARE * (1 - FOO_SHARE) / recording.stats["samples"]) ** 0.5
        assert foo / (foo + bar) == pytest.approx(FOO_SHARE, abs=max(TOLERANCE, STANDARD_ERRORS * error)), jit
