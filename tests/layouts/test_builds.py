"""Every LuaJIT build is recognised, without symbols, and its layout is right.

The process sleeps in a C function while it is looked at. Its layout must
pass each self-test on the objects the process holds, and where there is debug
info for the same build, agree with it field by field.
"""

import re
import signal
import subprocess
import time

import builds
import packages
import pytest

PROBE = builds.OBJECTS / "probe"
HOST = builds.OBJECTS / "host"
TESTS = ("state", "strings", "objects", "JIT state", "traces")
ROWS = []


@pytest.fixture(scope="session", autouse=True)
def tools():
    subprocess.run(["make", "-s", f"VARIANT={builds.OBJECTS.parents[1].name}",
                    *(tool.relative_to(packages.ROOT) for tool in (PROBE, HOST))],
                   cwd=packages.ROOT, check=True, timeout=600)


@pytest.fixture(scope="module", autouse=True)
def table():
    yield
    print("\n" + f"{'build':72} {'result':8}" + "".join(f"{test:>10}" for test in TESTS) + "  debug info")
    for name, probe in ROWS:
        print(f"{name[:72]:72} {probe.result:8}" +
              "".join(f"{probe.tests.get(test, '-'):>10}" for test in TESTS) + f"  {probe.debug}")


class Probe:
    """What probe said about a process."""

    def __init__(self, text):
        self.text = text
        self.result = re.search(r"(?m)^result (.*)", text).group(1)
        self.states = int((re.findall(r"(?m)^states (\d+)", text) or ["0"])[0])
        self.open = "".join(re.findall(r"(?m)^open (.*)", text)).strip()
        self.debug = "".join(re.findall(r"(?m)^debug info: (.*)", text)) or "none"
        verdicts = re.findall(r"(?m)^evidence ([^:]+): (.*)", text)
        self.tests = {name: words.replace(" sound", "") for name, words in verdicts if name in TESTS}


def look_at(argv, *options):
    """Run a program until it is ready, and probe it while it sleeps."""
    with subprocess.Popen([str(word) for word in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, preexec_fn=lambda: signal.alarm(60)) as process:
        try:
            if not builds.read_ready(process.stdout, 20):
                pytest.skip(f"{argv[0]} does not run here")
            time.sleep(0.1)  # from saying so to sleeping
            done = subprocess.run([PROBE, str(process.pid), *map(str, options)], capture_output=True,
                                  text=True, timeout=60, check=True)
        finally:
            process.kill()
    return Probe(done.stdout)


def check(build):
    try:
        run = build.prepare()
    except packages.Unavailable as reason:
        pytest.skip(f"not to be had: {reason}")
    probe = look_at(run.argv, *(["--debug-info", run.debug] if run.debug else []))
    ROWS.append((str(build), probe))
    assert probe.result == "ok", probe.text
    assert probe.states == 1, probe.text
    assert probe.open == "", "something is left open"
    for test in ("state", "strings", "objects", *(("JIT state", "traces") if run.jit else ())):
        assert probe.tests[test].isdigit() and int(probe.tests[test]) > 0, probe.text
    if run.debug:
        assert probe.debug.startswith("agrees"), probe.text


@pytest.mark.parametrize("build", builds.PROGRAMS, ids=str)
def test_debian_build_is_recognised(build):
    check(build)


@pytest.mark.builds
@pytest.mark.parametrize("build", builds.SOURCES, ids=str)
def test_build_with_options_is_recognised(build):
    check(build)


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
