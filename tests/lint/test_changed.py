# SPDX-License-Identifier: MIT
"""What the analysers look at again: tests/lint/changed.py in a repository of its own."""

import os
import subprocess
import sys

import pytest

import ljspy

CHANGED = ljspy.ROOT / "tests/lint/changed.py"
SOURCES = {
    "one.c": '#include "shared.h"\n#include "one.h"\n',
    "two.c": '#include "shared.h"\n',
    "three.c": "#include <stdio.h>\n",
    "room/four.c": '#include "parts.h"\n',
    "room/parts.h": '#include "room/rows.h"\n',
    "room/rows.h": '#include "rows.inc"\n#include "room/parts.h"\n',
    "room/rows.inc": "ROW(1)\n",
    "one.h": "enum { ONE };\n",
    "shared.h": "enum { SHARED };\n",
}


def git(directory, *arguments):
    subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=n@localhost", *arguments], cwd=directory, check=True, timeout=60)


@pytest.fixture
def repository(tmp_path):
    for name, text in SOURCES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "sources")
    return tmp_path


def touched(directory, commit="HEAD"):
    command = [sys.executable, CHANGED, commit, *sorted(name for name in SOURCES if name.endswith(".c"))]
    return subprocess.run(command, cwd=directory, check=True, timeout=60, stdout=subprocess.PIPE, text=True).stdout.split()


def test_nothing_has_changed(repository):
    assert touched(repository) == []


@pytest.mark.parametrize(
    "changed, wanted",
    [
        ("three.c", ["three.c"]),
        ("one.h", ["one.c"]),
        ("shared.h", ["one.c", "two.c"]),
        ("room/parts.h", ["room/four.c"]),
        ("room/rows.h", ["room/four.c"]),
        ("room/rows.inc", ["room/four.c"]),
    ],
)
def test_what_has_changed_and_what_includes_it(repository, changed, wanted):
    (repository / changed).write_text(SOURCES[changed] + "enum { CHANGED };\n")
    assert touched(repository) == wanted


def touched_by(repository, before, now):
    """What is to be looked at again when a header that two sources include changes."""
    (repository / "shared.h").write_bytes(before)
    git(repository, "commit", "--quiet", "--all", "--allow-empty", "-m", "before")
    (repository / "shared.h").write_bytes(now)
    return touched(repository)


@pytest.mark.parametrize(
    "before, now",
    [
        (b"enum { SHARED };\n", b"/* One\n * word. */\nenum { SHARED }; // another\n"),
        (b'#define S "/*" // one\n', b'#define S "/*" // two\n'),
        (b"/* \xe9 */\nenum { SHARED };\n", b"/* \xe8 */\nenum { SHARED };\n"),
    ],
    ids=("comments", "comment-after-literal", "comment-in-no-UTF-8"),
)
def test_comments_of_a_header_concern_none_that_include_it(repository, before, now):
    assert touched_by(repository, before, now) == []


@pytest.mark.parametrize(
    "before, now",
    [
        (b"/* NOLINTNEXTLINE */\nint f();\n", b"int f();\n"),
        (b"/* NOLINTNEXTLINE */\nint f();\n", b"/* NOLINTNEXTLINE */\n/* f */\nint f();\n"),
        (b'#define S "//a"\n', b'#define S "//b"\n'),
        (b'static char s[] = "a b";\n', b'static char s[] = "a  b";\n'),
        (b'#define S "/*"\n#define T 1\n/* one */\n', b'#define S "/*"\n#define T 2\n/* one */\n'),
        (b'#define S "\xe9"\n', b'#define S "\xe8"\n'),
    ],
    ids=("order", "order-that-came-off-its-line", "literal", "space-in-literal", "between-comment-signs", "literal-in-no-UTF-8"),
)
def test_code_of_a_header_concerns_all_that_include_it(repository, before, now):
    assert touched_by(repository, before, now) == ["one.c", "two.c"]


@pytest.mark.parametrize("comment, wanted", [("/* changed */", []), ("/* NOLINTNEXTLINE */", ["two.c"])])
def test_a_source_with_another_comment_has_changed_if_analysers_obey_it(repository, comment, wanted):
    (repository / "two.c").write_text(SOURCES["two.c"] + f"{comment}\n")
    assert touched(repository) == wanted


def test_a_source_with_another_layout_has_not_changed(repository):
    (repository / "two.c").write_text("enum {\n\tTWO\n};\n")
    git(repository, "commit", "--quiet", "--all", "-m", "before")
    (repository / "two.c").write_text("enum { TWO };\n")
    assert touched(repository) == []


def test_a_header_that_is_gone_concerns_what_includes_it(repository):
    (repository / "one.h").unlink()
    assert touched(repository) == ["one.c"]


def test_commits_count_as_changes(repository):
    (repository / "two.c").write_text("")
    git(repository, "commit", "--quiet", "--all", "-m", "change")
    assert touched(repository) == []
    assert touched(repository, "HEAD~1") == ["two.c"]


def test_without_that_commit_all_need_a_look(repository):
    assert touched(repository, "HEAD~5") == ["one.c", "room/four.c", "three.c", "two.c"]


def test_lint_stops_if_it_cannot_tell_what_has_changed():
    command = ["make", "-n", "PYTHON=false", "analysed_since=HEAD", "cppcheck"]
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}
    done = subprocess.run(command, cwd=ljspy.ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "changed.py" in done.stderr
