# SPDX-License-Identifier: MIT
"""ljspy reports errors once, clearly, and by its exit status."""

import re
import shlex
import signal
import subprocess

import pytest

import ljspy
import stacks

pytestmark = pytest.mark.usefixtures("built")


def says(result, *words):
    """Check a message: one sentence, perhaps with a remedy on a second line, that contains WORDS."""
    lines = result.stderr.splitlines()
    assert 1 <= len(lines) <= 2, result.stderr
    assert lines[0].startswith("ljspy: ")
    assert "\x1b" not in result.stderr
    for word in words:
        assert str(word).lower() in result.stderr.lower()


# CPU time of a target that gives enough samples to have some.
WORK_NS = 0.5e9


@pytest.fixture
def busy():
    with ljspy.program("luajit", "main") as target:
        yield target


@pytest.mark.parametrize(
    "arguments",
    [
        ["--nonsense"],
        ["frobnicate"],
        ["record", "--nonsense", "-p", "1"],
        ["record", "-f", "jpeg", "-p", "1"],
        ["record", "-d", "soon", "-p", "1"],
        ["record", "-d", "-5", "-p", "1"],
        ["record", "-d", "5x", "-p", "1"],
        ["record", "-d", "nan", "-p", "1"],
        ["record", "-d", "99999999999999999999", "-p", "1"],
        ["record", "-d", "", "-p", "1"],
        ["record", "-r", "0", "-p", "1"],
        ["record", "-r", "-1", "-p", "1"],
        ["record", "-r", "fast", "-p", "1"],
        ["record", "-r", "1000000", "-p", "1"],
        ["record", "-p", "me"],
        ["record", "-p", "0"],
        ["record", "-p", "-1"],
        ["record", "-p", "1,,2"],
        ["record", "-p", "99999999999999999999"],
        ["record", "-p"],
        ["record", "-p", "1", "stray"],
        ["record", "-p", "1", "--", "true"],
        ["record", "--"],
        ["record", "--", ""],
        ["dump", "-p", "1", "-r", "99"],
        ["top", "-p", "1", "-d", "5s"],
        ["top", "-p", "1", "--", "true"],
        ["info", "--nonsense"],
    ],
    ids=" ".join,
)
def test_usage(arguments):
    result = ljspy.run(*arguments)
    assert result.returncode == ljspy.USAGE, result.stderr
    assert not result.stdout
    assert result.stderr.startswith("ljspy: ")


def test_no_arguments_is_usage():
    result = ljspy.run()
    assert result.returncode == ljspy.USAGE
    assert "record" in result.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["record", "--help"], ["dump", "--help"], ["top", "--help"], ["info", "--help"]], ids=" ".join)
def test_help(arguments):
    result = ljspy.run(*arguments)
    assert result.returncode == ljspy.OK
    assert "-p" in result.stdout
    assert not result.stderr


def test_version():
    result = ljspy.run("--version")
    assert result.returncode == ljspy.OK
    assert result.stdout.startswith("ljspy ")


COMMANDS = [["record", "-d", "1s", "-f", "folded", "-o", "-"], ["dump"], ["info"]]


@pytest.fixture(params=COMMANDS, ids=lambda command: command[0])
def command(request):
    return request.param


def test_no_such_process(command):
    with subprocess.Popen(["true"]) as process:
        process.wait()
    result = ljspy.run(*command, "-p", process.pid)
    assert result.returncode == ljspy.NOTHING_PROFILED
    says(result, process.pid)


def test_zombie(command):
    with subprocess.Popen(["true"]) as process:
        assert ljspy.wait_until(lambda: ljspy.status_field(process.pid, "State") == "Z")
        result = ljspy.run(*command, "-p", process.pid)
    assert result.returncode == ljspy.NOTHING_PROFILED
    says(result, process.pid)


@pytest.mark.parametrize(
    "other",
    [
        ["sleep", "300"],
        ["sh", "-c", "while :; do :; done"],
        [ljspy.PACKAGES / "lua5.1/usr/bin/lua5.1", "-e", "while true do end"],
    ],
    ids=("sleeper", "busy", "PUC Lua"),
)
def test_not_luajit(command, other):
    with ljspy.Target(other) as target:
        exec_done = lambda: "python" not in ljspy.status_field(target.pid, "Name")
        assert ljspy.wait_until(exec_done)
        result = ljspy.run(*command, "-p", target.pid)
    assert result.returncode == ljspy.NOTHING_PROFILED
    says(result, target.pid, "LuaJIT")


def test_state_of_a_busy_process_is_known(runtime):
    """While the process runs, its objects come and go faster than ljspy can read them."""
    with ljspy.Target([ljspy.luajit(runtime), ljspy.ROOT / "contrib/demo.lua", 300]) as target:
        assert ljspy.wait_until(lambda: ljspy.cpu_ns(target.pid) > 1e9, ljspy.WORK_SECONDS)
        info = ljspy.run("info", "--verbose", "-p", target.pid)
        traces = ljspy.run("traces", "-p", target.pid, "-d", "100ms")
    assert re.search(r"(?m)^ +state 0x[0-9a-f]+, room for [1-9][0-9]* traces", info.stdout), info.stdout
    assert re.search(r"(?m)^VM 0x[0-9a-f]+ in .*: [1-9][0-9]* traces", traces.stdout), traces.stdout


