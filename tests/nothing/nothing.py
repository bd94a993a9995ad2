# SPDX-License-Identifier: MIT
"""A plugin of pytest for run.py: notes what passes and what fails, and runs nothing twice."""

import os
import pathlib
import signal
import zlib

import pytest


def is_chosen(function):
    """One of NOTHING_SHARE functions runs, whichever commit it is."""
    return zlib.crc32(function.encode()) % int(os.environ["NOTHING_SHARE"]) == 0


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """A share of the functions, each with the first of its parameters; nothing runs once more after a failure."""
    seen = set()
    for item in items[:]:
        item.own_markers = [mark for mark in item.own_markers if mark.name != "flaky"]
        function = item.nodeid.split("[")[0]
        if os.environ["NOTHING_SHARE"] != "1" and (function in seen or not is_chosen(function)):
            items.remove(item)
        seen.add(function)


def ring(*_):
    pytest.fail("it takes too long")


def limited():
    """A phase of a test fails after NOTHING_SECONDS. pytest-timeout's alarm also rings while workers report, which ends them."""
    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, float(os.environ["NOTHING_SECONDS"]))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_setup():
    yield from limited()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call():
    yield from limited()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown():
    yield from limited()


def pytest_runtest_logreport(report):
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    if report.failed or (report.when == "call" and report.passed):
        outcome = "NOTHING_FAILED" if report.failed else "NOTHING_PASSED"
        with pathlib.Path(os.environ[outcome]).open("a", encoding="utf-8") as file:
            file.write(report.nodeid + "\n")
