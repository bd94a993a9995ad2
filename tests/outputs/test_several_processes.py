# SPDX-License-Identifier: MIT
"""The exit status of commands that look at several processes: 1 if some could not be looked at, 2 if none could."""

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

NO_PROCESS = 2 ** 22 - 1


@pytest.fixture(scope="module")
def good():
    with ljspy.busy(limit=200) as target:
        yield target.pid


@pytest.fixture(scope="module")
def other():
    """A process without LuaJIT."""
    with ljspy.Target(["sleep", "200"], limit=200) as target:
        yield target.pid


@pytest.mark.parametrize("command", ["heap", "dump", "dump --json", "info"])
def test_what_was_looked_at_counts(command, good, other):
    for pids in [(good, NO_PROCESS), (NO_PROCESS, good), (good, other), (other, good)]:
        result = ljspy.run(*command.split(), "-p", ",".join(map(str, pids)))
        assert result.returncode == ljspy.WITH_ERRORS, (pids, result.stderr)
        assert str(good) in result.stdout and "rocess" in result.stderr
    for pids in [(other,), (NO_PROCESS,), (other, NO_PROCESS), (NO_PROCESS, other)]:
        result = ljspy.run(*command.split(), "-p", ",".join(map(str, pids)))
        assert result.returncode == ljspy.NOTHING_PROFILED, (pids, result.stderr)
    assert ljspy.run(*command.split(), "-p", good).returncode == ljspy.OK
