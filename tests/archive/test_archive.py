# SPDX-License-Identifier: MIT
"""`ljspy record --every` writes recordings one after the other, without a gap, and keeps as
many as it may; `ljspy report` finds those of a time."""

import contextlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import time

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

NAME = re.compile(r"\d{8}T\d{6}Z-\d{6}\.ljspy")
RATE = 199
# Of a program that is recorded, in each recording; and how often to try.
ENOUGH_MS, TRIES = 100, 4


@contextlib.contextmanager
def archiving(directory, *options, every=1, stop=signal.SIGINT, status=ljspy.OK, **more):
    """Run `ljspy record --every` while the block runs. Yields the process; its messages are in
    its attribute messages afterwards."""
    argv = [ljspy.LJSPY, "record", "--every", f"{every}s", "-r", RATE, "-o", directory, *options]
    process = subprocess.Popen([str(a) for a in argv], stderr=subprocess.PIPE, text=True, **more)
    try:
        yield process
        process.send_signal(stop)
        process.messages = process.communicate(timeout=60)[1]
    finally:
        process.kill()
        process.wait()
    assert process.returncode == status, process.messages


def recordings(directory):
    """The archive's files in their order."""
    return sorted(directory.glob("*.ljspy"), key=lambda path: path.stem.rpartition("-")[2])


def count_reaches(directory, count):
    return ljspy.wait_until(lambda: len(recordings(directory)) >= count, seconds=60)


def report(*arguments, status=ljspy.OK):
    result = ljspy.run("report", *arguments)
    assert result.returncode == status, result.stderr
    return result


def figures(*arguments):
    """The figures of a report, as JSON."""
    return json.loads(report(*arguments, "-f", "json").stdout)["figures"]


def begin_s(path):
    return time.strptime(path.name[:16], "%Y%m%dT%H%M%SZ")


def take_archive(directory):
    """An archive of one busy program: the CPU time that the program had used at its beginning, when there were 2 to 7
    recordings, and at its end, in ms."""
    with ljspy.busy() as target:
        used = [ljspy.cpu_ns(target.pid)]
        with archiving(directory, "-p", target.pid):
            for count in range(2, 8):
                assert count_reaches(directory, count)
                used.append(ljspy.cpu_ns(target.pid))
        return [ns / 1e6 for ns in (*used, ljspy.cpu_ns(target.pid))]


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """A directory, and the least and the most CPU time that the program can have used meanwhile, in ms."""
    for _ in range(TRIES):
        directory = tmp_path_factory.mktemp("archive") / "kept"
        used = take_archive(directory)
        # Beside much else, a program may have no CPU for a second.
        if min(after - before for before, after in zip(used[1:-2], used[2:-1])) > ENOUGH_MS:
            break
    return directory, used[-2] - used[1], used[-1] - used[0]


def test_who_reads_messages_stalls(tmp_path):
    """What nobody reads holds neither the recording nor its end."""
    directory = tmp_path / "kept"
    argv = [ljspy.LJSPY, "record", "--every", "1s", "-o", directory, "-p"]
    with ljspy.busy() as target, ljspy.stalled_pipe() as writing:
        with subprocess.Popen([*argv, str(target.pid)], stderr=writing) as recorder:
            assert count_reaches(directory, 2)
            recorder.send_signal(signal.SIGTERM)
            try:
                assert recorder.wait(timeout=60) == ljspy.OK
            finally:
                recorder.kill()
    assert figures(directory)["samples"] > 0


def test_no_time_is_lost_between_recordings(archive):
    directory, least_ms, most_ms = archive
    files = recordings(directory)
    each = [figures(path) for path in files]
    total = sum(f["target_cpu_ms"] for f in each)
    assert 0 < least_ms <= total <= most_ms
    assert abs(figures(directory)["target_cpu_ms"] - total) < 1
    assert all(f["samples"] for f in each[1:-1])
    assert figures(directory)["samples"] == sum(f["samples"] for f in each)


