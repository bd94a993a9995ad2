# SPDX-License-Identifier: MIT
"""From 2.41 on, glibc makes system calls that may wait in one function without a name: stacks show which call it is."""

import json
import pathlib
import sys

import pytest

import ljspy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "layouts"))
import builds
import packages

pytestmark = pytest.mark.usefixtures("built")

SCRIPT = """
local ffi = require('ffi')
ffi.cdef('int poll(void *files, unsigned long count, int milliseconds);')
print('ready')
io.stdout:flush()
ffi.C.poll(nil, 0, 60000)
"""


@pytest.fixture(name="sleeper", params=["bookworm", "trixie"])
def start(request, tmp_path):
    (tmp_path / "sleeper.lua").write_text(SCRIPT)
    try:
        run = builds.Program(request.param, "luajit", "usr/bin/luajit").prepare()
    except packages.Unavailable as reason:
        pytest.skip(f"not to be had: {reason}")
    with ljspy.Target([*run.command, "sleeper.lua"], cwd=tmp_path).wait_ready() as target:
        yield target


def test_the_leaf_is_the_function_that_was_called(sleeper):
    assert ljspy.wait_until(lambda: ljspy.status_field(sleeper.pid, "State").startswith("S"))
    (process,) = json.loads(ljspy.run("dump", "-p", sleeper.pid, "--json").stdout)["processes"]
    (thread,) = process["threads"]
    leaf = thread["frames"][0]
    assert "poll" in leaf["name"] and "libc" in leaf["module"], thread["frames"]
