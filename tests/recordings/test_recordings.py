# SPDX-License-Identifier: MIT
"""One recording can be shown in many ways, even if the ljspy that made it was
interrupted."""

import collections
import json
import os
import pathlib
import pty
import re
import resource
import signal
import subprocess
import time

import pytest

import ljspy
import stacks

pytestmark = pytest.mark.usefixtures("built")

HERE = pathlib.Path(__file__).resolve().parent


def report(*arguments, status=ljspy.OK, **options):
    result = ljspy.run("report", *arguments, **options)
    assert result.returncode == status, result.stderr
    return result


def folded(*arguments, **options):
    """Stacks and their weights, in microseconds."""
    lines = report(*arguments, "-f", "folded", **options).stdout.splitlines()
    return {stack: int(weight) for stack, weight in (line.rsplit(" ", 1) for line in lines)}


def same_weight(a, b):
    """Whether weights are equal: each stack is rounded to a microsecond separately."""
    return abs(a - b) <= 5


def record_program(path, name, *options):
    """Two seconds of its CPU time, and so at least as long."""
    with ljspy.program("luajit", name, jit="off") as target:
        arguments = ["-r", ljspy.HIGH_RATE, *options, "-o", path, "-p", target.pid]
        result = ljspy.run_beside(target.pid, 2, "record", *arguments)
    assert result.returncode == ljspy.OK, result.stderr
    return result


@pytest.fixture(scope="module")
def shares(tmp_path_factory):
    """A recording of shares.lua, with its figures beside it."""
    directory = tmp_path_factory.mktemp("shares")
    record_program(directory / "shares.ljspy", "shares", "--stats", directory / "stats.json")
    return directory / "shares.ljspy"


def test_report_is_what_was_recorded(shares):
    figures = json.loads((shares.parent / "stats.json").read_text())
    whole = folded(shares)
    assert abs(sum(whole.values()) / 1000 - figures["target_cpu_ms"]) < 1000 / ljspy.HIGH_RATE
    assert any("foo" in stack and "heavy" in stack for stack in whole)
    text = report(shares).stdout
    assert f"{figures['samples']} samples" in text
    assert "shares.lua" in text.splitlines()[0]


def test_a_direct_output_is_a_report_of_the_same_samples(tmp_path):
    """The recording behind a direct output has no name, but the figures count the same samples."""
    stats = tmp_path / "stats.json"
    record_program(tmp_path / "direct.folded", "shares", "--stats", stats)
    samples = stacks.parse_folded((tmp_path / "direct.folded").read_text())
    figures = json.loads(stats.read_text())
    assert abs(ljspy.weight_of(samples) / 1000 - figures["target_cpu_ms"]) < 1000 / ljspy.HIGH_RATE
    assert sorted(os.listdir(tmp_path)) == ["direct.folded", "stats.json"]


def test_text_has_the_totals_of_the_stacks(shares):
    whole = folded(shares)
    everything = sum(whole.values())
    total = sum(weight for stack, weight in whole.items() if re.search("foo", stack))
    own = sum(weight for stack, weight in whole.items() if re.search(r"heavy [^;]*$", stack))
    rows = {}
    for line in report(shares).stdout.splitlines():
        if found := re.match(r" *([\d.]+) ± ([\d.]+) +([\d.]+) ± ([\d.]+) +([\d.]+) +([\d.]+)  (\w+)", line):
            rows[found[7]] = [float(number) for number in found.groups()[:6]]
    assert rows["foo"][2] == pytest.approx(100 * total / everything, abs=0.02)
    assert rows["foo"][5] == pytest.approx(total / 1000, abs=0.1)
    assert rows["heavy"][0] == pytest.approx(100 * own / everything, abs=0.02)
    assert rows["heavy"][4] == pytest.approx(own / 1000, abs=0.1)
    assert 0 < rows["foo"][3] < 10


def test_callers_and_callees_are_named(shares):
    text = report(shares).stdout
    heavy = text.split("Callers and callees")[1].split("  heavy")[1].split("\n\n")[0]
    assert re.search("called by  foo", heavy) and re.search("called by  bar", heavy)
    foo = re.search(r"\n *[\d.]+ ± [\d.]+  foo.*?(\n\n|$)", text, re.DOTALL)[0]
    assert "called by  main chunk" in foo
    assert "calls      heavy" in foo


