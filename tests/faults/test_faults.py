# SPDX-License-Identifier: MIT
"""Whichever system call fails, ljspy ends in time with a documented status, says why, leaves no
process behind, and no file that it does not name, and its target runs on.

Each case fails one call, or, where something may be used up or forbidden, it and all later ones. FAULTS_EACH says how many cases are tried of each
row of the table (`make faults` tries more)."""

import errno
import os
import pty
import random
import re
import select
import subprocess
import tempfile
import termios
import time

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
    "unlink": (errno.EACCES, errno.EIO, errno.EROFS, errno.EBUSY),
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
SHOWS_A_TARGET = ("write", "open", "map", "poll", SEIZE, "process_vm_readv")
READS_A_FILE = ("read", "write", "open", "create", "link", "unlink", "rename", "map")

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
    "top": (("top",), None, SHOWS_A_TARGET),
}
# Seconds for which the live view is shown until its reader presses q, again and again.
READS_FOR, PRESSES_EACH = 0.2, 0.05


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


def run_with_pipes(argv, directory):
    return subprocess.run(
        argv, cwd=directory, env=os.environ | {"TMPDIR": directory}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, errors="replace", timeout=TIMEOUT_SECONDS, check=False,
    )


def run_in_terminal(argv, directory):
    """Run the live view, whose reader presses q after a while. The terminal must be left as it was."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    before = termios.tcgetattr(theirs)
    environment = os.environ | {"TMPDIR": directory, "TERM": "xterm"}
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(argv, cwd=directory, env=environment, stdin=theirs, stdout=theirs, stderr=said)
        drawn, begin = b"", time.monotonic()
        while process.poll() is None:
            while select.select([ours], [], [], PRESSES_EACH)[0]:
                drawn += os.read(ours, 65536)
            if drawn and time.monotonic() - begin > READS_FOR:
                os.write(ours, b"q")
            if time.monotonic() - begin > TIMEOUT_SECONDS:
                process.kill()
                process.wait()
                raise subprocess.TimeoutExpired(argv, TIMEOUT_SECONDS)
        left = termios.tcgetattr(theirs)
        os.close(ours)
        os.close(theirs)
        assert left == before, "the terminal is left in another mode"
        said.seek(0)
        return subprocess.CompletedProcess(argv, process.returncode, drawn.decode(errors="replace"),
                                           said.read().decode(errors="replace"))


class Outcome:
    """How ljspy ended, and what it left."""

    def __init__(self, arguments, call, first, last, error, setup=()):
        with tempfile.TemporaryDirectory(prefix="ljspy-") as directory, tempfile.NamedTemporaryFile("r") as report:
            through = [ljspy.helper("faulty"), call, first, last, error, report.name]
            run = run_in_terminal if "top" in arguments else run_with_pipes
            self.result = run([str(a) for a in (*through, *setup, ljspy.LJSPY, *arguments)], directory)
            counts = report.read().split()
            self.files = os.listdir(directory)
        assert len(counts) == 3, self.result.stderr
        self.calls, self.failed, self.left = map(int, counts)


def faults_of(outcome, output):
    """What is wrong with the way in which ljspy ended."""
    status, said = outcome.result.returncode, outcome.result.stderr
    if status not in (ljspy.OK, ljspy.WITH_ERRORS, ljspy.NOTHING_PROFILED):
        yield f"status {status}"
    if status == ljspy.NOTHING_PROFILED and "ljspy: " not in said:
        yield "does not say why"
    if status == ljspy.OK and output and output not in outcome.files:
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
            if not ljspy.wait_until(lambda: ljspy.runs_free(target.pid)):
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


@pytest.mark.parametrize("error", [errno.EINTR, errno.ECHILD], ids=errno.errorcode.get)
def test_a_program_that_is_started_ends_though_waitid_tells_nothing(error):
    """What ljspy needs of the program's stops, it asks of wait4() whichever way waitid() fails."""
    program = [ljspy.luajit("luajit"), "-e", "local t = os.clock() while os.clock() - t < 0.2 do end"]
    arguments = ["record", "-d", "30s", "-r", ljspy.HIGH_RATE, "-o", "x.svg", "--", *program]
    outcome = Outcome(arguments, "waitid", 1, FOREVER, error)
    assert outcome.failed and outcome.result.returncode == ljspy.OK, outcome.result.stderr
    assert not list(faults_of(outcome, "x.svg")), outcome.result.stderr


