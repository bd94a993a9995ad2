# SPDX-License-Identifier: MIT
"""Does `ljspy check` name the fault of programs that have one, first of all, and invent none?

FINDINGS_ALL=1 (`make findings`) judges all programs on all builds, and prints what was found."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import urllib.request

import pytest

import ljspy

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "nginx"))
import nginx_server  # noqa: E402

pytestmark = pytest.mark.usefixtures("built")

HERE = pathlib.Path(__file__).resolve().parent
ALL = "FINDINGS_ALL" in os.environ

# A fault counts as named if it is among so many findings.
FIRST = 3

# On a machine that is full, few samples are taken: look longer then.
SECONDS = (1, 4, 16)

# Programs with the kinds of finding that name their fault; and whether the short form has them.
FAULTS = {
    "joins": ({"joins"}, True),
    "grows": ({"stores"}, False),
    "closes": ({"closures", "not-compiled", "garbage"}, False),
    "throws": ({"errors"}, True),
    "litters": ({"garbage"}, False),
    "leaks": ({"growth"}, True),
    "runs": ({"blocked", "programs"}, True),
    "backtracks": ({"patterns"}, False),
    "switched": ({"switched-off"}, True),
    "flushes": ({"compiling"}, False),
    "shifts": ({"shifts"}, False),
    "polls": ({"clock"}, False),
    "formats": ({"formats"}, False),
    "writes": ({"calls"}, False),
    "recurses": ({"recursion"}, False),
    "loads": ({"loads"}, False),
}
# Where the fault is not at one line: what is compiled again, the whole function.
WHOLE_FILE = ("flushes", "recurses")
FAULTLESS = {"adds": False, "idles": True, "serves": False, "routes": True, "interprets": True,
             "steps": True}
OPTIONS = {"interprets": ["-joff"]}


# Calls of methods of files: options of luajit, what comes first, the work, and the fault.
METHODS = {
    "close": ([], "", "io.popen('exec >/dev/null; sleep 0.2'):close()", "programs"),
    "write": (["-joff"], "local log = io.open('/dev/null', 'w') log:setvbuf('no')", "log:write('x')", "calls"),
    "read": (["-joff"], "local zeros = io.open('/dev/zero') zeros:setvbuf('no')", "zeros:read(1)", "calls"),
}
# Programs that look like one with a fault, which they have not: options of luajit, what comes first, the work, the
# fault.
LOOK_ALIKES = {
    "makes times of dates": ([], "", "os.time({ year = 2024, month = 5, day = 3 })", "clock"),
    "counts arguments": (["-joff"], "", "select('#', 1, 2, 3)", "clock"),
    "calls what does not fail": (["-joff"], "local function f() return true end", "pcall(f)", "errors"),
    "finds plain text": (["-joff"], "local text = ('needl-'):rep(999)", "text:find('needle', 1, true)", "patterns"),
}


def builds():
    """Each unpacked luajit that runs here, by name."""
    if not ALL:
        return {"luajit": ljspy.luajit("luajit")}
    found = {str(path.parent.parent.parent.relative_to(ljspy.PACKAGES)): path
             for path in sorted(ljspy.PACKAGES.glob("**/usr/bin/luajit"))}
    return {name: path for name, path in found.items() if "arm64" not in name and "i386" not in name}


def start(build, name):
    program = builds()[build]
    libraries = ":".join(map(str, program.parent.parent.glob("lib/*-linux-gnu")))
    argv = ["env", f"LD_LIBRARY_PATH={libraries}", program, *OPTIONS.get(name, []), HERE / f"{name}.lua"]
    target = ljspy.Target(argv, cwd=HERE, limit=240)
    try:
        return target.wait_ready()
    except RuntimeError:
        target.stop()
        pytest.skip(f"{build} does not run here")


def is_judged(process):
    return not any("too few samples" in words for words in process["not_looked_at"])


def found_any(process):
    return bool(process["findings"])


def finds(kinds):
    """Beside much else, a share is surely above a limit only after a while."""
    return lambda process: any(kind in kinds for kind, _ in told(process))


def check(pid, rate=ljspy.HIGH_RATE, is_enough=is_judged):
    """What ljspy says of a process, once that is enough."""
    for seconds in SECONDS:
        done = ljspy.run("check", "-p", pid, "-d", f"{seconds}s", "-r", rate, "--json", timeout=120)
        assert done.returncode == ljspy.OK, done.stderr
        (process,) = json.loads(done.stdout)["processes"]
        if is_enough(process):
            break
    assert is_enough(process), (told(process), process["not_looked_at"])
    return process


def told(process):
    return [(finding["kind"], round(100 * finding["share"])) for finding in process["findings"]]


def line_of(name, mark):
    lines = (HERE / name).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"-- {mark}"))


def names_place(finding, file, line):
    """Whether a piece of the evidence is at this line, or, without one, in this file."""
    return any((item["file"] or item["path"] or "").find(file) >= 0 and (line is None or item["line"] == line)
               for item in finding["evidence"])


def judge_fault(process, kinds, file, line):
    first = process["findings"][:FIRST]
    print(file, told(process))
    assert any(finding["kind"] in kinds and names_place(finding, file, line) for finding in first), process["findings"]
    for finding in process["findings"]:
        assert 0 < finding["share"] <= 1 and finding["evidence"] and finding["advice"].endswith(".")
        assert (ljspy.ROOT / finding["page"].split("#")[0]).exists(), finding["page"]


@pytest.mark.parametrize("build", builds())
@pytest.mark.parametrize("name", [name for name, (_, short) in FAULTS.items() if short or ALL])
def test_a_fault_is_among_the_first_findings(build, name):
    kinds, _ = FAULTS[name]
    file = f"{name}.lua"
    line = None if name in WHOLE_FILE or name == "leaks" else line_of(file, "fault")
    with start(build, name) as target:
        process = check(target.pid, is_enough=finds(kinds))
    # What LuaJIT cannot compile is named by the loop that it has tried.
    places = (line,) if name != "closes" else range(line - 1, line + 2)
    if name == "switched":
        assert [finding["kind"] for finding in process["findings"]] == ["switched-off"]
    judge_fault(process, kinds, file, next((at for at in places if any(
        names_place(finding, file, at) for finding in process["findings"])), line))


@pytest.mark.parametrize("build", builds())
@pytest.mark.parametrize("name", [name for name, short in FAULTLESS.items() if short or ALL])
def test_nothing_stands_out_without_a_fault(build, name):
    with start(build, name) as target:
        process = check(target.pid)
    print(name, told(process))
    assert process["findings"] == []
    assert process["samples"] > 0
    busy = process["cpu_ms"] > 0.02 * process["duration_ms"]
    assert busy or any(words.startswith("CPU time: ") for words in process["not_looked_at"])


def test_a_stopped_process_is_said_to_be_stopped():
    with ljspy.busy() as target:
        os.kill(target.pid, signal.SIGSTOP)
        assert ljspy.wait_until(lambda: ljspy.status_field(target.pid, "State").startswith("T"))
        run = ljspy.run("check", "-d", "500ms", "-p", target.pid)
        assert ljspy.status_field(target.pid, "State").startswith("T")
    assert run.returncode == ljspy.OK, run.stderr
    assert "it was stopped" in run.stdout and f"kill -CONT {target.pid}" in run.stdout


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    """LuaJIT with symbols."""
    development = ljspy.PACKAGES / "libluajit-5.1-dev/usr"
    program = tmp_path_factory.mktemp("findings") / "runner"
    subprocess.run(["gcc", "-O2", f"-I{development}/include/luajit-2.1", HERE.parent / "names/runner.c", "-o", program,
                    development / "lib/x86_64-linux-gnu/libluajit-5.1.a", "-lm", "-ldl"], check=True, timeout=60)
    return program


# What LuaJIT does by the routines that join strings; and is that the fault?
JOINS = {
    "table.concat(list)": False,
    "list[i] .. list[i + 1] .. list[i + 2]": True,
}


@pytest.mark.parametrize("jit", ["on", "off"])
@pytest.mark.parametrize("work", JOINS)
def test_only_dots_are_joins(runner, work, jit, tmp_path):
    script = tmp_path / "script.lua"
    script.write_text(f"""local list = {{}}