def test_info(runtime):
    with ljspy.program(runtime, "main") as target:
        result = ljspy.run("info", "-p", target.pid)
    assert result.returncode == ljspy.OK, result.stderr
    assert str(target.pid) in result.stdout
    assert "LuaJIT" in result.stdout
    assert str(ljspy.luajit(runtime).resolve()) in result.stdout
    assert re.search(r"(?m)^  1 Lua state$", result.stdout)
    assert f"can be profiled: ljspy record -p {target.pid}" in result.stdout
    assert "0x" not in result.stdout


def test_another_lua_is_named(command):
    argv = [ljspy.PACKAGES / "lua5.1/usr/bin/lua5.1", "-e", "while true do end"]
    with ljspy.Target(argv) as target:
        assert ljspy.wait_until(lambda: "python" not in ljspy.status_field(target.pid, "Name"))
        result = ljspy.run(*command, "-p", target.pid)
    assert result.returncode == ljspy.NOTHING_PROFILED
    says(result, target.pid, "runs PUC Lua 5.1, which ljspy does not know")


@pytest.mark.parametrize("shell", (False, True), ids=("itself", "in a shell"))
def test_another_lua_that_ljspy_starts_is_named(shell, tmp_path):
    argv = [str(ljspy.PACKAGES / "lua5.1/usr/bin/lua5.1"), "-e", "for i = 1, 1e8 do end os.exit(3)"]
    if shell:
        argv = ["sh", "-c", f"{shlex.join(argv)}; exit 3"]
    result = ljspy.run("record", "--subprocesses", "-o", tmp_path / "out.svg", "--", *argv)
    assert result.returncode == 3
    says(result, "runs PUC Lua 5.1, which ljspy does not know")
    assert not (tmp_path / "out.svg").exists()


@pytest.mark.parametrize(
    "arguments, meant",
    [(["recrod"], "`ljspy record`"), (["record", "--frmat=svg"], "--format"), (["help", "dupm"], "`ljspy dump`"),
     (["report", "--merge-recursoin"], "--merge-recursion")],
    ids=" ".join,
)
def test_what_was_meant_is_told(arguments, meant):
    result = ljspy.run(*arguments)
    assert result.returncode == ljspy.USAGE
    says(result, f"Did you mean {meant}?")


@pytest.mark.parametrize("nonsense", [["zzz"], ["record", "--zzz"]], ids=" ".join)
def test_nothing_is_suggested_for_what_is_like_nothing(nonsense):
    result = ljspy.run(*nonsense)
    assert result.returncode == ljspy.USAGE
    assert "zzz" in result.stderr and "Did you mean" not in result.stderr


def test_help_of_a_command():
    assert ljspy.run("help", "record").stdout == ljspy.run("record", "--help").stdout != ""
    assert ljspy.run("help").stdout == ljspy.run("--help").stdout != ""
    assert ljspy.run("help", "record", "dump").returncode == ljspy.USAGE


# Ends after half a second of CPU time from when it is traced, however long ljspy takes to come.
ENDS_EARLY = r"""
local function is_traced()
	local file = io.open("/proc/self/status")
	local status = file:read("*a")
	file:close()
	return not status:find("TracerPid:%s+0\n")
end
io.write("ready\n") io.flush()
while not is_traced() do end
local finish = os.clock() + 0.5
while os.clock() < finish do end
"""


def test_target_that_ends_early_is_written(tmp_path):
    with ljspy.Target([ljspy.luajit("luajit"), "-e", ENDS_EARLY]).wait_ready() as target:
        recording = ljspy.record(tmp_path, "-p", target.pid, seconds=40)
    assert recording.samples


def test_target_that_is_killed_is_written(tmp_path, busy):
    recorder = ljspy.Recorder(tmp_path, "-p", busy.pid, seconds=ljspy.RECORDING_SECONDS)
    ljspy.wait_traced(busy.pid)
    ljspy.await_work(busy.pid, ljspy.cpu_ns(busy.pid) + WORK_NS, recorder.process)
    busy.process.send_signal(signal.SIGTERM)
    assert recorder.finish().samples
    assert busy.process.wait() == -signal.SIGTERM


@pytest.mark.parametrize("interrupt", [signal.SIGINT, signal.SIGTERM], ids=lambda s: s.name)
def test_interrupted_recording_is_written(tmp_path, busy, interrupt):
    recorder = ljspy.Recorder(tmp_path, "-p", busy.pid, seconds=ljspy.RECORDING_SECONDS)
    ljspy.wait_traced(busy.pid)
    ljspy.await_work(busy.pid, ljspy.cpu_ns(busy.pid) + WORK_NS, recorder.process)
    recorder.process.send_signal(interrupt)
    assert recorder.finish().samples


