# SPDX-License-Identifier: MIT
"""What the unit tests run of the code, by gcov; tests are those of a build with VARIANT=coverage."""

import array
import collections
import concurrent.futures
import json
import os
import pathlib
import pickle
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT_SECONDS = 120
COUNTS_TAG = 0x01a10000  # of gcov's files


def room_of(path, rooms):
    """The room of a source: the longest that it is in."""
    return max((room for room in rooms if path.startswith(room + "/")), key=len, default=None)


def has_counts(path):
    """Does a file of counts have any but zeros? Those of a function that did not run have a length below zero."""
    words = array.array("i", path.read_bytes())
    return any(tag == COUNTS_TAG and length > 0 for tag, length in zip(words, words[1:]))


def read_gcov(paths):
    """What gcov says of these files: {file: (lines, branches)}."""
    files = {}
    if not paths:
        return files
    told = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities", *paths],
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


def read_counts(objects, counts_root):
    """What gcov says of the objects of which something ran; their counts lie below counts_root."""
    counted = []
    for notes in sorted(objects.rglob("*.gcno")):
        counts = counts_root / notes.relative_to("/").with_suffix(".gcda")
        if counts.exists() and has_counts(counts):
            shutil.copy(notes, counts.with_suffix(".gcno"))
            counted.append(counts)
    return read_gcov(counted)


def read_all_lines(objects):
    """The same of all objects without any counts."""
    return read_gcov(sorted(path for path in objects.rglob("*.gcno") if "tests" not in path.parts[-3:-1]))


def run(program, directory):
    """Run a test, with its counts below the directory. False if it fails."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    directory.chmod(0o777)  # processes that a test forks may become another user
    try:
        done = subprocess.run([program], env=os.environ | {"GCOV_PREFIX": str(directory)},
                              cwd=ROOT, capture_output=True, timeout=LIMIT_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def measure_one(build, test, directory):
    """What one test runs. It is kept beside the counts until the test is built again."""
    program, kept = build / "tests/unit" / test, directory / f"{test}.pickle"
    if kept.exists() and kept.stat().st_mtime > program.stat().st_mtime:
        return pickle.loads(kept.read_bytes())
    if not run(program, directory / test):
        return None
    files = read_counts(build, directory / test)
    kept.write_bytes(pickle.dumps(files))
    shutil.rmtree(directory / test)
    return files


def measure(build, directory):
    """What each unit test runs: {test: {file: (lines, branches)}}, and all lines there are, of the test "".
    Those that fail are left out, and named."""
    build, directory = pathlib.Path(build).resolve(), pathlib.Path(directory).resolve()
    tests = sorted(path.name for path in (build / "tests/unit").glob("test_*") if not path.suffix)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip(tests, pool.map(lambda test: measure_one(build, test, directory), tests)))
    for test in [test for test in tests if found[test] is None]:
        print(f"{test} fails", file=sys.stderr)
        del found[test]
    found[""] = read_all_lines(build)
    return found
