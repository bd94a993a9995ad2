# SPDX-License-Identifier: MIT
"""ljspy recognises every LuaJIT build without symbols, and profiles it rightly.

The tests check recognition while the process sleeps in a C function: the layout must pass
each self-test on the process's objects, and agree field by field with debug info, if
the build has some. Programs with known legal stacks judge the profile. The matrix of
builds and checks comes at the end; each failure in it fails a test.
"""

import collections
import os
import re
import signal
import subprocess
import time

import builds
import ljspy
import packages
import pytest
import stacks

PROBE = builds.OBJECTS / "probe"
HOST = builds.OBJECTS / "host"
MUTATIONS = builds.OBJECTS.parent / "unit/test_layout_mutations"
ENOUGH_SAMPLES = 50
TESTS = ("state", "strings", "objects", "JIT state", "traces")
PROGRAMS = {program.name: program for program in stacks.all_programs()}

BUILDS = [*builds.PROGRAMS, *(pytest.param(build, marks=pytest.mark.builds) for build in builds.SOURCES)]


@pytest.fixture(scope="session", autouse=True)
def tools():
    with packages.locked(builds.BUILDS / ".tools.lock"):
        subprocess.run(["make", "-s", f"VARIANT={builds.OBJECTS.parents[1].name}",
                        *(tool.relative_to(packages.ROOT) for tool in (PROBE, HOST))],
                       cwd=packages.ROOT, check=True, timeout=600)


@pytest.fixture(params=BUILDS, ids=str)
def build(request):
    return request.param


@pytest.fixture
def run(build):
    try:
        return build.prepare()
    except packages.Unavailable as reason:
        pytest.skip(f"not to be had: {reason}")


class Probe:
    """The output of probe about a process."""

    def __init__(self, text):
        self.text = text
        self.result = re.search(r"(?m)^result (.*)", text).group(1)
        self.states = int((re.findall(r"(?m)^states (\d+)", text) or ["0"])[0])
        self.open = "".join(re.findall(r"(?m)^open (.*)", text)).strip()
        self.debug = "".join(re.findall(r"(?m)^debug info: (.*)", text)) or "none"
        verdicts = re.findall(r"(?m)^evidence ([^:]+): (.*)", text)
        self.tests = {name: words.replace(" sound", "") for name, words in verdicts if name in TESTS}


