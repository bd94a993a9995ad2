# SPDX-License-Identifier: MIT
"""ljspy loses no recorded samples, and leaves no file behind without a message."""

import contextlib
import errno
import fcntl
import mmap
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time

import pytest

import ljspy
import stacks

pytestmark = pytest.mark.usefixtures("built")

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount, and be someone else")

UNFINISHED = ".unfinished.ljspy"


@pytest.fixture(scope="module")
def busy():
    with ljspy.busy(limit=300) as target:
        yield target


@pytest.fixture
def small():
    """Returns a function: shell commands that mount a file system of SIZE, and its directory."""
    with tempfile.TemporaryDirectory() as directory:
        yield lambda size, then="true": (f"mount -t tmpfs -o mode=0755,{size} none {directory} && cd {directory} && {then}", pathlib.Path(directory))


@pytest.mark.parametrize("options", [["-o", "x.svg"], ["-o", "x.ljspy"], ["--blocked", "-o", "x.ljspy"]], ids=" ".join)
def test_what_nobody_reads_holds_no_output(tmp_path, busy, options):
    """Its messages go to a pipe that is full from the beginning."""
    with ljspy.stalled_pipe() as writing:
        argv = [ljspy.LJSPY, "record", "-d", "1s", *options, "-p", str(busy.pid)]
        with subprocess.Popen(argv, cwd=tmp_path, stderr=writing) as recorder:
            try:
                assert recorder.wait(timeout=60) == ljspy.OK
            finally:
                recorder.kill()
    assert (tmp_path / options[-1]).stat().st_size > 0


def lines(result):
    return [line for line in result.stderr.splitlines() if line.startswith("ljspy: ")]


def recovery(result):
    """The file that the message names, and the command that makes the output from it."""
    [told] = [line for line in lines(result) if "What was recorded is in" in line]
    path, command = told.split("What was recorded is in ")[1].split(": ", 1)
    return pathlib.Path(path), command.split()


# -- A full disk --


