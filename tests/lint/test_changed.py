# SPDX-License-Identifier: MIT
"""What the analysers look at again: tests/lint/changed.py in a repository of its own."""

import subprocess
import sys

import pytest

import ljspy

CHANGED = ljspy.ROOT / "tests/lint/changed.py"
SOURCES = {
    "one.c": '#include "shared.h"\n#include "one.h"\n',
    "two.c": '#include "shared.h"\n',
    "three.c": "#include <stdio.h>\n",
    "one.h": "enum { ONE };\n",
    "shared.h": "enum { SHARED };\n",
}


def git(directory, *arguments):
    subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=n@localhost", *arguments], cwd=directory, check=True, timeout=60)


@pytest.fixture
def repository(tmp_path):
    for name, text in SOURCES.items():
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
    "changed, wanted", [("three.c", ["three.c"]), ("one.h", ["one.c"]), ("shared.h", ["one.c", "two.c"])]
)
def test_what_has_changed_and_what_includes_it(repository, changed, wanted):
    (repository / changed).write_text(SOURCES[changed] + "enum { CHANGED };\n")
    assert touched(repository) == wanted


@pytest.mark.parametrize(
    "before, now, wanted",
    [
        ("enum { SHARED };\n", "/* One\n * word. */\nenum { SHARED }; // another\n", []),
        ("/* NOLINTNEXTLINE */\nint f();\n", "int f();\n", ["one.c", "two.c"]),
        ('#define S "/*" // one\n', '#define S "/*" // two\n', []),
        ('#define S "//a"\n', '#define S "//b"\n', ["one.c", "two.c"]),
        ('#define S "/*"\n#define T 1\n/* one */\n', '#define S "/*"\n#define T 2\n/* one */\n', ["one.c", "two.c"]),
    ],
    ids=("comments", "order", "comment-after-literal", "literal", "between-comment-signs"),
)
def test_comments_of_a_header_concern_none_that_include_it(repository, before, now, wanted):
    (repository / "shared.h").write_text(before)
    git(repository, "commit", "--quiet", "--all", "--allow-empty", "-m", "before")
    (repository / "shared.h").write_text(now)
    assert touched(repository) == wanted


def test_a_source_with_another_comment_has_changed(repository):
    (repository / "two.c").write_text(SOURCES["two.c"] + "/* changed */\n")
    assert touched(repository) == ["two.c"]


def test_a_header_that_is_gone_concerns_what_includes_it(repository):
    (repository / "one.h").unlink()
    assert touched(repository) == ["one.c"]


def test_commits_count_as_changes(repository):
    (repository / "two.c").write_text("")
    git(repository, "commit", "--quiet", "--all", "-m", "change")
    assert touched(repository) == []
    assert touched(repository, "HEAD~1") == ["two.c"]


def test_without_that_commit_all_need_a_look(repository):
    assert touched(repository, "HEAD~5") == ["one.c", "three.c", "two.c"]