def look_at(argv, *options, cwd=None, started=lambda: None):
    """Run a program until it is ready, and probe it while it sleeps."""
    with subprocess.Popen([str(word) for word in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, cwd=cwd, preexec_fn=lambda: signal.alarm(60)) as process:
        try:
            if not builds.read_ready(process.stdout, ljspy.READY_SECONDS):
                pytest.skip(f"{argv[0]} does not run here")
            started()
            assert ljspy.wait_until(lambda: ljspy.status_field(process.pid, "State") == "S")
            done = subprocess.run([PROBE, str(process.pid), *map(str, options)], capture_output=True,
                                  text=True, timeout=60, check=True)
        finally:
            process.kill()
    return Probe(done.stdout)


def look_at_build(run):
    options = ["--debug-info", run.debug] if run.debug else []
    return look_at([*run.command, builds.SCRIPT.name], *options, cwd=builds.SCRIPT.parent,
                   started=run.started)


def test_layout_is_recognised(build, run, note_build):
    probe = look_at_build(run)
    assert probe.result == "ok", probe.text
    assert probe.states == 1, probe.text
    assert probe.open == "", "something is left open"
    for test in ("state", "strings", "objects", *(("JIT state", "traces") if run.jit else ())):
        assert probe.tests[test].isdigit() and int(probe.tests[test]) > 0, probe.text
    if run.debug:
        assert probe.debug.startswith("agrees"), probe.text
    note_build(build, **{test.replace(" ", "_"): probe.tests.get(test, "none") for test in TESTS},
               debug_info="agrees" if run.debug else "none")


def record(run, program, jit, directory, *options):
    argv = [*run.command, f"{program}.lua", jit, 50]
    with ljspy.Target(argv, cwd=run.programs).wait_ready() as target:
        run.started()
        for seconds in (0.5, 4):  # record longer if the machine is busy
            recording = ljspy.record(directory, "-p", target.pid, seconds=seconds, rate=ljspy.HIGHEST_RATE, options=options)
            if recording.stats["samples"] >= ENOUGH_SAMPLES:
                break
        return recording


def judge(recording, program, jit):
    """Check samples by verdict: none is wrong, and few are lost."""
    weights, wrong = collections.Counter(), []
    for sample in recording.samples:
        verdict = program.judge(sample)
        weights[verdict] += sample.weight
        if verdict == "wrong":
            wrong.append(";".join(sample.frames))
    lost_share, _ = stacks.limits(jit, program)
    total, stats = sum(weights.values()), recording.stats
    assert not wrong, wrong
    assert sum(stats["lost"].values()) <= max(lost_share * stats["samples"], stacks.LOST_SAMPLES), stats["lost"]
    assert weights["whole"] >= stacks.WHOLE_SHARE * total


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("program", ["calls", "coroutines"])
def test_stacks_are_legal(build, run, program, jit, tmp_path, note_build):
    if jit == "on" and not run.jit:
        pytest.skip("this build has no JIT compiler")
    recording = record(run, program, jit, tmp_path)
    judge(recording, PROGRAMS[program], jit)
    note_build(build, **{f"{program}_{'jit' if jit == 'on' else 'no_jit'}": recording.stats["samples"]})


@pytest.mark.usefixtures("built")
def test_builtins_have_their_names(build, run, tmp_path, note_build):
    recording = record(run, "builtins", "off", tmp_path)
    judge(recording, PROGRAMS["builtins"], "off")
    note_build(build, names=recording.stats["samples"])


@pytest.mark.usefixtures("built")
def test_lines_are_those_of_the_calls(build, run, tmp_path, note_build):
    recording = record(run, "lines", "off", tmp_path, "--lines")
    assert not stacks.line_complaints(recording.samples, recording.stats["samples"])
    note_build(build, lines=recording.stats["samples"])


@pytest.mark.builds
@pytest.mark.parametrize("source", [source for source in builds.SOURCES if not source.shared], ids=str)
def test_wrong_offsets_are_found_out(source):
    """Change every field, in every generation of LuaJIT (tests/unit/test_layout_mutations.c)."""
    try:
        (executable,) = source.prepare().command
    except packages.Unavailable as reason:
        pytest.skip(f"not to be had: {reason}")
    done = subprocess.run([MUTATIONS], cwd=packages.ROOT, env=dict(os.environ, LJSPY_TEST_LUAJIT=str(executable)),
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "skipped" not in done.stdout + done.stderr


def test_other_machine_is_said_to_be_one():
    try:
        root = packages.tree("bookworm", "luajit:i386")
    except packages.Unavailable as reason:
        pytest.skip(f"not to be had: {reason}")
    probe = look_at([*packages.loader(root, root / "usr/bin/luajit"), builds.SCRIPT])
    assert probe.result == "other-machine"


@pytest.mark.parametrize("package", ["lua5.1", "lua5.4"])
def test_other_lua_is_not_taken_for_luajit(package):
    try:
        root = packages.tree("bookworm", package)
    except packages.Unavailable as reason:
        pytest.skip(f"not to be had: {reason}")
    probe = look_at([*packages.loader(root, root / f"usr/bin/{package}"), builds.SCRIPT])
    assert probe.result == "no-vm"
    assert probe.states == 0


def test_library_without_a_state_has_none_in_two_gigabytes():
    try:
        _, library = builds.Library("bookworm", "libluajit-5.1-2").path()
    except packages.Unavailable as reason:
        pytest.skip(f"not to be had: {reason}")
    begin = time.monotonic()
    probe = look_at([HOST, library])
    print(f"looked through in {time.monotonic() - begin:.2f} s, starting the program included")
    assert probe.result == "ok"
    assert probe.states == 0


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("suite", ["bullseye", "trixie", "sid"])
def test_recording_may_begin_before_the_first_trace(suite, tmp_path):
    """Once there are traces, ljspy finds the fields of the layout that only traces reveal."""
    try:
        run = builds.Program(suite, "luajit", "usr/bin/luajit").prepare()
    except packages.Unavailable as reason:
        pytest.skip(f"not to be had: {reason}")
    recording = ljspy.record(
        tmp_path, "--", "env", "-C", stacks.PROGRAMS, *run.command, "shares.lua", "on", 2, seconds=10
    )
    shares = [s for s in recording.samples if s.frames and s.frames[0] == "main chunk shares.lua"]
    assert all(PROGRAMS["shares"].judge(sample) != "wrong" for sample in shares)
    assert ljspy.weight_of(shares, lambda sample: sample.compiled) > 0.5 * ljspy.weight_of(shares)
