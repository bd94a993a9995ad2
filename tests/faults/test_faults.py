# SPDX-License-Identifier: MIT
"""Whichever system call fails, ljspy ends in time with a documented status, says why, leaves no
process and no file behind, and its target runs on.

Each case fails one call, or, where something may be used up or forbidden, it and all later ones. FAULTS_EACH says how many cases are tried of each
row of the table (`make faults` tries more)."""

import errno
import os
import random
import subprocess
import tempfile

import pytest

import ljspy
import stacks

pytestmark = pytest.mark.usefixtures("built")

EACH = int(os.environ.get("FAULTS_EACH", 1))
SEED = 25
# Of calls that there are thousands of, the first fail and some of the others; in the short form, of the first few.
FIRST_CALLS, LATER_CALLS, FEW_CALLS = 40, 20, 3
TIMEOUT_SECONDS = 60
FOREVER = 1_000_000_000

# PTRACE_SEIZE and PTRACE_GETREGSET. Other requests only fail for threads that have ended.
SEIZE, REGISTERS = "ptrace=0x4206", "ptrace=0x4204"

# Errors that the manual has for each call: of a moment, or lasting.
ERRORS = {
    "read": (errno.EIO, errno.EINTR),
    "write": (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EINTR),
    "open": (errno.EACCES, errno.EMFILE, errno.ENFILE, errno.ENOMEM),
    "create": (errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EMFILE, errno.EDQUOT),
    "rename": (errno.EACCES, errno.EIO, errno.ENOSPC, errno.EROFS),
    "link": (errno.EPERM, errno.EIO, errno.ENOSPC, errno.EROFS),
    "list": (errno.ENOMEM,),
    "map": (errno.ENOMEM,),
    "memfd": (errno.EMFILE, errno.ENOMEM),
    "pipe": (errno.EMFILE, errno.ENFILE),
    "socketpair": (errno.EMFILE, errno.ENFILE),
    "fork": (errno.EAGAIN, errno.ENOMEM),
    "wait": (errno.EINTR,),
    "poll": (errno.EINTR, errno.ENOMEM),
    "timer_create": (errno.EAGAIN, errno.ENOMEM),
    SEIZE: (errno.EPERM, errno.ESRCH, errno.EIO),
    REGISTERS: (errno.ESRCH, errno.EIO),
    "process_vm_readv": (errno.EFAULT, errno.EPERM, errno.ESRCH, errno.ENOMEM, errno.ENOSYS),
}
# Of these calls only one fails. Outside of this test all do not fail, or not those of messages.
OF_A_MOMENT = ("read", "write", "wait", "poll")

LOOKS_AT_A_TARGET = tuple(ERRORS)
READS_A_FILE = ("read", "write", "open", "create", "link", "rename", "map")

# Commands, the files that they write, and calls that fail.
COMMANDS = {
    "record": (("record", "-d", "100ms", "-r", ljspy.HIGH_RATE, "-o", "x.svg"), "x.svg", LOOKS_AT_A_TARGET),
    "record in a recording": (
        ("record", "-d", "100ms", "-r", ljspy.HIGH_RATE, "-o", "x.ljspy"), "x.ljspy", LOOKS_AT_A_TARGET),
    "report": (("report",), None, READS_A_FILE),
    "report in a file": (("report", "-o", "x.svg"), "x.svg", READS_A_FILE),
    "dump": (("dump",), None, LOOKS_AT_A_TARGET),
    "traces": (("traces", "-d", "100ms"), None, LOOKS_AT_A_TARGET),
    "heap": (("heap", "--max-pause", "10s", "-o", "x.heap"), "x.heap", LOOKS_AT_A_TARGET),
    "memory": (("memory",), None, LOOKS_AT_A_TARGET),
    "info": (("info",), None, LOOKS_AT_A_TARGET),
}


@pytest.fixture(scope="module")
def target():
    argv = [ljspy.luajit("luajit"), "shares.lua", "on", FOREVER]
    with ljspy.Target(argv, cwd=stacks.PROGRAMS, limit=280 if EACH == 1 else 7200).wait_ready() as process:
        yield process


