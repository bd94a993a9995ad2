# SPDX-License-Identifier: MIT
"""The check of the width of text finds comments and paragraphs, and nothing else."""

import subprocess
import sys

import pytest

import ljspy

CHECK = ljspy.ROOT / "tests/lint/text_width.py"


@pytest.mark.parametrize(
    "text, lines",
    [
        (f"/* {'a' * 104} */\n", []),
        (f"/* {'a' * 105} */\n", [1]),
        (f"\t/* {'a' * 97} */\n", [1]),
        (f"int a; /* {'a' * 100} */\n", [1]),
        (f"int a; // {'a' * 101}\n", [1]),
        (f"/*\n * {'a' * 107}\n * {'a' * 108}\n */\n{'b' * 120};\n", [3]),
        (f'const char *a = "/* {"a" * 120} */";\n', []),
    ],
    ids=("narrow", "wide", "behind-a-tab", "behind-code", "slashes", "of-several-lines", "literal"),
)
def test_comments_that_are_too_wide_are_found(tmp_path, text, lines):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "a.c").write_text(text)
    done = subprocess.run([sys.executable, CHECK, tmp_path], capture_output=True, text=True, check=False)
    assert [line.split(": ")[0] for line in done.stderr.splitlines()] == [f"a.c:{line}" for line in lines]
    assert done.returncode == bool(lines)


def test_paragraphs_that_are_too_wide_are_found(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    wide = "a " * 56
    (tmp_path / "a.md").write_text(f"# A\n\n{'a ' * 55}\n{wide}\n\n- {wide}\n\n    {wide}\n\n| {wide} |\n")
    done = subprocess.run([sys.executable, CHECK, tmp_path], capture_output=True, text=True, check=False)
    assert [line.split(": ")[0] for line in done.stderr.splitlines()] == ["a.md:4", "a.md:6"]
    assert done.returncode == 1