def test_each_recording_is_whole_and_named_by_its_time(archive):
    files = recordings(archive[0])
    assert all(NAME.fullmatch(path.name) for path in files)
    assert all("no end" not in report(path).stderr for path in files)
    for path in files:
        begins = re.search(r"^(\S+ \S+) UTC, ", report(path).stdout, re.MULTILINE)[1]
        assert begins == time.strftime("%Y-%m-%d %H:%M:%S", begin_s(path))


def test_report_finds_the_recordings_of_a_time(archive):
    directory = archive[0]
    files = recordings(directory)
    since, until = (time.strftime("%H:%M:%SZ", begin_s(path)) for path in (files[2], files[4]))
    chosen = figures(directory, "--since", since, "--until", until)
    expected = sum(figures(path)["samples"] for path in files[2:4])
    assert chosen["samples"] == expected > 0
    dated = time.strftime("%Y-%m-%dT%H:%M:%SZ", begin_s(files[2]))
    assert figures(directory, "--since", dated, "--until", until)["samples"] == expected
    # Local time, a part of a recording, one file, and times after the beginning.
    env = os.environ | {"TZ": "EST5"}
    local = time.strftime("%H:%M:%S", time.gmtime(time.mktime(begin_s(files[2])) - 5 * 3600))
    result = ljspy.run("report", directory, "--since", local, "-f", "json", env=env)
    assert json.loads(result.stdout)["figures"]["samples"] == sum(figures(p)["samples"] for p in files[2:])
    assert figures(files[2], "--until", until)["samples"] == figures(files[2])["samples"]
    assert 0 < figures(directory, "--since", "1s", "--until", "2s")["samples"] < 2 * RATE


@pytest.mark.parametrize("since, until", ((None, "1s"), ("700ms", "2s"), ("1500ms", "2400ms")))
def test_times_after_the_beginning_are_exact(archive, since, until):
    """Whatever the second that names its first recording: an archive begins where that does."""
    directory = archive[0]
    files = recordings(directory)
    documents = [json.loads(report(path, "-f", "json", "-o", "-").stdout) for path in files]
    begin_ns = documents[0]["session"]["start_unix_ns"]
    low_ns, high_ns = (float(re.sub("ms$", "e6", re.sub(r"(?<!m)s$", "e9", text))) if text else 0 for text in (since, until))
    times = [document["session"]["start_unix_ns"] + sample["time_ns"] - begin_ns
             for document in documents for sample in document["samples"]]
    chosen = figures(directory, *(("--since", since) if since else ()), "--until", until)["samples"]
    assert chosen == sum(low_ns <= at < high_ns for at in times) > 0


def test_report_finds_what_ended_within_a_second(archive, tmp_path):
    """A name has the second in which its recording begins: the one before may end in the middle of it."""
    first, second = recordings(archive[0])[1:3]
    shutil.copy2(first, tmp_path / first.name)
    shutil.copy2(second, tmp_path / (first.name[:16] + second.name[16:]))
    since, until = (time.strftime("%Y-%m-%dT%H:%M:%S", begin_s(first)) + fraction for fraction in (".25Z", ".75Z"))
    chosen = figures(tmp_path, "--since", since, "--until", until)["samples"]
    assert chosen == figures(first, "--since", since, "--until", until)["samples"] > 0
    assert figures(tmp_path, "--since", since)["samples"] == sum(figures(path, "--since", since)["samples"] for path in (first, second))


