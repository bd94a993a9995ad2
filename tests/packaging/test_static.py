# SPDX-License-Identifier: MIT
"""The static binary, in a root that contains only the binary, /tmp and /proc."""

import os
import shlex
import shutil
import subprocess

import pytest

import made
import ljspy
from terminal import Terminal

pytestmark = [pytest.mark.usefixtures("built"), pytest.mark.slow]


@pytest.fixture(scope="module")
def binary():
    made.make("static")
    return ljspy.ROOT / "build/static/ljspy"


@pytest.fixture
def in_empty_root(binary, tmp_path):
    """The command line that runs the binary there; add its arguments."""
    root = tmp_path / "root"
    (root / "proc").mkdir(parents=True)
    (root / "tmp").mkdir()
    shutil.copy(binary, root / "ljspy")
    new_namespace = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-r", "-m"]
    if subprocess.run([*new_namespace, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no mount namespace is to be had")
    script = f"mount --rbind /proc {shlex.quote(str(root))}/proc && exec chroot {shlex.quote(str(root))} /ljspy \"$@\""
    return [*new_namespace, "sh", "-c", script, "sh"]


@pytest.fixture
def target():
    with ljspy.program("luajit", "shares", "off") as target:
        yield target


def run(command, *arguments):
    return subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, errors="replace", timeout=60, check=False)


def test_it_asks_for_no_library(binary):
    headers = subprocess.run(["readelf", "-ld", binary], capture_output=True, text=True, check=True).stdout
    assert "NEEDED" not in headers
    assert "INTERP" not in headers


def test_it_records(in_empty_root, target):
    result = run(in_empty_root, "record", "-p", target.pid, "-d", "1s", "-r", ljspy.HIGH_RATE, "-f", "folded", "-o", "-")
    assert result.returncode == ljspy.OK, result.stderr
    assert "heavy shares.lua:5" in result.stdout


def test_it_draws_a_flame_graph(in_empty_root, target, tmp_path):
    result = run(in_empty_root, "record", "-p", target.pid, "-d", "1s", "-o", "/tmp/out.svg")
    assert result.returncode == ljspy.OK, result.stderr
    assert "heavy shares.lua:5" in (tmp_path / "root/tmp/out.svg").read_text()


def test_it_dumps_and_informs(in_empty_root, target):
    assert "heavy shares.lua" in run(in_empty_root, "dump", "-p", target.pid).stdout
    assert "LuaJIT in " in run(in_empty_root, "info", "-p", target.pid).stdout


def test_it_explains_itself(in_empty_root):
    """Without /etc/passwd, ljspy shows users' numbers instead of their names."""
    result = run(in_empty_root, "dump", "-p", 2**22 + 1)
    assert result.returncode == ljspy.NOTHING_PROFILED
    assert result.stderr.startswith("ljspy: ")


@pytest.mark.parametrize("term", ("xterm-256color", "screen", "linux", "vt100"))
def test_top_knows_the_usual_terminals(in_empty_root, target, tmp_path, term):
    if not shutil.which("tmux"):
        pytest.skip("tmux is not installed")
    command = shlex.join([*in_empty_root, "top", "-p", str(target.pid)])
    with Terminal(tmp_path, f"{command}; sleep 60", term=term) as terminal:
        terminal.wait_for(lambda lines: any("heavy" in line for line in lines[4:]))
        terminal.keys("q")
        terminal.wait_for("samples ")
