# SPDX-License-Identifier: MIT
"""The check of licence lines finds what it is for, and mends it."""

import subprocess
import sys

import ljspy

SPDX = ljspy.ROOT / "tests/lint/spdx.py"
FILES = {
    "a.c": ("int a;\n", "/* {} */\nint a;\n"),
    "run": ("#!/bin/sh\ntrue\n", "#!/bin/sh\n# {}\ntrue\n"),
    "a.lua": ("print(1)\n", "print(1)\n-- {}\n"),
    "read.md": ("text\n", "text\n"),
}
TAG = "SPDX-License-Identifier: MIT"


def spdx(*arguments):
    return subprocess.run([sys.executable, SPDX, *arguments], capture_output=True, text=True, check=False)


def test_lines_that_lack_are_found_and_added(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for name, (text, _) in FILES.items():
        (tmp_path / name).write_text(text)
    found = spdx(tmp_path)
    assert found.returncode == 1
    assert [line.split(":")[0] for line in found.stderr.splitlines()] == ["a.c", "a.lua", "run"]
    assert spdx("--add", tmp_path).returncode == 0
    assert spdx(tmp_path).returncode == 0
    assert {name: (tmp_path / name).read_text() for name in FILES} == {
        name: text.format(TAG) for name, (_, text) in FILES.items()}
