# SPDX-License-Identifier: MIT
"""Lines in compiled code."""

import collections

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")


def test_the_line_is_that_of_the_loop(runtime, tmp_path):
    """Line 8 takes all the time; samples show neither the function's line nor the loop's head."""
    with ljspy.program(runtime, "shares") as target:
        ljspy.record(tmp_path, "-p", target.pid, seconds=1, options=["--lines"])
    lines = collections.Counter()
    for line in (tmp_path / "profile.folded").read_text().splitlines():
        stack, _, weight = line.rpartition(" ")
        for frame in stack.split(";"):
            if frame.startswith("heavy shares.lua:"):
                lines[frame.removesuffix("_[j]").rpartition(":")[2]] += int(weight)
    assert lines["8"] > 0.5 * sum(lines.values()), lines
    assert lines["8"] + lines["7"] > 0.95 * sum(lines.values()), lines
