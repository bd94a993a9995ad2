# SPDX-License-Identifier: MIT
"""Fixtures common to all end-to-end tests."""

import fnmatch
import os
import pathlib
import shutil
import signal
import subprocess

import pytest

import ljspy


# A test that depends on how processes share the CPUs runs once more before it counts as
# failed, and pytest reports the rerun. Folders that judge each stack, or what a target
# notices, are excluded: there, one failure is one too many.
NEVER_AGAIN = ("compiled", "crossings", "exactness", "leaves", "listing", "locals", "safety", "unit")


# So many lines tell why a test ran again.
WHY_LINES_MAX = 10


# Patterns of tests that make check leaves out for their time.
LONG = [line for line in (pathlib.Path(__file__).parent / "long.txt").read_text().splitlines() if line and line[0] != "#"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark tests before pytest chooses by marks."""
    for item in items:
        if any(fnmatch.fnmatchcase(item.nodeid, pattern) for pattern in LONG):
            item.add_marker(pytest.mark.long)
        if item.path.parent.name not in NEVER_AGAIN:
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_configure():
    """Restore signals that shells ignore in background jobs, for which children would ignore them, too."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def packages():
    """Unpack LuaJIT and programs that contain it, as Debian builds them."""
    subprocess.run([ljspy.ROOT / "tests/packages"], check=True, timeout=300)


@pytest.fixture(scope="session", autouse=True)
def temporary(tmp_path_factory):
    """Put recordings that ljspy keeps of failed outputs among the tests' temporary files."""
    before = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = str(tmp_path_factory.mktemp("kept"))
    yield
    if before is None:
        del os.environ["TMPDIR"]
    else:
        os.environ["TMPDIR"] = before


@pytest.fixture
def built():
    """Skip the test if ljspy is not built."""
    if not ljspy.LJSPY.exists():
        pytest.skip(f"{ljspy.LJSPY} is not built")


@pytest.fixture
def gdb():
    """Skip the test if there is no gdb."""
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
    """What tests of all processes noted under this name."""
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
    """Print the matrix. A cell is empty if its test did not run, or failed; the test says why."""
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


def write_reruns(terminalreporter):
    """Say why tests ran again: what passes then leaves nothing else behind."""
    reports = terminalreporter.stats.get("rerun", [])
    if not reports:
        return
    terminalreporter.section("run again, because")
    for report in reports:
        crash = getattr(report.longrepr, "reprcrash", None)
        why = f"{pathlib.Path(crash.path).name}:{crash.lineno}: {crash.message}" if crash else str(report.longrepr)
        terminalreporter.write_line(f"{report.nodeid} ({report.when})")
        for line in why.splitlines()[:WHY_LINES_MAX]:
            terminalreporter.write_line(f"    {line}")


def pytest_terminal_summary(terminalreporter):
    write_reruns(terminalreporter)
    write_stacks(terminalreporter)
    write_builds(terminalreporter)
