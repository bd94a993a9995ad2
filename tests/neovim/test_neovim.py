# SPDX-License-Identifier: MIT
"""A packaged program that contains LuaJIT: Debian's Neovim, busy with Lua."""

import collections
import os
import pathlib
import subprocess

import pytest

import ljspy
import stacks

SCRIPT = pathlib.Path(__file__).parent / "busy.lua"
NVIM = ljspy.PACKAGES / "neovim/usr/bin/nvim"
ENVIRONMENT = os.environ | {
    "LD_LIBRARY_PATH": ":".join(map(str, ljspy.PACKAGES.glob("lib*/usr/lib/x86_64-linux-gnu")))
    + f":{ljspy.PACKAGES}/lua-luv/usr/lib/x86_64-linux-gnu",
    "VIMRUNTIME": str(ljspy.PACKAGES / "neovim-runtime/usr/share/nvim/runtime"),
}


@pytest.fixture
def nvim(built):
    if not NVIM.exists():
        pytest.skip("Debian's neovim packages cannot be had")
    tried = subprocess.run([NVIM, "--version"], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"nvim does not run here: {tried.stderr.strip()}")
    argv = [NVIM, "--headless", "-u", "NONE", "-i", "NONE", "-n", "-c", f"luafile {SCRIPT}"]
    with ljspy.Target(argv, env=ENVIRONMENT).wait_ready() as target:
        yield target


def test_lua_stands_on_main(nvim, tmp_path, note_lost):
    recorder = ljspy.Recorder(tmp_path, "-p", nvim.pid, seconds=3, options=["--native", "all"])
    recording = recorder.finish()
    weights, wrong = collections.Counter(), []
    for line in recorder.folded.read_text().splitlines():
        stack, _, weight = line.rpartition(" ")
        names = [frame.split(" ")[0] for frame in stack.split(";")]
        lost = any(map(stacks.is_lost, names))
        below = names[: names.index("edit")] if "edit" in names else names
        if not lost and "main" not in below:
            wrong.append(stack)
        weights["lost" if lost else "whole"] += int(weight)
    note_lost("neovim", len(recording.samples), weights)
    assert not wrong
    total = sum(weights.values())
    assert weights["lost"] <= stacks.LOST_SHARE * total
    for name in ("edit", "crunch", "on_command"):
        assert ljspy.weight_of(recording.samples, ljspy.has_frame(name)) > 0.1 * total, name
