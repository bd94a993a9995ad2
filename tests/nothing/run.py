# SPDX-License-Identifier: MIT
"""make nothing: run the tests with a ljspy that does nothing and succeeds. What passes then
tests nothing, unless passes.txt has a reason.

    run.py BUILD DIRECTORY SECONDS SHARE

BUILD has the other programs of the tests. Each test fails after SECONDS, as does what is set up for it. Of each SHARE
functions one runs, with the first of its parameters, and all of them if SHARE is 1.
"""

import fnmatch
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
TESTS = HERE.parent


def reasons():
    """Patterns of tests that may pass."""
    lines = (HERE / "passes.txt").read_text(encoding="utf-8").splitlines()
    return [line.split()[0] for line in lines if line and not line.startswith("#")]


def make_ljspy(build, directory):
    """Returns a ljspy that does nothing, beside the programs that tests look for there."""
    directory.mkdir(parents=True, exist_ok=True)
    ljspy = directory / "ljspy"
    ljspy.write_text("#!/bin/sh\nexit 0\n")
    ljspy.chmod(0o755)
    programs = directory / "tests"
    programs.unlink(missing_ok=True)
    programs.symlink_to(build / "tests")
    return ljspy


def run(ljspy, directory, seconds, share):
    """Run the tests that no pattern covers as a whole folder. Returns what passed and what failed, if all of them ran."""
    ignored = [TESTS / pattern.removesuffix("/*") for pattern in reasons() if pattern.endswith("/*")]
    passed, failed = directory / "passed", directory / "failed"
    for file in (passed, failed):
        file.write_text("")
    environment = os.environ | {
        "LJSPY": str(ljspy), "PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1",
        "NOTHING_PASSED": str(passed), "NOTHING_FAILED": str(failed), "NOTHING_SHARE": share,
        "NOTHING_SECONDS": seconds}
    with (directory / "log").open("w") as log:
        status = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "nothing", "--tb=no", "-m", "not builds", "-n", str(2 * os.cpu_count()),
             "--timeout=0", *(f"--ignore={path}" for path in ignored), TESTS],
            env=environment, stdout=log, stderr=subprocess.STDOUT, check=False).returncode
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        sys.exit(f"the tests did not run to their end, as {log.name} tells")
    return passed.read_text().splitlines(), failed.read_text().splitlines()


def main():
    build, directory = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    seconds, share = sys.argv[3:]
    passed, failed = run(make_ljspy(build, directory), directory, seconds, share)
    patterns = reasons()
    ids = sorted(set(passed))
    idle = [test for test in ids if not any(fnmatch.fnmatchcase(test, pattern) for pattern in patterns)]
    for test in idle:
        print(f"passes with a ljspy that does nothing: {test}")
    print(f"{len(failed)} tests fail without ljspy, {len(ids)} pass: {len(idle)} of these without a reason")
    # Where next to nothing fails, the tests did not run.
    sys.exit(bool(idle) or len(failed) < 200 // int(share))


main()