for i = 1, 300 do list[i] = ("piece %d "):format(i):rep(10) end
if arg[1] == "off" then jit.off() end
print("ready")
io.stdout:flush()
local sum, i = 0, 1
while true do
	i = i % 200 + 1
	sum = sum + #({work})
end
""")
    with ljspy.Target([runner, script, jit, "-"], limit=240).wait_ready() as target:
        process = check(target.pid, is_enough=finds({"joins"}) if JOINS[work] else is_judged)
    print(work, jit, told(process))
    assert ("joins" in [kind for kind, _ in told(process)]) == JOINS[work], process["findings"]


def check_loop(directory, options, begin, statement, **how):
    """What is found in a program that repeats a statement, in line 5 of script.lua."""
    script = directory / "script.lua"
    script.write_text(f"{begin}\nprint('ready')\nio.stdout:flush()\nwhile true do\n\t{statement}\nend\n")
    with ljspy.Target([ljspy.luajit("luajit"), *options, script], limit=240).wait_ready() as target:
        return check(target.pid, **how)


@pytest.mark.parametrize("name", METHODS)
def test_methods_of_files_are_known(name, tmp_path):
    options, begin, work, fault = METHODS[name]
    process = check_loop(tmp_path, options, begin, work, is_enough=finds({fault}))
    print(name, told(process))
    judge_fault(process, {fault}, "script.lua", 5)


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_a_look_alike_is_not_taken_for_a_fault(name, tmp_path):
    options, begin, work, fault = LOOK_ALIKES[name]
    process = check_loop(tmp_path, options, begin, f"local _ = {work}")
    print(name, told(process))
    assert fault not in [kind for kind, _ in told(process)], process["findings"]


@pytest.fixture
def nginx(tmp_path):
    with nginx_server.Nginx(tmp_path / "nginx", (HERE / "requests.conf.in").read_text(), HERE=HERE) as server:
        server.wait_answers("/plain")
        yield server


class Requests(threading.Thread):
    """Asks for a path again and again, with a pause between."""

    def __init__(self, server, path, pause):
        super().__init__(daemon=True)
        self.url = f"http://127.0.0.1:{server.port}{path}"
        self.pause, self.over, self.answered = pause, threading.Event(), 0
        self.start()

    def run(self):
        while not self.over.wait(self.pause):
            with urllib.request.urlopen(self.url, timeout=30) as response:
                self.answered += bool(response.read())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()


@pytest.mark.parametrize("path", ["computes", "runs"] if ALL else ["computes"])
def test_a_blocked_event_loop_is_among_the_first_findings(nginx, path):
    with Requests(nginx, f"/{path}", 0.01) as requests:
        assert ljspy.wait_until(lambda: requests.answered)
        process = check(nginx.worker, rate=199, is_enough=found_any)
    judge_fault(process, {"blocked"}, "answers.lua", line_of("answers.lua", path))


@pytest.mark.skipif(not ALL, reason="only in the long form: make findings")
def test_nothing_stands_out_in_nginx_with_plain_requests(nginx):
    with Requests(nginx, "/plain?user=me", 0.002) as requests:
        assert ljspy.wait_until(lambda: requests.answered > 10)
        process = check(nginx.worker)
    assert requests.answered > 20
    assert process["findings"] == []


def test_the_page_says_the_same_as_json():
    with start("luajit", "switched") as target:
        process = check(target.pid)
        for seconds in (round(process["duration_ms"] / 1000), *SECONDS[1:]):
            done = ljspy.run("check", "-p", target.pid, "-d", f"{seconds}s", "-r", ljspy.HIGH_RATE)
            if "too few samples" not in done.stdout:
                break
    assert done.returncode == ljspy.OK, done.stderr
    found = re.findall(r"^(\d+)\. (.*): ([\d.]+) % of (.*)\n((?:   .*\n)*)", done.stdout, re.MULTILINE)
    assert [(number, title, of) for number, title, _, of, _ in found] == [
        (str(number), finding["title"], "CPU time") for number, finding in enumerate(process["findings"], 1)]
    for (_, _, _, _, body), finding in zip(found, process["findings"]):
        assert f"switched.lua:{finding['evidence'][0]['line']}" in body and "jit.off()" in body
        assert " ".join(body.split()).find(finding["advice"]) > 0 and finding["page"] in body
    assert f"(pid {target.pid})" in done.stdout.splitlines()[0]
    assert "Nothing stands out" not in done.stdout


def test_kinds_have_a_place_in_the_documents():
    source = (ljspy.ROOT / "output/findings/finding_kind.c").read_text()
    kinds = re.findall(r'^\t\[FINDING_\w+\] = \{ "([\w-]+)"', source, re.MULTILINE)
    assert len(kinds) > 20
    page = (ljspy.ROOT / "doc/FINDINGS.md").read_text()
    assert re.findall(r"^## ([\w-]+)$", page, re.MULTILINE) == kinds
