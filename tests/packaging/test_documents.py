# SPDX-License-Identifier: MIT
"""The documents are true to the tree and to the program: each path, make target, command line and
place for a table in them exists."""

import re
import subprocess

import pytest

import help_text
import ljspy

README_LINES = 200

ROOT = ljspy.ROOT
TRACKED = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.splitlines()
DOCUMENTS = [name for name in TRACKED if name.endswith(".md")] + ["contrib/ljspy.1"]
TOP = {name.split("/")[0] for name in TRACKED if "/" in name}

# In text between backquotes or of a link; with a folder, or a document's own name.
PATH = re.compile(r"`([\w.{},*/-]+)`|\]\(([\w./-]+)(?:#[\w-]*)?\)")

if not TRACKED:
    pytest.skip("not a git repository", allow_module_level=True)


def text(name):
    return (ROOT / name).read_text()


def paths(name):
    """What a document names as a path of the tree: links, and words that begin with a folder of it."""
    for quoted, linked in PATH.findall(text(name)):
        if linked:
            yield (ROOT / name).parent / linked
        elif quoted.split("/")[0] in TOP and "/" in quoted and "build" not in quoted.split("/")[0]:
            yield ROOT / quoted


@pytest.mark.parametrize("name", DOCUMENTS)
def test_paths_that_are_named_exist(name):
    missing = [str(path) for path in paths(name) if not any(path.parent.glob(path.name)) and not path.exists()]
    assert not missing


def test_paths_are_looked_for():
    assert len([path for name in DOCUMENTS for path in paths(name)]) > 100


def test_links_lead_to_headings():
    for name in DOCUMENTS:
        headings = {re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).replace(" ", "-")
                    for line in text(name).splitlines() if line.startswith("#")}
        assert {anchor for anchor in re.findall(r"\]\(#([\w-]+)\)", text(name))} <= headings, name


def test_make_targets_that_are_named_exist():
    makefile = text("GNUmakefile")
    for name in DOCUMENTS:
        for target in re.findall(r"(?:`|^    )make ([a-z][a-z-]*)(?=[\s`])", text(name), re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), (name, target)


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("name", DOCUMENTS)
def test_command_lines_have_options_that_there_are(name):
    for command, options in re.findall(r"\bljspy ([a-z]+)((?: +(?!--(?: |$))[^\s`|>#]+)*)", text(name)):
        if command in help_text.commands():
            known = {word for option in help_text.options(command) for word in (option.short, option.long)}
            assert set(re.findall(r"(?<= )--?[a-z][a-z-]*", options)) <= known, (command, options)


@pytest.mark.usefixtures("built")
def test_options_that_are_named_exist():
    """Those of other programs stand in lines of code, not between backquotes."""
    known = {word for command in help_text.commands() for option in help_text.options(command)
             for word in (option.short, option.long)}
    for name in ("README.md", "doc/GUIDE.md", "doc/WHAT_THE_TARGET_NOTICES.md", "doc/HOW_IT_WORKS.md", "doc/JSON.md"):
        assert set(re.findall(r"`(--[a-z][a-z-]*)", text(name))) <= known, name


def test_rooms_of_the_architecture_are_those_of_the_makefile():
    listed = re.findall(r"^\| `([\w/-]+)/` \|", text("doc/ARCHITECTURE.md"), re.MULTILINE)
    order = re.search(r"^rooms := ((?:.*\\\n)*.*)$", text("GNUmakefile"), re.MULTILINE)[1]
    assert listed == order.replace("\\", "").split()


def test_folders_of_tests_are_described():
    folders = {name.split("/")[1] for name in TRACKED if name.startswith("tests/") and name.count("/") > 1}
    assert folders <= set(re.findall(r"^\| `([\w-]+)/` \|", text("tests/README.md"), re.MULTILINE))


def test_readme_is_short_and_shows_a_picture():
    readme = text("README.md")
    assert len(readme.splitlines()) <= README_LINES
    assert re.search(r"!\[[^]]+\]\(doc/[\w.]+\)", readme)
    assert "make check" in readme


def test_measurements_have_places_for_all_that_writes_them():
    begun = re.findall(r"^<!-- (.+): written by make (.+) -->$", text("doc/MEASUREMENTS.md"), re.MULTILINE)
    assert {name for name, _ in begun} == {
        *(f"bench {part}" for part in re.search(r"^bench := (.*)$", text("GNUmakefile"), re.MULTILINE)[1].split(",")),
        "always-on", "exactness", "exactness-builds", "heap-holds", "jit-truth", "jit-truth-arm64", "request-truth",
        "coverage", "mutants", "mutants-script"}
    for name, _ in begun:
        assert f"<!-- end of {name} -->" in text("doc/MEASUREMENTS.md")