def peak_kb(*arguments):
    """How much memory a report took at most."""
    process = subprocess.Popen([ljspy.LJSPY, "report", *map(str, arguments)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0
    return usage.ru_maxrss


def test_report_needs_memory_for_one_recording_at_a_time(archive):
    files = recordings(archive[0])
    assert len(files) >= 7
    one = max(peak_kb(path) for path in files[:3])
    # What reading takes, of each but one file, would be some 1.5 MB.
    assert peak_kb(archive[0]) < one + (len(files) - 1) * 500


def test_a_time_without_recordings_is_refused(archive):
    result = report(archive[0], "--since", "2001-02-03 04:05", "--until", "2001-02-03 04:06", status=2)
    assert "no recording of that time" in result.stderr
    assert time.strftime("%Y-", begin_s(recordings(archive[0])[0])) in result.stderr
    assert "is not a time" in report(archive[0], "--since", "25:00", status=ljspy.USAGE).stderr


def test_old_recordings_go_and_other_files_stay(tmp_path):
    for name in ("mine.ljspy", "20200101T000000Z-7.ljspy", "20200101T000000Z-000001.ljspy"):
        (tmp_path / name).write_text("x" * 10)
    with ljspy.busy() as target, archiving(tmp_path, "-p", target.pid, "--keep", "2s"):
        assert ljspy.wait_until(lambda: "000007" in " ".join(os.listdir(tmp_path)), seconds=60)
        names = os.listdir(tmp_path)
    assert {"mine.ljspy", "20200101T000000Z-7.ljspy"} < set(names)
    assert "20200101T000000Z-000001.ljspy" not in names
    assert 2 <= len([name for name in names if NAME.fullmatch(name)]) <= 5


def test_bytes_are_bounded(tmp_path):
    most = 1 << 20
    for i in range(8):
        (tmp_path / f"20200101T00000{i}Z-00000{i}.ljspy").write_bytes(bytes(most // 4))
    with ljspy.busy() as target, archiving(tmp_path, "-p", target.pid, "--keep-bytes", "1M"):
        assert ljspy.wait_until(lambda: "000010" in " ".join(os.listdir(tmp_path)), seconds=60)
        assert sum(path.stat().st_size for path in recordings(tmp_path)) <= most
        assert "20200101T000007Z-000007.ljspy" in os.listdir(tmp_path)


def test_it_waits_for_processes_of_a_name(tmp_path):
    program = tmp_path / "comes-and-goes.lua"
    program.write_text("local function heavy() for i = 1, 1e6 do end end while true do heavy() end")
    directory = tmp_path / "kept"
    pids = []
    with archiving(directory, "--name", "comes-and-goes") as process:
        assert count_reaches(directory, 1)
        for _ in range(2):
            with ljspy.Target([ljspy.luajit("luajit"), program]) as target:
                ljspy.wait_traced(target.pid)
                ljspy.await_work(target.pid, ljspy.cpu_ns(target.pid) + 0.3e9, process)
                pids.append(target.pid)
    text = report(directory, "--by", "pid").stdout
    assert all(f"(pid {pid})" in text for pid in pids)


@pytest.mark.parametrize("target", [("-p", str(os.getpid())), ("--", "/nonexistent")])
def test_nothing_is_left_of_a_recording_that_never_began(target, tmp_path):
    (tmp_path / "there").mkdir()
    for name in ("there", "made"):
        result = ljspy.run("record", "--every", "1s", "-o", tmp_path / name, *target)
        assert result.returncode == ljspy.NOTHING_PROFILED and result.stderr
    assert os.listdir(tmp_path) == ["there"]
    assert not os.listdir(tmp_path / "there")


def test_a_command_without_luajit_is_told_and_leaves_nothing(tmp_path):
    with ljspy.busy() as target, archiving(tmp_path / "there", "-p", target.pid):
        assert count_reaches(tmp_path / "there", 2)
    before = recordings(tmp_path / "there")
    for name in ("there", "made"):
        result = ljspy.run("record", "--every", "1s", "-o", tmp_path / name, "--", "sleep", "3")
        assert result.returncode == ljspy.NOTHING_PROFILED
        assert "sleep did not run LuaJIT." in result.stderr
    assert os.listdir(tmp_path) == ["there"]
    assert recordings(tmp_path / "there") == before


def test_what_was_written_survives_a_kill_and_the_next_goes_on(tmp_path):
    with ljspy.busy() as target:
        with archiving(tmp_path, "-p", target.pid, stop=signal.SIGKILL, status=-signal.SIGKILL):
            assert count_reaches(tmp_path, 4)
            before = sum(figures(path)["samples"] for path in recordings(tmp_path)[:3])
        written = figures(tmp_path)["samples"]
        assert written >= before > 0
        numbers = [path.stem[-6:] for path in recordings(tmp_path)]
        with archiving(tmp_path, "-p", target.pid):
            assert count_reaches(tmp_path, len(numbers) + 2)
            other = ljspy.run("record", "--every", "1s", "-o", tmp_path, "-p", target.pid)
            assert other.returncode == 2 and "Another ljspy" in other.stderr
    assert figures(tmp_path)["samples"] > written
    assert [path.stem[-6:] for path in recordings(tmp_path)][: len(numbers)] == numbers


def test_a_full_disk_is_said_once_and_left_behind(tmp_path):
    setup = f"mount -t tmpfs -o size=32k none {tmp_path} && head -c 24k /dev/zero > {tmp_path}/ballast"
    script = f"""
        "$1" record -p "$2" --every 1s -r 997 -o {tmp_path}/kept & recorder=$!
        for i in $(seq 600); do sleep 0.1; grep -q 'recording goes on' {tmp_path}.messages && break; done
        sleep 2; rm {tmp_path}/ballast
        for i in $(seq 600); do sleep 0.1; grep -q 'again' {tmp_path}.messages && break; done
        sleep 1; kill -INT $recorder; wait $recorder
        for form in text svg; do "$1" report {tmp_path}/kept -f $form > {tmp_path}.$form; done
        "$1" report {tmp_path}/kept -f json > {tmp_path}.json"""
    with ljspy.busy() as target:
        argv = ljspy.in_namespaces("-m", setup=setup, argv=["sh", "-c", script, "sh", ljspy.LJSPY, target.pid])
        with open(f"{tmp_path}.messages", "w", encoding="utf-8") as messages:
            subprocess.run(argv, stderr=messages, check=False, timeout=200)
    said = pathlib.Path(f"{tmp_path}.messages").read_text()
    if "mount:" in said or "unshare:" in said:
        pytest.skip("no file system can be mounted here")
    missing = int(re.search(r"(\d+) samples? could not be written", said)[1])
    taken = int(re.search(r"^samples  (\d+)", said, re.MULTILINE)[1])
    figures_of_all = json.loads(pathlib.Path(f"{tmp_path}.json").read_text())["figures"]
    written = figures_of_all["samples"]
    assert said.count("No space left") - said.count("written to again") in (0, 1)
    assert said.count("--keep-bytes") == said.count("No space left")
    assert said.count("written to again") >= 1
    assert missing > 0 and written > 0
    assert written + missing == taken
    # Whoever reads the recordings learns it.
    assert figures_of_all["dropped"] == missing
    head = pathlib.Path(f"{tmp_path}.text").read_text().splitlines()[1]
    assert head.endswith(f"; {figures_of_all['dropped']} more are not recorded")
    assert f"missed, {figures_of_all['dropped']} samples not recorded, " in pathlib.Path(f"{tmp_path}.svg").read_text()


def test_what_is_no_recording_is_left_out(tmp_path):
    """A crash of the machine may leave a file of zeros. It is not to keep the others from being read."""
    for number in (1, 3):
        with ljspy.busy() as target:
            path = tmp_path / f"20261123T14020{number}Z-00000{number}.ljspy"
            result = ljspy.run_beside(target.pid, 0.5, "record", "-p", target.pid, "-o", path)
        assert result.returncode == ljspy.OK, result.stderr
    whole = figures(tmp_path)
    for number in (0, 2, 4):
        (tmp_path / f"20261123T14020{number}Z-00000{number}.ljspy").write_bytes(bytes(3000))
    result = ljspy.run("report", tmp_path, "-f", "json")
    assert result.returncode == ljspy.WITH_ERRORS
    assert result.stderr.count("is not a recording of ljspy: it is left out") == 3
    assert json.loads(result.stdout)["figures"] == whole
    # A file that was named is wanted: without it, the report would not be the one that was asked for.
    named = tmp_path / "named.txt"
    named.write_text("no recording\n")
    result = ljspy.run("report", tmp_path, named)
    assert result.returncode == ljspy.NOTHING_PROFILED and not result.stdout
    assert f"{named} is not a recording of ljspy." in result.stderr
    for number in (1, 3):
        (tmp_path / f"20261123T14020{number}Z-00000{number}.ljspy").write_bytes(bytes(3000))
    result = ljspy.run("report", tmp_path)
    assert result.returncode == ljspy.NOTHING_PROFILED and not result.stdout


def test_a_directory_that_was_removed_is_made_again(tmp_path):
    directory = tmp_path / "kept"
    with ljspy.busy() as target, archiving(directory, "-p", target.pid):
        assert count_reaches(directory, 2)
        newest = max(path.stem[-6:] for path in recordings(directory))
        inode = directory.stat().st_ino
        while directory.exists() and directory.stat().st_ino == inode:  # it may just have got another recording
            shutil.rmtree(directory, ignore_errors=True)
        assert ljspy.wait_until(directory.exists) and count_reaches(directory, 2)
        assert all(path.stem[-6:] > newest for path in recordings(directory))
    assert figures(directory)["samples"] > 0


def test_a_directory_that_was_moved_away_is_left_alone(tmp_path):
    directory, aside = tmp_path / "kept", tmp_path / "incident"
    with ljspy.busy() as target, archiving(directory, "-p", target.pid, "--keep", "2s"):
        assert count_reaches(directory, 3)
        directory.rename(aside)
        assert ljspy.wait_until(directory.exists) and count_reaches(directory, 1)
        moved = recordings(aside)
        newest = max(path.stem[-6:] for path in moved)
        assert ljspy.wait_until(lambda: any(int(path.stem[-6:]) > int(newest) + 5 for path in recordings(directory)))
        assert recordings(aside) == moved
        assert all(path.stem[-6:] > newest for path in recordings(directory))
    assert figures(aside)["samples"] > 0 and figures(directory)["samples"] > 0


def test_a_file_that_takes_no_more_is_given_up_at_its_end(tmp_path):
    directory = tmp_path / "kept"
    with ljspy.busy() as target, archiving(directory, "-p", target.pid, every=3,
                                           status=ljspy.WITH_ERRORS) as process:
        assert ljspy.wait_until(lambda: recordings(directory) and recordings(directory)[-1].stat().st_size > 200)
        most = recordings(directory)[-1].stat().st_size
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
        assert count_reaches(directory, len(recordings(directory)) + 3)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert count_reaches(directory, len(recordings(directory)) + 2)
    assert process.messages.count("File too large") >= 1
    missing = int(re.search(r"(\d+) samples? could not be written", process.messages)[1])
    taken = int(re.search(r"^samples  (\d+)", process.messages, re.MULTILINE)[1])
    assert missing > 0 and figures(directory)["samples"] + missing == taken


def test_a_clock_that_is_set_begins_a_recording(tmp_path):
    directory = tmp_path / "kept"
    env, ahead = ljspy.clock_that_can_be_set(tmp_path)
    with ljspy.busy() as target, archiving(directory, "-p", target.pid, every=1000, env=env) as process:
        assert count_reaches(directory, 1)
        for seconds in ("3456000", "-3600", "-600 3000"):
            count = len(recordings(directory))
            (tmp_path / "next").write_text(seconds)
            (tmp_path / "next").rename(ahead)
            assert count_reaches(directory, count + 1)
    assert re.findall(r"The clock was set by (\S+) s", process.messages) == ["3456000", "-3459600"]
    assert process.messages.count("The machine was suspended for 3000 s: a new recording begins") == 1
    first, later, earlier = (time.mktime(begin_s(path)) for path in recordings(directory)[:3])
    assert later - first >= 40 * 24 * 3600
    assert -3700 < earlier - first <= -3500
    assert all(figures(path)["samples"] for path in recordings(directory)[1:])


@pytest.mark.parametrize("arguments, said", [
    (["--every", "1m"], "-o names the directory"),
    (["--every", "1m", "-o", "x", "-f", "svg"], "recordings only"),
    (["--every", "1m", "-o", "x", "--blocked"], "--blocked"),
    (["--every", "100ms", "-o", "x"], "a second or more"),
    (["--every", "1m", "--keep", "30s", "-o", "x"], "longer than --every"),
    (["--every", "1m", "--keep-bytes", "1k", "-o", "x"], "not a size"),
    (["--keep", "1m", "-o", "x"], "--every so often"),
])
def test_options_that_make_no_sense_together(arguments, said):
    result = ljspy.run("record", "-p", os.getpid(), *arguments)
    assert result.returncode == ljspy.USAGE
    assert said in result.stderr


def test_an_empty_directory_has_no_recordings(tmp_path):
    assert "has no recordings" in report(tmp_path, status=2).stderr
