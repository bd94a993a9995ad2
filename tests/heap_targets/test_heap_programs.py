# SPDX-License-Identifier: MIT
"""`ljspy heap` on Neovim, and on cores of arm64 processes."""

import json
import pathlib
import sys

import pytest

import ljspy

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / name) for name in ("heap", "layouts", "neovim")]
import arm64_core  # noqa: E402
import heaps  # noqa: E402
import packages  # noqa: E402
import test_neovim  # noqa: E402

pytestmark = pytest.mark.usefixtures("built")

LEAK = HERE.parent / "heap_outputs/leak.lua"
STEPS = 200
PLUGIN = """
local plugin, cache = {}, {}
function plugin.remember(n) for i = 1, n do cache[i] = { text = ("x"):rep(500) .. i } end end
return plugin
"""


def heap_of(*target):
    done = ljspy.run("heap", *target, "-f", "json", "-o", "-")
    assert done.returncode == ljspy.OK, done.stderr
    ((vm,),) = [process["vms"] for process in json.loads(done.stdout)["processes"]]
    assert vm["difference"] == 0 and not any(vm["uncertain"].values())
    return vm


def test_neovim_with_a_plugin(tmp_path):
    if not test_neovim.NVIM.exists():
        pytest.skip("Debian's neovim packages cannot be had")
    (tmp_path / "lua/plugin").mkdir(parents=True)
    (tmp_path / "lua/plugin/init.lua").write_text(PLUGIN)
    argv = [test_neovim.NVIM, "--headless", "-u", "NONE", "-i", "NONE", "-n", "--cmd", f"set rtp+={tmp_path}",
            "-c", "lua require('plugin').remember(3000) io.stdout:write('ready\\n') io.stdout:flush()"]
    with ljspy.Target(argv, env=test_neovim.ENVIRONMENT).wait_ready() as target:
        ljspy.sleeps(target.pid)
        vm = heap_of("-p", target.pid)
    modules = {row["module"]: row for row in vm["modules"]}
    (own,) = [row for name, row in modules.items() if name.endswith("lua/plugin")]
    assert own["bytes"] > 3000 * 500
    assert any(name.startswith("vim/") for name in modules)
    (entries,) = [row for row in vm["paths"] if row["path"].startswith('upvalue "cache" of function remember')
                  and row["path"].endswith("init.lua:3[*].text")]
    assert entries["count"] == 3000


@pytest.mark.parametrize("suite", packages.SUITES)
def test_arm64_cores_say_what_x86_says(suite, tmp_path):
    def paths(vm):
        """Those of what the program makes again and again. Bytes are the same only where both have GC64."""
        return {row["path"]: (row["count"], row["own"] if suite != "bullseye" else 0)
                for row in vm["paths"] if row["count"] >= STEPS and "leak.lua" in row["path"]}

    try:
        process = arm64_core.Emulated(suite, tmp_path, LEAK.name, STEPS, cwd=LEAK.parent)
    except packages.Unavailable as reason:
        pytest.skip(f"not to be had: {reason}")
    with process:
        assert ljspy.wait_until(lambda: ljspy.status_field(process.target.pid, "State") == "S")
        arm = heap_of("--core", process.core())
    run = heaps.builds.Program(suite, "luajit", "usr/bin/luajit").prepare()
    with ljspy.Target([*run.command, LEAK.name, STEPS], cwd=LEAK.parent).wait_ready() as target:
        ljspy.sleeps(target.pid)
        x86 = heap_of("-p", target.pid)
    assert paths(arm) == paths(x86) and len(paths(arm)) > 5
    assert {row["ctype"]: row["count"] for row in arm["cdata"]}["struct reading"] == STEPS