@as_root
def test_disk_that_is_too_small_for_the_output(busy, small, tmp_path):
    """The recording fits beside the output, and can be rendered elsewhere."""
    setup, directory = small("size=40k")
    script = f"'{ljspy.LJSPY}' record -d 2s -r 997 -o x.svg -p {busy.pid}; status=$?; ls -A; cp x.svg{UNFINISHED} '{tmp_path}'; exit $status"
    through = ljspy.in_namespaces("-m", setup=setup, argv=["sh", "-c", script])
    result = subprocess.run(through, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == ljspy.WITH_ERRORS, result.stderr
    assert result.stdout.split() == ["x.svg" + UNFINISHED]
    assert "x.svg: No space left on device" in result.stderr
    path, command = recovery(result)
    assert str(path) == "x.svg" + UNFINISHED
    assert command == ["ljspy", "report", str(path), "-o", "x.svg"]
    assert not any(directory.iterdir())
    rendered = ljspy.run(*command[1:], cwd=tmp_path)
    assert rendered.returncode == ljspy.OK, rendered.stderr
    assert "heavy" in (tmp_path / "x.svg").read_text()


@as_root
def test_disk_that_is_too_small_for_the_recording(busy, small, tmp_path):
    """ljspy goes on in a directory for temporary files, and loses no sample."""
    setup, _ = small("size=4k")
    arguments = ["record", "-d", "2500ms", "-r", "9997", "--lines", "-o", "x.svg", "--stats", tmp_path / "s.json", "-p", busy.pid]
    through = ljspy.in_namespaces("-m", setup=setup, argv=["env", f"TMPDIR={tmp_path}"])
    result = ljspy.run(*arguments, through=through)
    assert result.returncode == ljspy.WITH_ERRORS, result.stderr
    assert "ended early" not in result.stderr
    path, command = recovery(result)
    assert path == tmp_path / ("x.svg" + UNFINISHED)
    assert command == ["ljspy", "report", str(path), "--lines", "-o", "x.svg"]
    report = ljspy.run("report", path, "-f", "json", "-o", "-")
    assert report.returncode == ljspy.OK, report.stderr
    samples = int(result.stderr.split("samples  ")[1].split()[0])
    text = ljspy.run("report", path).stdout
    assert f"{samples} samples" in text


def test_file_that_may_not_grow(busy, tmp_path):
    """SIGXFSZ ends none of ljspy's processes."""
    result = ljspy.run("record", "-d", "1500ms", "-o", tmp_path / "x.svg", "-p", busy.pid, through=("prlimit", "--fsize=8192"))
    assert result.returncode == ljspy.WITH_ERRORS, result.stderr
    assert "x.svg: File too large" in result.stderr
    path, command = recovery(result)
    assert os.listdir(tmp_path) == [path.name]
    assert ljspy.run(*command[1:]).returncode == ljspy.OK
    assert "heavy" in (tmp_path / "x.svg").read_text()


@pytest.mark.parametrize("command", ["info", "dump", "memory", "heap"])
@pytest.mark.parametrize("size", [0, 50])
def test_what_a_limit_of_files_cuts_is_not_all(busy, command, size):
    """The output goes to pipes, which have no such limit."""
    result = ljspy.run(command, "-p", busy.pid, through=("prlimit", f"--fsize={size}"))
    assert result.returncode in (ljspy.WITH_ERRORS, ljspy.NOTHING_PROFILED)
    assert len(result.stdout) == size
    assert f"more than {size} bytes" in result.stderr and "ulimit -f" in result.stderr


def test_reader_that_goes_away(busy, tmp_path):
    """A file also contains what standard output was to get."""
    arguments = [ljspy.LJSPY, "record", "-d", "1500ms", "-f", "folded", "-o", "-", "-p", str(busy.pid)]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as recorder:
        recorder.stdout.close()
        errors = recorder.stderr.read().decode()
    assert recorder.returncode == ljspy.WITH_ERRORS
    [left] = tmp_path.iterdir()
    assert f"Until the output is written, what it is made of is in {left}." in errors
    path, command = recovery(subprocess.CompletedProcess([], 1, stderr=errors))
    assert path == left and command[2:] == [str(left), "-f", "folded"]
    report = ljspy.run(*command[1:])
    assert report.returncode == ljspy.OK
    assert ljspy.weight_of(stacks.parse_folded(report.stdout), ljspy.has_frame("heavy"))


# -- Signals --


def start(path, pid, *options):
    arguments = [ljspy.LJSPY, "record", "-o", path, "-p", str(pid), *options]
    return subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def end(recorder, signal_number):
    recorder.send_signal(signal_number)
    errors = recorder.stderr.read().decode()
    recorder.stderr.close()
    return recorder.wait(30), errors


@contextlib.contextmanager
def recorders_of(count):
    """Targets, one for each recorder: only one process can trace a target."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(ljspy.busy(limit=120)) for _ in range(count)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT], ids=lambda s: s.name)
def test_signal_ends_a_recording_which_is_written(busy, tmp_path, number):
    recorder = start(tmp_path / "x.svg", busy.pid)
    assert ljspy.wait_until((tmp_path / f"x.svg{UNFINISHED}").exists)
    status, errors = end(recorder, number)
    assert status == ljspy.OK, errors
    assert os.listdir(tmp_path) == ["x.svg"]


@pytest.mark.parametrize("refused", [False, True], ids=["nameless files", "none"])
def test_what_a_kill_leaves_is_found_and_then_replaced(busy, tmp_path, refused):
    """With and without O_TMPFILE."""
    output, left = tmp_path / "x.svg", tmp_path / f"x.svg{UNFINISHED}"
    through = [ljspy.helper("refused"), "tmpfile", "95"] if refused else []
    arguments = [*map(str, through), ljspy.LJSPY, "record", "-o", output, "-p", str(busy.pid)]
    with subprocess.Popen(arguments, stderr=subprocess.DEVNULL) as recorder:
        assert ljspy.wait_until(left.exists)
        recorder.kill()
    assert left.stat().st_size
    report = ljspy.run("report", output, "-f", "folded")
    assert report.returncode == ljspy.OK, report.stderr
    assert f"what was recorded for it is in {left}" in report.stderr
    assert stacks.parse_folded(report.stdout)
    result = ljspy.run("record", "-d", "1500ms", "-o", output, "-p", busy.pid, through=through)
    assert result.returncode == ljspy.OK, result.stderr
    assert f"{left}, which a recording that was not finished had left, has been replaced." in result.stderr
    assert os.listdir(tmp_path) == ["x.svg"]


def test_a_recording_that_cannot_be_removed_is_named(busy, tmp_path):
    output, left, report = tmp_path / "x.svg", tmp_path / f"x.svg{UNFINISHED}", tmp_path / "report"
    through = [ljspy.helper("faulty"), "unlink", 1, 1000, errno.EACCES, report]
    result = ljspy.run("record", "-d", "1500ms", "-o", output, "-p", busy.pid, through=through)
    assert report.read_text().split()[1] == "1", "no call has failed"
    assert result.returncode == ljspy.OK, result.stderr
    assert f"{left}, which is needed no more, cannot be removed: {os.strerror(errno.EACCES)}" in result.stderr
    assert sorted(os.listdir(tmp_path)) == ["report", "x.svg", left.name]


def test_two_at_once_do_not_share(tmp_path):
    """The output of the one that ends last has the name."""
    with recorders_of(2) as targets:
        first = start(tmp_path / "x.svg", targets[0].pid)
        assert ljspy.wait_until((tmp_path / f"x.svg{UNFINISHED}").exists)
        second = start(tmp_path / "x.svg", targets[1].pid)
        assert ljspy.wait_until((tmp_path / "x.svg.unfinished-2.ljspy").exists)
        assert end(second, signal.SIGINT)[0] == ljspy.OK
        written = (tmp_path / "x.svg").read_bytes()
        assert end(first, signal.SIGINT)[0] == ljspy.OK
    assert os.listdir(tmp_path) == ["x.svg"]
    assert (tmp_path / "x.svg").read_bytes() != written


def test_interrupt_while_rendering_tells_what_is_left(busy, tmp_path):
    """A reader that does not read keeps rendering from ending."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    arguments = [ljspy.LJSPY, "record", "-r", "4999", "-f", "json", "-o", "-", "-p", str(busy.pid)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as recorder:
        # On a busy machine there are few samples, and the output is small.
        fcntl.fcntl(recorder.stdout, fcntl.F_SETPIPE_SZ, mmap.PAGESIZE)
        assert ljspy.wait_until(lambda: any(tmp_path.iterdir()))
        time.sleep(0.5)
        recorder.send_signal(signal.SIGINT)
        assert ljspy.wait_until(lambda: ljspy.status_field(busy.pid, "TracerPid") == "0")
        time.sleep(0.5)
        recorder.send_signal(signal.SIGINT)
        assert recorder.wait(20) == -signal.SIGINT
        errors = recorder.stderr.read().decode()
    path, command = recovery(subprocess.CompletedProcess([], 1, stderr=errors))
    assert [path] == list(tmp_path.iterdir())
    assert ljspy.run(*command[1:], "-o", tmp_path / "x.json").returncode == ljspy.OK


# -- Rights --


@as_root
@pytest.mark.parametrize("output_format", ["svg", "ljspy"])
@pytest.mark.parametrize("there", [False, True], ids=["new", "replaced"])
def test_files_are_written_with_the_rights_of_who_started_ljspy(small, output_format, there):
    """Root without CAP_SYS_PTRACE takes on the target's user, which may not write there."""
    name = f"x.{output_format}"
    setup, _ = small("size=10m", f"echo before > {name}" if there else "true")
    with ljspy.busy(user=ljspy.NOBODY) as target:
        through = [*ljspy.in_namespaces("-m", setup=setup, argv=["sh", "-c", '"$@"; status=$?; ls -A; wc -c < ' + name + "; exit $status", "sh"]), *ljspy.WITHOUT_CAPABILITY]
        result = ljspy.run("record", "-d", "1500ms", "-o", name, "--stats", "s.json", "-p", target.pid, through=through)
    assert result.returncode == ljspy.OK, result.stderr
    *names, size = result.stdout.split()
    assert names == ["s.json", name]
    assert int(size) > 500


def refused(result, status, *words):
    """Check a refusal: a line with the cause, then one with the remedy."""
    assert result.returncode == status, result.stderr
    assert len(lines(result)) == len(result.stderr.splitlines()) == 2, result.stderr
    for word in words:
        assert word in result.stderr, result.stderr


def try_to_record(*arguments, **options):
    """Record a command that leaves a file if it runs."""
    command = [ljspy.luajit("luajit"), "-e", "io.open('started', 'w'):close()"]
    return ljspy.run("record", *arguments, "--", *command, **options)


@pytest.mark.parametrize("option", ["-o", "--stats"])
@pytest.mark.parametrize(
    "path, status, words",
    [
        ("", ljspy.USAGE, ["is given no name of a file", "Name one"]),
        ("missing/x.svg", ljspy.NOTHING_PROFILED, ["missing/x.svg cannot be written: there is no directory missing", "Make it, or name a file elsewhere with"]),
        ("missing.svg/", ljspy.NOTHING_PROFILED, ["is a directory"]),
        ("directory.svg", ljspy.NOTHING_PROFILED, ["directory.svg is a directory", "directory.svg/NAME"]),
        ("file/x.svg", ljspy.NOTHING_PROFILED, ["there is no directory file"]),
    ],
    ids=["empty", "nowhere", "slash", "directory", "below a file"],
)
def test_output_that_cannot_be_is_refused_at_the_start(tmp_path, option, path, status, words):
    (tmp_path / "directory.svg").mkdir()
    (tmp_path / "file").write_text("")
    before = sorted(os.listdir(tmp_path))
    others = [] if option == "-o" else ["-o", "y.svg"]
    result = try_to_record("-f", "svg", option, path, *others, cwd=tmp_path)
    refused(result, status, option if status == ljspy.USAGE else path, *words)
    assert sorted(os.listdir(tmp_path)) == before


def test_current_directory_that_has_been_removed(tmp_path):
    (tmp_path / "gone").mkdir()
    removing = ["sh", "-c", 'rmdir ../gone && exec "$@"', "sh"]
    result = try_to_record("-f", "svg", "-o", "x.svg", cwd=tmp_path / "gone", through=removing)
    refused(result, ljspy.NOTHING_PROFILED, "x.svg", "the current directory has been removed", "Change to another one")


def test_current_directory_that_takes_no_files():
    result = try_to_record("-f", "svg", "-o", "x.svg", cwd="/proc")
    refused(result, ljspy.NOTHING_PROFILED, "x.svg", "the current directory /proc may not be written to", "-o /tmp/x.svg")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_pipe_that_nobody_reads(number, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    argv = [ljspy.LJSPY, "record", "-p", str(os.getpid()), "-f", "svg", "-o", "pipe"]
    with subprocess.Popen(argv, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert "Nobody reads pipe yet" in process.stderr.readline()
            process.send_signal(number)
            assert process.wait(timeout=60) == -number
        finally:
            process.kill()
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_socket_is_not_waited_for(tmp_path):
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "sock"))
        listening.listen()
        result = try_to_record("-f", "svg", "-o", "sock", cwd=tmp_path)
    assert result.returncode == ljspy.NOTHING_PROFILED
    assert result.stderr == f"ljspy: sock: {os.strerror(errno.ENXIO)}\n"
    assert not (tmp_path / "started").exists()


def test_a_pipe_gets_its_reader_later(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with ljspy.busy() as target:
        argv = [ljspy.LJSPY, "record", "-p", str(target.pid), "-d", "1s", "-f", "folded", "-o", "pipe"]
        with subprocess.Popen(argv, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
            try:
                assert "Nobody reads pipe yet" in process.stderr.readline()
                assert (tmp_path / "pipe").read_text()
                assert process.wait(timeout=60) == ljspy.OK
            finally:
                process.kill()


@pytest.mark.parametrize("stats, output", [("x.svg", "x.svg"), ("./x.svg", "x.svg"), ("../{}/x.svg", "x.svg"), ("-", "-"), ("/dev/stdout", "-")])
def test_output_and_figures_are_two_files(tmp_path, stats, output):
    result = try_to_record("-f", "svg", "-o", output, "--stats", stats.format(tmp_path.name), cwd=tmp_path)
    refused(result, ljspy.USAGE, "-o and --stats", output, "Name two")
    assert os.listdir(tmp_path) == []


@as_root
@pytest.mark.parametrize("option", [[], ["-o", "x.svg"]], ids=["by default", "named"])
def test_current_directory_that_may_not_be_written_to(tmp_path, option):
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        result = try_to_record(*option, cwd=directory, user=ljspy.NOBODY)
        refused(result, ljspy.NOTHING_PROFILED, f"the current directory {directory} may not be written to", "Name a file elsewhere, such as -o /tmp/")


@as_root
@pytest.mark.parametrize("setup, advice", [("true", "Name a file elsewhere, such as -o /tmp/x.svg"), ("mount -o ro -t tmpfs none /tmp", "Name a file elsewhere with -o FILE")], ids=["elsewhere", "nowhere"])
def test_advice_names_a_place_that_may_be_written_to(setup, advice):
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        os.chmod(directory, 0o755)
        user = ["setpriv", f"--reuid={ljspy.NOBODY}", f"--regid={ljspy.NOBODY}", "--clear-groups"]
        through = ljspy.in_namespaces("-m", setup=setup, argv=user)
        result = try_to_record("-o", "x.svg", cwd=directory, through=through)
        refused(result, ljspy.NOTHING_PROFILED, f"the current directory {directory} may not be written to", advice)


def test_process_that_is_not_there_comes_before_files():
    """It is what to mend first, and without it no file would have its name."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    result = ljspy.run("record", "-p", gone.pid, cwd="/proc")
    assert result.returncode == ljspy.NOTHING_PROFILED
    assert result.stderr == f"ljspy: There is no process {gone.pid}.\n"


@as_root
def test_another_users_file_that_may_not_be_replaced():
    """As in /tmp. It is refused at once, not when the recording is over."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o1777)
        path = pathlib.Path(directory) / "x.svg"
        path.write_text("mine")
        path.chmod(0o666)
        result = try_to_record("-o", path, cwd=directory, user=ljspy.NOBODY)
        refused(result, ljspy.NOTHING_PROFILED, f"{path} cannot be written: it belongs to another user, and {directory} lets nobody else replace it.", "Name another file")
        assert path.read_text() == "mine"
        assert os.listdir(directory) == ["x.svg"]


@as_root
@pytest.mark.parametrize("change, owner, good", [
    (["--bounding-set=-fowner"], 1, False),
    (["--bounding-set=-fowner"], 0, True),
    ([f"--reuid={ljspy.NOBODY}", "--clear-groups", "--inh-caps=+fowner", "--ambient-caps=+fowner"], 1, True),
], ids=["root without the capability", "the directory's owner", "a user with the capability"])
def test_who_may_replace_another_users_file(change, owner, good, tmp_path):
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "x.svg"
        path.write_text("theirs")
        path.chmod(0o666)
        os.chown(path, 2, 2)
        os.chown(directory, owner, owner)
        os.chmod(directory, 0o1777)
        result = try_to_record("-o", path, cwd=tmp_path, through=["setpriv", *change])
        assert ("belongs to another user" in result.stderr) == (not good), result.stderr
        assert ("cannot be written" in result.stderr) == (not good), result.stderr


@as_root
def test_a_directory_that_may_not_be_changed(tmp_path):
    """The file's owner has nothing to do with it."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "x.svg"
        path.write_text("mine")
        if subprocess.run(["chattr", "+i", directory], capture_output=True, check=False).returncode:
            pytest.skip("no file can be made immutable here")
        try:
            result = try_to_record("-o", path, cwd=tmp_path)
        finally:
            subprocess.run(["chattr", "-i", directory], check=True)
        refused(result, ljspy.NOTHING_PROFILED, f"{directory} may not be written to (Operation not permitted)", "Name a file elsewhere")


@as_root
def test_file_that_may_not_be_written_to():
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o777)
        path = pathlib.Path(directory) / "x.svg"
        path.write_text("")
        path.chmod(0o644)
        result = try_to_record("-o", path, cwd=directory, user=ljspy.NOBODY)
        refused(result, ljspy.NOTHING_PROFILED, f"{path} cannot be written: Permission denied", "Name another file")