STARVED = re.compile(
    r"ljspy: There is no sample: in [\d.]+ ms the target used a CPU for [\d.]+, and it had work in the end\.\n"
    r"ljspy: It may have waited for a CPU, as on a full machine: let it run for longer\.\n")


@pytest.mark.parametrize("command", ["record", "dump"])
def test_ljspy_says_that_it_cannot_start_its_own_processes(target, command):
    """Whichever of them, or of their threads, cannot be had: nothing was killed."""
    options = ["-d", "100ms", "-o", "x.svg"] if command == "record" else []
    refused = 0
    for number in range(1, 8):
        outcome = Outcome([command, "-p", target.pid, *options], "fork", number, number, errno.EAGAIN)
        assert "killed" not in outcome.result.stderr, number
        # Nothing else is said where the call was not needed, but the target had no CPU.
        is_starved = STARVED.fullmatch(outcome.result.stderr)
        if outcome.failed and outcome.result.returncode == ljspy.NOTHING_PROFILED and not is_starved:
            refused += 1
            assert "No timer, thread or process can be had" in outcome.result.stderr, number
    assert refused


CANNOT_WAIT = "ljspy's processes cannot wait for each other: waitpid() fails"


@pytest.mark.parametrize("command", ["record", "dump"])
@pytest.mark.parametrize("error", [errno.EINTR, errno.ECHILD, errno.EPERM], ids=errno.errorcode.get)
def test_ljspy_says_that_it_cannot_wait_for_its_own_processes(target, error, command):
    """Nothing killed them, and no target has ended: it is said what fails, and the target runs on."""
    options = ["-d", "30s", "-o", "x.svg"] if command == "record" else []
    outcome = Outcome([command, "-p", target.pid, *options], "wait", 1, FOREVER, error)
    assert outcome.failed
    # Until it fails, a recording may have had a sample.
    statuses = (ljspy.NOTHING_PROFILED, ljspy.WITH_ERRORS) if command == "record" else (ljspy.NOTHING_PROFILED,)
    assert outcome.result.returncode in statuses, outcome.result.stderr
    assert f"{CANNOT_WAIT}: {os.strerror(error)}" in outcome.result.stderr
    assert "killed" not in outcome.result.stderr
    assert not list(faults_of(outcome, "x.svg"))
    assert ljspy.wait_until(lambda: ljspy.runs_free(target.pid))


def test_a_full_disk_is_told_though_the_recording_cannot_be_cut_to_its_last_whole_block(target, tmp_path):
    """What was written whole before is read; if nothing was, there is no file."""
    file = tmp_path / "x.ljspy"
    full = ("sh", "-c", """trap '' XFSZ; ulimit -f 1; exec "$@" """, "sh")
    record = ["record", "-p", target.pid, "-d", "2s", "-r", ljspy.HIGH_RATE, "-o", file]
    outcome = Outcome(record, "truncate", 1, FOREVER, errno.EIO, full)
    assert outcome.failed and not outcome.left, outcome.result.stderr
    assert outcome.result.returncode == ljspy.WITH_ERRORS, outcome.result.stderr
    assert f"{file}: {os.strerror(errno.EFBIG)}" in outcome.result.stderr
    assert not file.exists() or ljspy.run("report", file, "-f", "json").returncode in (ljspy.OK, ljspy.WITH_ERRORS)
    assert ljspy.runs_free(target.pid)
