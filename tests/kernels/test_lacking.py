# SPDX-License-Identifier: MIT
"""What older kernels lack is refused to ljspy: it goes on in another way, or says in one line what is missing."""

import errno
import os
import re
import tempfile

import pytest

import ljspy
import stacks

pytestmark = pytest.mark.usefixtures("built")

# What is refused, the error of a kernel that lacks it, the first Linux that has it.
LACKED = (
    ("getregset", errno.EIO, "2.6.34"),
    ("prlimit64", errno.ENOSYS, "2.6.36"),
    ("process_vm_readv", errno.ENOSYS, "3.2"),
    ("seize", errno.EIO, "3.4"),
    ("tmpfile", errno.EISDIR, "3.11"),
    ("renameat2", errno.ENOSYS, "3.15"),
    ("memfd_create", errno.ENOSYS, "3.17"),
    ("getrandom", errno.ENOSYS, "3.17"),
    ("statx", errno.ENOSYS, "4.11"),
    ("rseq", errno.ENOSYS, "4.18"),
    ("clone3", errno.ENOSYS, "5.3"),
    ("openat2", errno.ENOSYS, "5.6"),
    ("close_range", errno.ENOSYS, "5.9"),
)
EVERY = [name for name, _, _ in LACKED]
ATTACH = ["--allow-attach"]
PROGRAM = next(program for program in stacks.all_programs() if program.name == "calls")


def without(*names):
    """A command that runs another one without these."""
    return [word for name, error, _ in LACKED if name in names for word in (ljspy.helper("refused"), name, str(error))]


def without_file(name, report):
    return [ljspy.helper("faulty"), f"open:{name}", "1", "1000000", str(errno.ENOENT), report]


@pytest.fixture
def target():
    with ljspy.program("luajit", "calls") as running:
        yield running


def assert_right(target, tmp_path, through, options=(), least="whole"):
    recording = ljspy.record(tmp_path, "-p", target.pid, seconds=0.5, options=options, through=through)
    verdicts = [PROGRAM.judge(sample) for sample in recording.samples]
    assert least in verdicts
    assert "wrong" not in verdicts
    assert ljspy.status_field(target.pid, "TracerPid") == "0"


def test_the_table_of_kernels_has_each():
    page = (ljspy.ROOT / "doc/KERNELS.md").read_text()
    rows = re.findall(r"^\| ([\d.]+) \| .*?\(`(\w+)`\)", page, re.MULTILINE)
    assert rows == [(since, name) for name, _, since in LACKED]


@pytest.mark.long
@pytest.mark.parametrize("name", EVERY)
def test_record_without(target, name, tmp_path):
    assert_right(target, tmp_path, without(name), ATTACH if name == "seize" else ())


def test_record_without_all_of_them(target, tmp_path):
    assert_right(target, tmp_path, without(*EVERY), ATTACH)


def test_record_without_all_of_them_and_without_a_stop(target, tmp_path):
    """The program runs on while its stack is read."""
    assert_right(target, tmp_path, without(*EVERY), ["--no-stop"], least="lost")


@pytest.mark.parametrize("command", [["dump", *ATTACH], ["info"], ["memory"], ["traces", "-d", "200ms", *ATTACH]], ids=lambda words: words[0])
def test_other_commands_without_all_of_them(target, command):
    result = ljspy.run(*command, "-p", target.pid, through=without(*EVERY))
    assert result.returncode == ljspy.OK, result.stderr
    assert str(target.pid) in result.stdout or "calls.lua" in result.stdout


def test_what_is_missing_is_said(target):
    result = ljspy.run("record", "-p", target.pid, "-d", "1s", "-o", os.devnull, through=without(*EVERY))
    assert result.returncode == ljspy.NOTHING_PROFILED
    said = [line for line in result.stderr.splitlines() if "PTRACE_SEIZE" in line and "Linux has it since 3.4" in line]
    assert len(said) == 1, result.stderr


@pytest.mark.long
@pytest.mark.parametrize("name", ["syscall", "pagemap", "children"])
def test_record_without_a_file_of_proc(target, name, tmp_path):
    """syscall is there as the kernel was configured, children since 3.5; pagemap may be refused."""
    with tempfile.NamedTemporaryFile("r") as report:
        assert_right(target, tmp_path, without_file(name, report.name))
