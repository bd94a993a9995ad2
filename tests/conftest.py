# SPDX-License-Identifier: MIT
"""Fixtures common to all end-to-end tests."""

import os
import shutil
import signal
import subprocess

import pytest

import ljspy


# What hangs on how processes share the machine's CPUs is run once more before it is
# believed to fail, and counted as rerun. Not so where each stack is judged on its
# own, or what a target notices: there, one failure is one too many.
NEVER_AGAIN = ("compiled", "crossings", "exactness", "leaves", "safety", "unit")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent.name not in NEVER_AGAIN:
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_configure():
    """What is started in the background ignores these, and so do its children."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def packages():
    """LuaJIT and programs with it inside as Debian builds them, unpacked."""
    subprocess.run([ljspy.ROOT / "tests/packages"], check=True, timeout=300)


@pytest.fixture(scope="session", autouse=True)
def temporary(tmp_path_factory):
    """What ljspy keeps of outputs that could not be written goes with the tests."""
    before = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = str(tmp_path_factory.mktemp("kept"))
    yield
    if before is None:
        del os.environ["TMPDIR"]
    else:
        os.environ["TMPDIR"] = before


@pytest.fixture
def built():
    """ljspy itself, for the tests that run it."""
    if not ljspy.LJSPY.exists():
        pytest.skip(f"{ljspy.LJSPY} is not built")


@pytest.fixture
def gdb():
    """For tests that ask gdb for a second opinion."""
    if not shutil.which("gdb"):
        pytest.skip("no gdb")


@pytest.fixture(params=ljspy.RUNTIMES)
def runtime(request):
    return request.param


@pytest.fixture(params=("on", "off"), ids=("jit", "nojit"))
def jit(request):
    return request.param


@pytest.fixture
def note_lost(record_property):
    """Adds a row to the table of lost samples."""

    def note(case, samples, verdicts):
        record_property("stacks", (case, samples, dict(verdicts)))

    return note


@pytest.fixture
def note_build(record_property):
    """Adds cells to a build's row in the matrix of builds and checks."""

    def note(build, **cells):
        record_property("build", (str(build), cells))

    return note


def properties(terminalreporter, name):
    """What tests noted under this name, in whichever process they ran."""
    reports = [r for outcome in ("passed", "failed") for r in terminalreporter.stats.get(outcome, [])]
    return [value for report in reports for key, value in report.user_properties if key == name]


def write_stacks(terminalreporter):
    rows = properties(terminalreporter, "stacks")
    if not rows:
        return
    terminalreporter.section("stacks: share of CPU time, %")
    terminalreporter.write_line(f"{'case':40} {'lines':>6} {'whole':>7} {'short':>7} {'lost':>7} {'wrong':>7}")
    for case, samples, verdicts in rows:
        total = sum(verdicts.values()) or 1
        shares = (f"{100 * verdicts.get(v, 0) / total:7.2f}" for v in ("whole", "short", "lost", "wrong"))
        terminalreporter.write_line(f"{case:40} {samples:6} {' '.join(shares)}")


def write_builds(terminalreporter):
    """What has no entry was not run; what failed has none either, and its test says why."""
    rows = {}
    for build, cells in properties(terminalreporter, "build"):
        rows.setdefault(build, {}).update(cells)
    if not rows:
        return
    columns = list(dict.fromkeys(column for cells in rows.values() for column in cells))
    terminalreporter.section("builds: objects that confirm the layout; samples judged right")
    width = max(map(len, rows))
    terminalreporter.write_line(" " * width + "".join(f"{c.replace('_', ' '):>18}" for c in columns))
    for build, cells in sorted(rows.items()):
        terminalreporter.write_line(f"{build:{width}}" + "".join(f"{cells.get(c, ''):>18}" for c in columns))


def pytest_terminal_summary(terminalreporter):
    write_stacks(terminalreporter)
    write_builds(terminalreporter)