@pytest.fixture(scope="module")
def recording(target, tmp_path_factory):
    path = tmp_path_factory.mktemp("recording") / "before.ljspy"
    result = ljspy.run("record", "-p", target.pid, "-d", "500ms", "-r", ljspy.HIGH_RATE, "-o", path)
    assert result.returncode == ljspy.OK, result.stderr
    return path


class Outcome:
    """How ljspy ended, and what it left."""

    def __init__(self, arguments, call, first, last, error):
        with tempfile.TemporaryDirectory(prefix="ljspy-") as directory, tempfile.NamedTemporaryFile("r") as report:
            through = [ljspy.helper("faulty"), call, first, last, error, report.name]
            self.result = subprocess.run(
                [str(a) for a in (*through, ljspy.LJSPY, *arguments)],
                cwd=directory, env=os.environ | {"TMPDIR": directory}, stdin=subprocess.DEVNULL,
                capture_output=True, text=True, errors="replace", timeout=TIMEOUT_SECONDS, check=False,
            )
            counts = report.read().split()
            self.files = os.listdir(directory)
        assert len(counts) == 3, self.result.stderr
        self.calls, self.failed, self.left = map(int, counts)


def is_free(pid):
    return ljspy.status_field(pid, "TracerPid") == "0" and ljspy.status_field(pid, "State") == "R"


def faults_of(outcome, output):
    """What is wrong with the way in which ljspy ended."""
    status, said = outcome.result.returncode, outcome.result.stderr
    if status not in (ljspy.OK, ljspy.WITH_ERRORS, ljspy.NOTHING_PROFILED):
        yield f"status {status}"
    if status == ljspy.NOTHING_PROFILED and "ljspy: " not in said:
        yield "does not say why"
    if status == ljspy.OK and output and outcome.files != [output]:
        yield "the output is missing"
    if status == ljspy.OK and not output and not outcome.result.stdout:
        yield "shows nothing"
    if outcome.left:
        yield "a process is left"
    if left := [name for name in outcome.files if name != output and name not in said]:
        yield f"left {left}"


def some_of(calls, chance):
    """The numbers of the calls to fail: the first ones, and some of the others."""
    later = range(FIRST_CALLS + 1, calls + 1)
    return [*range(1, min(calls, FIRST_CALLS) + 1), *chance.sample(later, min(len(later), LATER_CALLS))]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_call_that_fails_is_no_harm(target, recording, name):
    command, output, calls = COMMANDS[name]
    arguments = [*command, *([recording] if command[0] == "report" else ["-p", target.pid])]
    chance = random.Random(f"{SEED} {name}")
    failed, wrong, count = 0, [], FEW_CALLS
    for call in calls:
        if EACH > 1 or call == calls[0]:
            untroubled = Outcome(arguments, call, 0, 0, 0)
            assert not list(faults_of(untroubled, output)), untroubled.result.stderr
            assert untroubled.calls or call != calls[0]
            count = untroubled.calls if EACH > 1 else FEW_CALLS
        cases = [(number, last, error) for number in some_of(count, chance)
                 for last in ((number,) if call in OF_A_MOMENT else (number, FOREVER)) for error in ERRORS[call]
                 if error != errno.EINTR or last == number]
        for number, last, error in chance.sample(cases, min(len(cases), EACH)):
            outcome = Outcome(arguments, call, number, last, error)
            failed += outcome.failed > 0
            found = list(faults_of(outcome, output))
            if not ljspy.wait_until(lambda: is_free(target.pid)):
                found.append("the target is held")
            if found:
                wrong.append((call, number, last, errno.errorcode[error], found, outcome.result.stderr))
    print(f"{failed} runs of {name} in which calls failed")
    assert failed
    assert not wrong


def test_waitid_may_be_forbidden(target):
    """wait4() tells the same. A container's filter may know only one of them."""
    arguments = ["record", "-p", target.pid, "-d", "300ms", "-r", ljspy.HIGH_RATE, "-o", "x.svg"]
    outcome = Outcome(arguments, "waitid", 1, FOREVER, errno.ENOSYS)
    assert outcome.failed and outcome.result.returncode == ljspy.OK, outcome.result.stderr
    assert not list(faults_of(outcome, "x.svg")), outcome.result.stderr