def record(target, *options, **how):
    """Until the target has had enough CPU time for samples, however long that takes."""
    return ljspy.run_beside(target.pid, WORK_NS / 1e9, "record", "-p", target.pid, *options, **how)


# Longer than run() allows, so ljspy must report the error before it records.
LONG = ["record", "-d", "10m"]


@pytest.mark.parametrize("output", ["missing/profile.svg", "."], ids=("no such directory", "a directory"))
def test_output_that_cannot_be_written_is_told_at_once(tmp_path, busy, output):
    result = ljspy.run(*LONG, "-f", "svg", "-o", tmp_path / output, "-p", busy.pid, timeout=20)
    assert result.returncode == ljspy.NOTHING_PROFILED
    says(result, tmp_path / output)


def test_statistics_that_cannot_be_written_are_told_at_once(tmp_path, busy):
    arguments = ["-o", tmp_path / "profile.svg", "--stats", tmp_path / "missing/stats.json"]
    result = ljspy.run(*LONG, *arguments, "-p", busy.pid, timeout=20)
    assert result.returncode == ljspy.NOTHING_PROFILED
    says(result, tmp_path / "missing/stats.json")


@pytest.mark.parametrize("output_format", ["svg", "folded"])
def test_full_disk(busy, output_format):
    result = record(busy, "-f", output_format, "-o", "/dev/full")
    assert result.returncode in (ljspy.WITH_ERRORS, ljspy.NOTHING_PROFILED)
    assert "/dev/full: No space left on device" in result.stderr


def test_full_disk_behind_standard_output(busy):
    with open("/dev/full", "w", encoding="ascii") as full:
        result = record(busy, "-f", "folded", "-o", "-", stdout=full)
    assert result.returncode in (ljspy.WITH_ERRORS, ljspy.NOTHING_PROFILED)
    assert "No space left on device" in result.stderr


@pytest.mark.parametrize("words", ["--help", "--version", "help record", "record --help"])
def test_help_that_cannot_be_written_is_an_error(words):
    with open("/dev/full", "w", encoding="ascii") as full:
        result = ljspy.run(*words.split(), capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert result.returncode == ljspy.NOTHING_PROFILED
    assert result.stderr == "ljspy: standard output: No space left on device\n"


def test_standard_output_is_the_profile_and_nothing_else(busy):
    result = record(busy, "-f", "folded", "-o", "-")
    assert result.returncode == ljspy.OK, result.stderr
    assert stacks.parse_folded(result.stdout)


def closing(redirections):
    """The command line that closes standard files by the shell's REDIRECTIONS, and runs the rest."""
    return ["sh", "-c", f'exec "$@" {redirections}', "sh"]


@pytest.mark.parametrize("command", [["record", "-d", "200ms", "-f", "folded", "-o", "-"], ["dump"], ["heap"], ["info"]], ids=lambda c: c[0])
def test_standard_output_that_is_closed_is_an_error(busy, command):
    result = ljspy.run(*command, "-p", busy.pid, through=closing(">&-"), timeout=20)
    assert result.returncode in (ljspy.WITH_ERRORS, ljspy.NOTHING_PROFILED)
    says(result, "standard output: Bad file descriptor")


def test_messages_go_nowhere_where_standard_error_is_closed(busy):
    result = record(busy, "-f", "folded", "-o", "-", through=closing("2>&-"))
    assert result.returncode == ljspy.OK
    assert stacks.parse_folded(result.stdout)


def test_files_are_written_where_all_standard_files_are_closed(busy, tmp_path):
    path = tmp_path / "profile.folded"
    result = record(busy, "-o", path, through=closing("<&- >&- 2>&-"))
    assert result.returncode == ljspy.OK
    assert stacks.parse_folded(path.read_text())


def test_format_follows_the_suffix(tmp_path, busy):
    result = record(busy, "-o", tmp_path / "profile.folded")
    assert result.returncode == ljspy.OK, result.stderr
    assert stacks.parse_folded((tmp_path / "profile.folded").read_text())


def test_launch_of_a_missing_command(tmp_path):
    result = ljspy.run("record", "-o", tmp_path / "profile.svg", "--", "/no/such/command")
    assert result.returncode == ljspy.NOTHING_PROFILED
    says(result, "/no/such/command", "No such file")
    assert not (tmp_path / "profile.svg").exists()


def test_launch_of_what_is_not_luajit(tmp_path):
    result = ljspy.run("record", "-o", tmp_path / "profile.svg", "--", "true")
    assert result.returncode == ljspy.NOTHING_PROFILED
    says(result, "LuaJIT")


def test_launched_command_keeps_its_standard_streams(tmp_path):
    argv = [ljspy.luajit("luajit"), "-e", "print(io.read()) for i = 1, 1e9 do end"]
    result = ljspy.run("record", "-o", tmp_path / "profile.svg", "--", *argv, input="spoken\n")
    assert result.stdout == "spoken\n"
