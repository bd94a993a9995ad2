# SPDX-License-Identifier: MIT
"""What the unit tests run of the code, by gcov; tests are those of a build with VARIANT=coverage."""

import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT_SECONDS = 120


def room_of(path, rooms):
    """The room of a source: the longest that it is in."""
    return max((room for room in rooms if path.startswith(room + "/")), key=len, default=None)


def read_counts(objects, counts_root):
    """What gcov says of the objects whose counts lie below counts_root: {file: (lines, branches)}."""
    files, counted = {}, []
    for notes in sorted(objects.rglob("*.gcno")):
        counts = counts_root / notes.relative_to("/").with_suffix(".gcda")
        if counts.exists():
            shutil.copy(notes, counts.with_suffix(".gcno"))
            counted.append(counts)
    told = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities", *counted],
                          capture_output=True, check=True).stdout
    for document in told.splitlines():
        for file in json.loads(document)["files"]:
            path = os.path.relpath(os.path.join(ROOT, file["file"]), ROOT)
            lines, branches = files.setdefault(path, (collections.Counter(), collections.Counter()))
            for line in file["lines"]:
                lines[line["line_number"]] += line["count"]
                for number, branch in enumerate(line["branches"]):
                    if not branch["throw"]:
                        branches[line["line_number"], number] += branch["count"]
    return files


def run(build, test, directory):
    """Run a test, with its counts below the directory. False if it fails."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    try:
        done = subprocess.run([build / "tests/unit" / test], env=os.environ | {"GCOV_PREFIX": str(directory)},
                              cwd=ROOT, capture_output=True, timeout=LIMIT_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def measure(build, directory):
    """What each unit test runs: {test: {file: (lines, branches)}}. Those that fail are left out, and named."""
    found = {}
    build, directory = pathlib.Path(build).resolve(), pathlib.Path(directory).resolve()
    for test in sorted(path.name for path in (build / "tests/unit").glob("test_*") if not path.suffix):
        if run(build, test, directory / test):
            found[test] = read_counts(build, directory / test)
        else:
            print(f"{test} fails", file=sys.stderr)
    return found
