"""Fixtures common to all end-to-end tests."""

import subprocess

import pytest

import ljspy

# Rows of the table of lost samples, shown when all tests have run.
LOST_TABLE = pytest.StashKey()


def pytest_configure(config):
    config.stash[LOST_TABLE] = []


@pytest.fixture(scope="session", autouse=True)
def packages():
    """LuaJIT and programs with it inside as Debian builds them, unpacked."""
    subprocess.run([ljspy.ROOT / "tests/packages"], check=True, timeout=300)


@pytest.fixture
def built():
    """ljspy itself, for the tests that run it."""
    if not ljspy.LJSPY.exists():
        pytest.skip(f"{ljspy.LJSPY} is not built")


@pytest.fixture
def wall_clock(built):
    """For tests of --clock wall."""
    if "--clock" not in ljspy.run("--help").stdout:
        pytest.skip("this ljspy has no --clock")


@pytest.fixture(params=ljspy.RUNTIMES)
def runtime(request):
    return request.param


@pytest.fixture(params=("on", "off"), ids=("jit", "nojit"))
def jit(request):
    return request.param


@pytest.fixture
def note_lost(request):
    """Adds a row to the table of lost samples."""

    def note(case, samples, verdicts):
        request.config.stash[LOST_TABLE].append((case, samples, verdicts))

    return note


def pytest_terminal_summary(terminalreporter, config):
    rows = config.stash[LOST_TABLE]
    if not rows:
        return
    terminalreporter.section("stacks: share of CPU time, %")
    terminalreporter.write_line(f"{'case':40} {'lines':>6} {'whole':>7} {'short':>7} {'lost':>7} {'wrong':>7}")
    for case, samples, verdicts in rows:
        total = sum(verdicts.values()) or 1
        shares = (f"{100 * verdicts[v] / total:7.2f}" for v in ("whole", "short", "lost", "wrong"))
        terminalreporter.write_line(f"{case:40} {samples:6} {' '.join(shares)}")