@pytest.mark.parametrize("name", ["again.ljspy", "x.svg", "x.folded"])
def test_any_format_can_be_written(shares, tmp_path, name):
    report(shares, "-o", tmp_path / name)
    assert (tmp_path / name).stat().st_size > 0
    if name.endswith(".ljspy"):
        assert folded(tmp_path / name) == folded(shares)
    elif name.endswith(".folded"):
        assert (tmp_path / name).read_text() == report(shares, "-f", "folded").stdout
    else:
        assert "heavy" in (tmp_path / name).read_text()


@pytest.mark.parametrize("option", ["--measure count", "--by type", "--by path"])
def test_options_that_only_heaps_have_are_refused(shares, option):
    result = ljspy.run("report", shares, *option.split())
    assert result.returncode == ljspy.USAGE
    assert result.stderr == f"ljspy: {option} is for heaps: {shares} is none.\n"


def test_a_recording_is_not_replaced_by_what_is_made_of_it(shares, tmp_path):
    path = tmp_path / "own.ljspy"
    path.write_bytes(shares.read_bytes())
    link = tmp_path / "link.svg"
    link.symlink_to(path)
    for arguments in (["report", path, "-f", "svg", "-o", path], ["report", path, "-o", link],
                      ["diff", shares, path, "-f", "svg", "-o", path]):
        result = ljspy.run(*arguments)
        assert result.returncode == ljspy.USAGE and "would replace" in result.stderr, result.stderr
    assert path.read_bytes() == shares.read_bytes()
    # A copy of a part may; one of nothing does not.
    report(path, "--since", "0.1s", "-o", path)
    assert folded(path)
    kept = path.read_bytes()
    result = ljspy.run("report", path, "--include", "nosuch", "-o", path)
    assert result.returncode == ljspy.USAGE and "would replace" in result.stderr, result.stderr
    assert path.read_bytes() == kept


def test_a_recording_is_not_replaced_by_what_is_made_of_its_directory(shares, tmp_path):
    path = tmp_path / "20260101T000000Z-000001.ljspy"
    path.write_bytes(shares.read_bytes())
    result = ljspy.run("report", tmp_path, "-f", "svg", "-o", path)
    assert result.returncode == ljspy.USAGE and "would replace" in result.stderr, result.stderr
    assert path.read_bytes() == shares.read_bytes()


# -- Interrupted and damaged --


def test_what_was_sampled_before_a_kill_can_be_read(tmp_path):
    path = tmp_path / "killed.ljspy"
    with ljspy.program("luajit", "shares") as target:
        arguments = ["record", "-r", str(ljspy.HIGH_RATE), "-o", path, "-p", str(target.pid)]
        with subprocess.Popen([ljspy.LJSPY, *arguments], stderr=subprocess.DEVNULL) as recorder:
            assert ljspy.wait_until(path.exists)
            first = path.stat().st_size
            assert ljspy.wait_until(lambda: path.stat().st_size > first)
            while_written = folded(path)
            second = path.stat().st_size
            assert ljspy.wait_until(lambda: path.stat().st_size > second)
            recorder.kill()
    result = report(path)
    assert "has no end" in result.stderr
    killed = folded(path)
    assert killed and while_written
    assert sum(killed.values()) > sum(while_written.values())
    # What only the end tells is not known, and stays so in a copy.
    copy = tmp_path / "copy.ljspy"
    assert report(path, "-o", copy).returncode == ljspy.OK
    for each in (path, copy):
        figures = json.loads(report(each, "-f", "json", "-o", "-").stdout)["figures"]
        assert figures["samples"] > 0 and figures["target_cpu_ms"] > 0
        assert all(figures[key] is None for key in ("missed_ticks", "dropped", "skid", "self_cpu_ms")), figures
        assert figures["pause_us"]["max"] is None and figures["rate_hz"]["asked"] is None
        picture = report(each, "-f", "svg", "-o", "-").stdout
        assert "the recording has no end" in picture and "pauses unknown" in picture
        assert "ticks missed" not in picture and "never paused" not in picture


