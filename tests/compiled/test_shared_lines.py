# SPDX-License-Identifier: MIT
"""Functions with the same file and first line, as in minified code, and without lines, as in stripped
bytecode: each has its own time and its own reason."""

import json
import pathlib
import subprocess

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

SCRIPT = pathlib.Path(__file__).parent / "shared_line.lua"
STRIP = "io.open(arg[2], 'wb'):write(string.dump(loadfile(arg[1]), true))"

# On a machine that is full, few samples are taken: look longer then.
SECONDS = (1, 4, 16)


@pytest.fixture(params=["whole", "stripped"])
def target(request, tmp_path):
    luajit, script = ljspy.luajit("luajit"), SCRIPT
    if request.param == "stripped":
        script = tmp_path / "stripped.lua"
        strip = tmp_path / "strip.lua"
        strip.write_text(STRIP)
        subprocess.run([luajit, strip, SCRIPT, script], check=True, timeout=ljspy.READY_SECONDS)
        assert b"cold" not in script.read_bytes()
    with ljspy.Target([luajit, script]) as target:
        yield target.wait_ready()


def looked_at(target, command, is_enough):
    for seconds in SECONDS:
        done = ljspy.run(command, "-p", target.pid, "-d", f"{seconds}s", "-r", ljspy.HIGH_RATE, "--json", timeout=120)
        assert done.returncode == ljspy.OK, done.stderr
        (process,) = json.loads(done.stdout)["processes"]
        if is_enough(process):
            break
    assert is_enough(process), process
    return process


def test_the_time_is_that_of_the_function_that_ran(target):
    process = looked_at(target, "traces", lambda process: process["vms"][0]["not_compiled"][0]["share"] > 0.9)
    off, *others = process["vms"][0]["not_compiled"]
    assert off["cause"] == "off" and off["what"] == "function", process
    assert any(row["cause"] == "blacklisted" for row in others), process
    assert sum(row["share"] for row in others) < 0.1, process
    # Samples have seen the name of the one that ran. Stripped bytecode has none.
    assert off["start"]["name"] in ("hot", None), process
    assert not any(row["start"]["name"] == "hot" for row in others), process


def test_the_reason_is_that_of_the_function_that_ran(target):
    process = looked_at(target, "check", lambda process: process["findings"])
    assert [finding["kind"] for finding in process["findings"]] == ["switched-off"], process["findings"]
    assert process["findings"][0]["share"] > 0.9
