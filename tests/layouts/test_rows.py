# SPDX-License-Identifier: MIT
"""Rows of the tables are what luajit-layouts/rows/make_rows.py makes of LuaJIT's headers."""

import importlib.util
import os
import subprocess
import sys

import ljspy
import packages
import pytest

SCRIPT = ljspy.ROOT / "luajit-layouts/rows/make_rows.py"
SOURCES = [("bullseye", "luajit"), ("bookworm", "luajit"), ("bookworm", "luajit2"), ("trixie", "luajit"), ("sid", "luajit")]


@pytest.fixture(scope="module")
def make_rows():
    spec = importlib.util.spec_from_file_location("make_rows", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_rows_are_spelled_as_the_script_spells_them(make_rows):
    kept = list(make_rows.kept_rows(SCRIPT.parent))
    assert len(kept) > 100
    for row, name, origin, text in kept:
        assert row.text(name, origin) == text


def test_each_row_is_one_for_its_mode(make_rows):
    seen = set()
    for row, name, _, _ in make_rows.kept_rows(SCRIPT.parent):
        for bit in row.modes:
            assert (row.group, name, bit) not in seen
            seen.add((row.group, name, bit))


@pytest.mark.builds
@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("suite, package", SOURCES, ids="-".join)
def test_tables_lack_no_row_of_these_sources(suite, package):
    try:
        source = packages.source(suite, package)
    except packages.Unavailable as reason:
        pytest.skip(f"not to be had: {reason}")
    done = subprocess.run([sys.executable, SCRIPT, "--all", source / "src"], env=dict(os.environ, LJSPY=str(ljspy.LJSPY)),
                          capture_output=True, text=True, check=True)
    titles = [line for line in done.stdout.splitlines() if line.startswith("/* ") and "release.inc" not in line]
    # Of each of six groups one row for three kinds of references and machines at least.
    assert len(titles) >= 18, done.stdout
    assert all(": there is " in title for title in titles), titles
