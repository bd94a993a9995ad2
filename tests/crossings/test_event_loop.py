# SPDX-License-Identifier: MIT
"""The code around Lua takes more of the native stack than most programs do, as servers do that use libuv."""

import json
import pathlib
import subprocess

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

HERE = pathlib.Path(__file__).parent
LIBRARY = ljspy.PACKAGES / "libluajit-5.1-2/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2"
INCLUDE = ljspy.PACKAGES / "libluajit-5.1-dev/usr/include/luajit-2.1"
REASON = "native unwinding failed"
# The first tells how much there is.
LOST_SAMPLES = 2


@pytest.fixture(name="event_loop", scope="module", params=["tables", "no tables"])
def start(request, tmp_path_factory):
    program = tmp_path_factory.mktemp("event_loop") / "event_loop"
    options = [] if request.param == "tables" else ["-fno-asynchronous-unwind-tables"]
    subprocess.run(["gcc", "-O2", *options, f"-I{INCLUDE}", HERE / "event_loop.c", "-o", program, LIBRARY,
                    f"-Wl,-rpath,{LIBRARY.parent}"], check=True)
    with ljspy.Target([program]).wait_ready() as target:
        yield target


@pytest.mark.parametrize("clock", ["cpu", "wall"])
def test_stacks_are_whole_up_to_main(clock, event_loop, tmp_path):
    recorded = ljspy.record_native(tmp_path, "-p", event_loop.pid, options=["--clock", clock])
    whole = [frames for frames, _ in recorded if frames[0].startswith("main ")]
    for name in ("work_outside", "work_inside", *(["poll"] if clock == "wall" else [])):
        assert any(name in frame for frames in whole for frame in frames), (name, recorded)
    lost = json.loads((tmp_path / "stats.json").read_text())["lost"]
    assert lost[REASON] <= LOST_SAMPLES, lost