def test_a_part_of_a_file_is_read_up_to_where_it_is_whole(shares, tmp_path):
    data = shares.read_bytes()
    before = 0
    for part in range(1, 11):
        path = tmp_path / "part.ljspy"
        path.write_bytes(data[: len(data) * part // 11])
        weight = sum(folded(path).values())
        assert weight >= before
        before = weight
    assert 0 < before <= sum(folded(shares).values())


def test_damage_is_told_and_what_comes_before_is_shown(shares, tmp_path):
    data = bytearray(shares.read_bytes())
    begin = len(data) * 2 // 3
    for at in range(begin, begin + 16):  # a single bit may be one that means nothing in compressed data
        data[at] ^= 0x40
    path = tmp_path / "damaged.ljspy"
    path.write_bytes(data)
    result = report(path, "-f", "folded", status=ljspy.WITH_ERRORS)
    assert "damaged" in result.stderr or "has no end" in result.stderr
    assert result.stdout


def test_what_follows_the_end_is_told(shares, tmp_path):
    path = tmp_path / "two.ljspy"
    for more in (shares.read_bytes(), b"\0"):
        path.write_bytes(shares.read_bytes() + more)
        result = report(path, "-f", "folded", status=ljspy.WITH_ERRORS)
        assert "goes on after the end" in result.stderr
        assert result.stdout == report(shares, "-f", "folded").stdout


def test_other_files_are_told_apart(shares, tmp_path):
    result = report(__file__, status=ljspy.NOTHING_PROFILED)
    assert "not a recording" in result.stderr
    result = report(tmp_path / "missing.ljspy", status=ljspy.NOTHING_PROFILED)
    assert "No such file" in result.stderr
    newer = bytearray(shares.read_bytes())
    newer[16] = 99
    (tmp_path / "newer.ljspy").write_bytes(newer)
    result = report(tmp_path / "newer.ljspy", status=ljspy.NOTHING_PROFILED)
    assert "newer ljspy" in result.stderr


def limit_files(size):
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


def test_a_full_disk_ends_a_recording_and_leaves_it_readable(tmp_path):
    path = tmp_path / "full.ljspy"
    with ljspy.program("luajit", "shares") as target:
        arguments = ["-d", f"{ljspy.WORK_SECONDS}s", "-r", ljspy.HIGH_RATE, "-o", path, "-p", target.pid]
        result = ljspy.run("record", *arguments, preexec_fn=limit_files(20000), timeout=ljspy.RECORDING_SECONDS)
    assert result.returncode == ljspy.WITH_ERRORS
    assert f"{path}: File too large" in result.stderr
    assert f"{path} can be read up to there" in result.stderr
    assert 10000 < path.stat().st_size <= 20000
    assert folded(path)


def test_an_output_is_rendered_from_what_a_full_disk_left(tmp_path):
    path = tmp_path / "full.folded"
    with ljspy.program("luajit", "shares") as target:
        arguments = ["-d", f"{ljspy.WORK_SECONDS}s", "-r", ljspy.HIGH_RATE, "-o", path, "-p", target.pid]
        result = ljspy.run("record", *arguments, preexec_fn=limit_files(20000), timeout=ljspy.RECORDING_SECONDS)
    assert result.returncode == ljspy.WITH_ERRORS
    assert "The recording ended early: File too large" in result.stderr
    assert stacks.parse_folded(path.read_text())
    assert os.listdir(tmp_path) == ["full.folded"]


def test_a_failure_leaves_an_older_recording_alone(shares, tmp_path):
    path = tmp_path / "older.ljspy"
    path.write_bytes(shares.read_bytes())
    with ljspy.Target(["sleep", "300"]) as target:
        result = ljspy.run("record", "-d", "1s", "-o", path, "-p", target.pid)
    assert result.returncode == ljspy.NOTHING_PROFILED
    assert path.read_bytes() == shares.read_bytes()
    assert os.listdir(tmp_path) == ["older.ljspy"]


def test_recordings_go_through_pipes(tmp_path):
    with ljspy.program("luajit", "shares") as target:
        arguments = ["record", "-f", "ljspy", "-o", "-", "-p", target.pid]
        recorder = ljspy.run_beside(target.pid, 0.5, *arguments, text=False, errors=None)
    command = [ljspy.LJSPY, "report", "-", "-f", "folded"]
    piped = subprocess.run(command, input=recorder.stdout, capture_output=True, check=True, timeout=60)
    assert b"heavy" in piped.stdout


def test_messages_name_standard_input(shares, tmp_path):
    def said(content, *options):
        command = [ljspy.LJSPY, "report", "-", "-f", "folded", *options]
        result = subprocess.run(command, input=content, capture_output=True, cwd=tmp_path, timeout=60, check=False)
        return result.stderr.decode().removeprefix("ljspy: ").removeprefix("warning: ")

    whole = shares.read_bytes()
    (tmp_path / "-.unfinished.ljspy").write_bytes(whole)
    assert said(b"no recording").startswith("Standard input is not a recording")
    assert said(whole[:-100]).startswith(("Standard input has no end", "Standard input is damaged"))
    assert said(whole + whole).startswith("Standard input goes on after the end")
    assert "standard input lasts" in said(whole, "--since", "500s")
    assert said(whole, "--clock", "alloc").startswith("Standard input has time")


@pytest.mark.parametrize("first", ["/dev/stdin", "fifo"])
@pytest.mark.parametrize("arguments", ["report {first} -f folded", "report {first} {file} -f folded", "diff {first} {file}"])
def test_a_pipe_may_be_the_first_recording(shares, tmp_path, arguments, first):
    """A pipe can be read only once."""
    expected = ljspy.run(*arguments.format(first=shares, file=shares).split()).stdout
    if first == "fifo":
        first = tmp_path / "fifo"
        os.mkfifo(first)
    argv = [ljspy.LJSPY, *arguments.format(first=first, file=shares).split()]
    writer = ["timeout", "20", "dd", "status=none", f"if={shares}"] + ([f"of={first}"] if first != "/dev/stdin" else [])
    with subprocess.Popen(writer, stdout=subprocess.PIPE) as piped:
        result = subprocess.run(argv, stdin=piped.stdout, capture_output=True, text=True, timeout=40, check=False)
        piped.kill()
    assert result.returncode == ljspy.OK, result.stderr
    assert expected and len(result.stdout.splitlines()) == len(expected.splitlines())


def test_reader_that_leaves_is_no_fault_to_tell_of(shares):
    read, write = os.pipe()
    os.close(read)
    result = subprocess.run([ljspy.LJSPY, "report", shares, "-f", "json"], stdout=write, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(write)
    assert result.returncode == ljspy.NOTHING_PROFILED
    assert not result.stderr


# -- Some of the samples --


def moments_ms(path, *parts):
    """Since its beginning, when these parts of a recording's samples had been taken."""
    times = sorted(sample["time_ns"] for sample in json.loads(report(path, "-f", "json").stdout)["samples"])
    return [times[int(part * len(times))] // 10**6 for part in parts]


def test_times_are_those_since_the_beginning(shares):
    quarter, half = (f"{ms}ms" for ms in moments_ms(shares, 0.25, 0.5))
    whole = sum(folded(shares).values())
    early = sum(folded(shares, "--until", half).values())
    late = sum(folded(shares, "--since", half).values())
    assert 0 < early < whole and 0 < late < whole
    assert same_weight(early + late, whole)
    assert same_weight(sum(folded(shares, "--since", quarter, "--until", half).values())
                       + sum(folded(shares, "--until", quarter).values()), early)


def test_times_of_the_clock_have_no_last_year(shares):
    whole = folded(shares)
    assert whole == folded(shares, "--until", "9999-12-31T23:59:59.999999999Z")
    assert whole == folded(shares, "--since", "1001-01-01T00:00Z", "--until", "2262-04-12T00:00Z")
    result = report(shares, "--since", "9999-12-31T23:59Z", status=ljspy.NOTHING_PROFILED)
    assert "past the end" in result.stderr


@pytest.mark.parametrize("times", [["--since", "1h"], ["--since", "2s", "--until", "1s"]], ids=" ".join)
def test_times_at_which_there_is_nothing_are_refused(shares, times):
    result = ljspy.run("report", shares, *times)
    assert result.returncode in (ljspy.NOTHING_PROFILED, ljspy.USAGE)
    assert not result.stdout
    assert "--since" in result.stderr


def test_heat_map_has_the_weights_of_any_time(shares, tmp_path):
    """A heat map's weight for a time equals that of a report on that time."""
    report(shares, "--heatmap", "-o", tmp_path / "when.svg")
    source = (tmp_path / "when.svg").read_text(encoding="utf-8")
    lines = re.search(r'<metadata id="moments">(.*?)</metadata>', source, re.DOTALL)[1].splitlines()
    time, weights = 0, []
    for line in lines[1:]:
        delta, _, _, weight = line.split()[:4]
        time += int(delta)
        weights.append((time, int(weight)))
    since, until = (int(number) for number in lines[0].split())
    assert since == 0 and all(time < until for time, _ in weights)
    middle = weights[len(weights) // 2][0] // 1000 + 1
    for options, part in (([], range(until)), (["--until", f"{middle / 1000}s"], range(middle * 1000)),
                          (["--since", f"{middle / 1000}s"], range(middle * 1000, until))):
        assert same_weight(sum(folded(shares, *options).values()),
                           sum(weight for time, weight in weights if time in part) / 1000)


def picture(path, *arguments):
    """The first lines of what a picture has of times and of CPU time, as numbers, and its words on CPU use."""
    report(*arguments, "-o", path)
    source = path.read_text(encoding="utf-8")
    moments, cpu = ([int(number) for number in re.search(rf'<metadata id="{name}">(.*)', source)[1].split()]
                    for name in ("moments", "cpu"))
    return moments, cpu, re.search(r"CPU use over ([\d.]+) s, .*?: (\d+) % on average", source)


def check_part(path, arguments, since_us, until_us):
    """Whether a picture of a part begins and ends with it, and averages over no other time."""
    moments, cpu, words = picture(path, *arguments)
    extent_us = until_us - since_us
    assert moments == pytest.approx([since_us, until_us], abs=2)
    assert cpu[3:] == pytest.approx([since_us, until_us], abs=2)
    assert float(words[1]) == pytest.approx(extent_us / 1e6, abs=0.051)
    # The first sample may stand for CPU time before that, too; on a full machine for much.
    assert float(words[2]) == pytest.approx(100 * sum(folded(*arguments).values()) / extent_us, rel=0.3)


def test_pictures_of_a_part_are_of_that_time_only(shares, tmp_path):
    whole_us = picture(tmp_path / "whole.svg", shares)[0][1]
    early, late = moments_ms(shares, 0.25, 0.55)
    for options, since_us, until_us in ((["--since", f"{late}ms"], late * 1000, whole_us),
                                        (["--until", f"{early}ms"], 0, early * 1000),
                                        (["--since", f"{early}ms", "--until", f"{late}ms"], early * 1000, late * 1000)):
        check_part(tmp_path / "part.svg", [shares, *options], since_us, until_us)


def test_pictures_since_a_time_of_the_clock_begin_then(shares, tmp_path):
    whole_us = picture(tmp_path / "whole.svg", shares)[0][1]
    begin_us = json.loads(report(shares, "-f", "json").stdout)["session"]["start_unix_ns"] // 1000
    second = begin_us // 1000000 + 1
    clock = ["--since", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))]
    since_us = second * 1000000 - begin_us
    check_part(tmp_path / "part.svg", [shares, *clock], since_us, whole_us)
    # Of several recordings, too.
    assert picture(tmp_path / "parts.svg", shares, shares, *clock)[0] == pytest.approx([since_us, whole_us], abs=2)


def test_stacks_are_chosen_by_their_functions(shares):
    whole = folded(shares)
    inside, outside = folded(shares, "--include", "^foo "), folded(shares, "--exclude", "^foo ")
    assert all(";foo " in stack for stack in inside)
    assert not any(";foo " in stack for stack in outside)
    assert inside and outside
    assert same_weight(sum(inside.values()) + sum(outside.values()), sum(whole.values()))


def test_processes_threads_and_states_are_chosen(shares):
    whole = folded(shares)
    pid = re.search(r"pid (\d+)", report(shares).stdout)[1]
    assert folded(shares, "--pid", pid) == folded(shares, "--tid", pid) == whole
    result = report(shares, "--pid", int(pid) + 1)
    assert "no such samples" in result.stderr
    states = [folded(shares, "--state", state) for state in ("interpreted", "c,gc,none,exit", "unknown")]
    assert states[0]
    assert sum(sum(part.values()) for part in states) == pytest.approx(sum(whole.values()), abs=20)
    assert folded(shares, "--state", "running") == whole


def test_groups_are_frames_at_the_root(shares):
    whole = folded(shares)
    pid = re.search(r"pid (\d+)", report(shares).stdout)[1]
    assert all(re.match(rf"[^;]*\(pid {pid}\);", stack) for stack in folded(shares, "--by", "pid"))
    assert all(re.match(rf"[^;]*\(tid {pid}\);", stack) for stack in folded(shares, "--by", "tid"))
    assert any(stack.startswith("interpreted;") for stack in folded(shares, "--by", "state"))
    assert all(stack.startswith("no phase;") for stack in folded(shares, "--by", "phase"))
    by_module = folded(shares, "--by", "module")
    assert any(stack.startswith("shares;main chunk") for stack in by_module)
    assert same_weight(sum(by_module.values()), sum(whole.values()))


# Plugin files as Kong and APISIX arrange them, with the module and the units of work of each.
PLUGINS = {
    "share/lua/5.1/kong/plugins/rate-limiting/handler.lua": ("kong/plugins/rate-limiting", 1),
    "share/lua/5.1/kong/plugins/rate-limiting/policies/init.lua": ("kong/plugins/rate-limiting", 3),
    "share/lua/5.1/kong/plugins/jwt/jwt_parser.lua": ("kong/plugins/jwt", 2),
    "apisix/apisix/plugins/limit-req.lua": ("apisix/plugins/limit-req", 1),
    "apisix/apisix/plugins/limit-count/init.lua": ("apisix/plugins/limit-count", 2),
    "share/lua/5.1/resty/redis.lua": ("resty/redis", 1),
}


def totals(text):
    """A report's table of groups: share in percent by name."""
    table = re.search(r"^ +% +ms  module\n((?:.+\n)*)", text, re.MULTILINE)[1]
    return {name: float(share) for share, name in re.findall(r"^ *([\d.]+) ± [\d. ]+  (\S.*)$", table, re.MULTILINE)}


def test_time_is_summed_by_plugin(tmp_path):
    """A plugin's time includes all of its files, and the functions they call."""
    calls = []
    for path, (_, units) in PLUGINS.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"return function() local sum = 0 for i = 1, {units} * 1e5 do sum = sum + #tostring(i % 7) end return sum end")
        calls.append(f"dofile('{file}')")
    main = tmp_path / "main.lua"
    main.write_text(f"local plugins = {{{', '.join(calls)}}} for i = 1, 50 do for _, plugin in ipairs(plugins) do plugin() end end")
    recording = tmp_path / "plugins.ljspy"
    result = ljspy.run("record", "-r", ljspy.HIGH_RATE, "-o", recording, "--", ljspy.luajit("luajit"), "-joff", main)
    assert result.returncode == ljspy.OK, result.stderr
    units = collections.Counter()
    for module, count in PLUGINS.values():
        units[module] += count
    found = totals(report(recording, "--by", "module").stdout)
    in_plugins = sum(found[module] for module in units)
    assert in_plugins > 80
    for module, count in units.items():
        assert found[module] / in_plugins == pytest.approx(count / sum(units.values()), abs=0.07), found
    graph = collections.Counter()
    for stack, weight in folded(recording, "--by", "module").items():
        graph[stack.split(";")[0]] += weight
    for module in units:
        assert 100 * graph[module] / sum(graph.values()) == pytest.approx(found[module], abs=0.1)
    assert re.search(r"^ +% +ms  module$", report(recording).stdout, re.MULTILINE) is None


def test_a_command_goes_by_its_own_name(tmp_path):
    path = tmp_path / "own.ljspy"
    command = [ljspy.luajit("luajit"), stacks.PROGRAMS / "shares.lua", "off", 1]
    ljspy.run("record", "-o", path, "--", "env", "-C", stacks.PROGRAMS, *command, timeout=ljspy.WORK_SECONDS)
    own = [stack for stack in folded(path, "--by", "comm") if "shares.lua" in stack]
    assert own and all(stack.startswith("luajit;") for stack in own)


def test_recursion_is_merged(tmp_path):
    record_program(tmp_path / "deep.ljspy", "deep", "--native", "none")
    whole = folded(tmp_path / "deep.ljspy")
    merged = folded(tmp_path / "deep.ljspy", "--merge-recursion")
    assert max(stack.count(";dig ") for stack in whole) > 1000
    assert max(stack.count(";dig ") for stack in merged) == 1
    assert max(stack.count(";odd ") for stack in merged) <= 2
    assert same_weight(sum(merged.values()), sum(whole.values()))


def test_lines_are_in_the_recording(shares):
    stacks_by_line = folded(shares, "--lines")
    assert any(re.search(r"heavy [^;]*shares\.lua:[678]$", stack) for stack in stacks_by_line)


# -- Several recordings --


def test_recordings_are_summed(shares):
    once, twice = folded(shares), folded(shares, shares)
    assert once and once.keys() == twice.keys()
    assert all(abs(twice[stack] - 2 * once[stack]) <= 3 for stack in once)


# Of CPU time: beside others, a recording of it takes many times as long.
ROUNDS_SECONDS = 1.5


def record_work(path, *rounds):
    argv = [ljspy.luajit("luajit"), "-joff", HERE / "work.lua", *rounds, ROUNDS_SECONDS]
    result = ljspy.run("record", "-r", ljspy.HIGH_RATE, "-o", path, "--", *argv, timeout=2 * ljspy.RECORDING_SECONDS)
    assert result.returncode == ljspy.OK, result.stderr
    return path


def changed(text):
    """The functions marked as changed."""
    rows = re.findall(r"^ *[\d.]+ +[\d.]+ +[-+][\d.]+ ± +[\d.]+ (.)  +[\d.]+ +[\d.]+ +[-+][\d.]+ ± +[\d.]+ (.)  (\w+)",
                      text, re.MULTILINE)
    assert rows, text
    return {name for own, total, name in rows if "*" in own + total}


def coloured(before, after, tmp_path):
    """The functions that the picture shows as changed."""
    picture = tmp_path / "difference.svg"
    assert ljspy.run("diff", before, after, "-o", picture).returncode == ljspy.OK
    boxes = re.findall(r'<g class="f (\w)"><title>(\w+)', picture.read_text(encoding="utf-8"))
    assert {name for _, name in boxes} >= {"parse", "render"}
    return {name for colour, name in boxes if colour in "pqyz"}


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    return record_work(tmp_path_factory.mktemp("work") / "before.ljspy", 2, 3, 1)


def test_nothing_has_changed_between_recordings_of_the_same_program(before, tmp_path):
    """diff takes noise for a change in one of 20 pairs at most: not in two pairs, one after the other."""
    for attempt in range(2):
        after = record_work(tmp_path / f"after{attempt}.ljspy", 2, 3, 1)
        result = ljspy.run("diff", before, after)
        assert result.returncode == ljspy.OK, result.stderr
        if not changed(result.stdout):
            break
        before = record_work(tmp_path / f"before{attempt}.ljspy", 2, 3, 1)
    assert not changed(result.stdout)
    assert "Nothing has changed" in result.stdout
    [needed] = re.findall(r"would show in recordings of (\d+) s each", result.stdout)
    assert int(needed) > ROUNDS_SECONDS
    assert not coloured(before, after, tmp_path)


def test_what_has_changed_is_shown(before, tmp_path):
    after = record_work(tmp_path / "after.ljspy", 2, 12, 1)
    result = ljspy.run("diff", before, after)
    assert result.returncode == ljspy.OK, result.stderr
    assert {"parse", "render"} <= changed(result.stdout)
    assert {"parse", "render"} <= coloured(before, after, tmp_path) <= changed(result.stdout)
    result = ljspy.run("diff", before, after, "-f", "folded")
    render = re.findall(r"^.*;render .* (\d+) (\d+)$", result.stdout, re.MULTILINE)
    assert sum(int(after) for _, after in render) > sum(int(before) for before, _ in render)


# -- While recording --


PROGRESS = rb"\r\d+ s of 59 s, [1-9]\d* samples"


def test_progress_is_shown_on_a_terminal_and_taken_away(tmp_path):
    with ljspy.program("luajit", "shares") as target:
        terminal, its_end = pty.openpty()
        arguments = ["record", "-d", "59s", "-o", tmp_path / "x.folded", "-p", str(target.pid)]
        recorder = subprocess.Popen([ljspy.LJSPY, *arguments], stderr=its_end, env=os.environ | {"TERM": "xterm"})
        os.close(its_end)
        said, is_shown = b"", False
        try:
            while chunk := os.read(terminal, 65536):
                said += chunk
                if not is_shown and re.search(PROGRESS, said):
                    is_shown = True
                    recorder.send_signal(signal.SIGINT)
        except OSError:  # the other end is closed
            pass
        os.close(terminal)
        assert recorder.wait(timeout=30) == ljspy.OK
    assert is_shown, said
    progress, figures = said.rsplit(b"\r\x1b[K", 1)
    assert b"samples  " in figures and b"samples  " not in progress


def test_nothing_but_the_figures_is_said_elsewhere(tmp_path):
    result = record_program(tmp_path / "x.folded", "shares")
    assert "samples" in result.stderr
    assert "\r" not in result.stderr
