# SPDX-License-Identifier: MIT
"""Compare what `ljspy traces --show` and `--bytecode` list with what jit.dump and jit.bc have
written of the same traces and functions in the same process."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import ljspy

sys.path.insert(0, str(ljspy.ROOT / "tests/layouts"))

import packages  # noqa: E402  pylint: disable=wrong-import-position

pytestmark = pytest.mark.usefixtures("built")

PROGRAM = ljspy.ROOT / "tests/listing/show.lua"
BUILDS = (("bullseye", "luajit"), ("bookworm", "luajit"), ("bookworm", "luajit2"), ("trixie", "luajit"), ("sid", "luajit"))


TRACES = 20  # that are compared; some builds make many

# The same instructions in LuaJIT's words and in capstone's.
MNEMONICS = {"jz": "je", "jnz": "jne", "jnb": "jae", "jna": "jbe", "jnbe": "ja", "jnl": "jge", "jng": "jle",
             "jnle": "jg", "jpe": "jp", "jpo": "jnp", "movabs": "mov"}


def start(suite, package, directory):
    try:
        root = packages.tree(suite, package)
    except packages.Unavailable as reason:
        pytest.skip(str(reason))
    program = next(path for path in (root / f"usr/bin/{package}", root / "usr/bin/luajit") if path.exists())
    (modules,) = root.glob("usr/share/luajit-*")
    return ljspy.Target([*packages.loader(root, program), PROGRAM, directory / "dump"],
                        env={**os.environ, "LUA_PATH": f"{modules}/?.lua;;"}).wait_ready()


def read_dump(path):
    """The lines of each trace that was completed, by part; and its head and end."""
    traces, trace, part = {}, {}, None
    for line in path.read_text(errors="surrogateescape").splitlines():
        head = re.match(r"---- TRACE (\d+) (start|IR|mcode|stop|abort)", line)
        if not head:
            trace.setdefault(part, []).append(line.rstrip())
            continue
        part = head[2]
        if part == "start":
            trace = {"begin": line}
        if part == "stop":
            traces[int(head[1])] = {**trace, "end": line}
    return traces


def lists(*options):
    return listings_of(ljspy.run("traces", *options, "--json"))


def lists_beside(pid, *options):
    return listings_of(traces_beside(pid, *options, "--json"))


def traces_beside(pid, *options):
    arguments = ["traces", "-p", pid, "-d", f"{ljspy.RECORDING_SECONDS}s", "-r", ljspy.HIGH_RATE]
    return ljspy.run_beside(pid, 1, *arguments, *options)


def listings_of(done):
    assert done.returncode == ljspy.OK, done.stderr
    (process,) = json.loads(done.stdout)["processes"]
    assert process["complete"]
    return process["listings"]


def show(*options):
    """The lines of the only listing, by kind."""
    (listing,) = lists(*options)
    assert not listing["cut"]
    kinds = {}
    for line in listing["lines"]:
        kinds.setdefault(line["kind"], []).append(line)
        if line["kind"] in ("ir", "snapshot"):
            kinds.setdefault("ir, snapshot", []).append(line)
    return kinds


def texts(lines):
    return [line["text"].rstrip() for line in lines]


def instruction(line):
    """The address, name and target of a machine instruction in jit.dump's line, or in ljspy's."""
    address, name = line.split()[:2]
    exit_number = re.search(r"->(LOOP|\d+)$", line)
    return int(address, 16), MNEMONICS.get(name, name), exit_number and exit_number[1]


def called(line):
    name = re.search(r"->([a-z]\w+)$", line)
    return name and name[1]


def without_place(line):
    """A bytecode line without what newer builds of jit.dump add to it, and with single spaces."""
    return " ".join(re.sub(r"\s+\(\S+:\d+\)$", "", line).split())


@pytest.fixture(params=BUILDS, ids="-".join)
def target(request, tmp_path):
    with start(*request.param, tmp_path) as started:
        started.dump = tmp_path / "dump"
        yield started


def check_code(shown, dumped, calls):
    """Are these the instructions that jit.dump saw, with the exits that they lead to?"""
    dumped = [line for line in dumped if line and not line.startswith("->")]
    assert [instruction(line)[::2] for line in shown] == [instruction(line)[::2] for line in dumped]
    other = [(left, right) for left, right in zip(shown, dumped) if instruction(left)[1] != instruction(right)[1]]
    assert len(other) <= len(shown) / 20, other
    for left, right in zip(shown, dumped):
        if called(right):
            calls.append(called(left) is not None)
            assert called(left) in (None, called(right))


def test_traces_are_listed_as_jit_dump_writes_them(target):
    traces = read_dump(target.dump)
    assert len(traces) >= 20 and sum(len(trace["IR"]) for trace in traces.values()) > 500
    calls, same = [], []
    for number, trace in list(traces.items())[:TRACES]:
        shown = show("-p", target.pid, "-d", "1ms", "--show", number)
        assert texts(shown["ir, snapshot"]) == trace["IR"]
        assert shown["head"][0]["text"] == trace["begin"]
        # Of a trace that another one was stitched to, jit.dump did not know yet.
        assert re.sub(r"\d+ stitch$", "stitch", shown["head"][-1]["text"]) == trace["end"]
        check_code(texts(shown["code"]), trace["mcode"], calls)
        dumped = [without_place(line) for line in trace.get("start", []) if "FUNCC" not in line and line]
        same.append([without_place(line["text"]) for line in shown.get("bytecode", [])] == dumped)
        assert all(line["place"].startswith("show.lua:") for line in shown.get("bytecode", []))
    assert sum(same) > len(same) / 4
    assert calls.count(True) > 0


def test_functions_are_listed_as_jit_bc_writes_them(target):
    dumped = pathlib.Path(f"{target.dump}.bc").read_text().split("-- BYTECODE -- ")[1:]
    assert len(dumped) == 5
    for text in dumped:
        place, *lines = text.splitlines()
        lines = [line.rstrip() for line in lines if re.match(r"\d{4} ", line)]
        first = int(re.search(r":(\d+)-", place)[1])
        shown = show("-p", target.pid, "-d", "1ms", "--bytecode", f"show.lua:{first}")
        assert texts(shown["head"]) == [f"-- BYTECODE -- {place}"]
        assert texts(shown["bytecode"]) == lines
        name = re.search(r"function (\w+)", PROGRAM.read_text().splitlines()[first - 1])[1]
        assert texts(show("-p", target.pid, "-d", "1ms", "--bytecode", name)["bytecode"]) == lines


@pytest.fixture
def parked(tmp_path):
    with start("bookworm", "luajit2", tmp_path) as started:
        started.dump = tmp_path / "dump"
        yield started


def test_a_core_has_the_same_listings(parked, tmp_path):
    if not shutil.which("gcore"):
        pytest.skip("gdb's gcore is not installed")
    subprocess.run(["gcore", "-o", tmp_path / "core", str(parked.pid)], capture_output=True, check=True, timeout=60)
    core = tmp_path / f"core.{parked.pid}"
    for wanted in (("--show", "1"), ("--show", "5"), ("--bytecode", "strings")):
        live, dead = show("-p", parked.pid, "-d", "1ms", *wanted), show("--core", core, *wanted)
        assert {kind: texts(lines) for kind, lines in live.items()} == {kind: texts(lines) for kind, lines in dead.items()}
        assert all(line["share"] is None for lines in dead.values() for line in lines)


def test_samples_stand_beside_instructions(parked):
    parked.write("\n")
    (listing,) = lists_beside(parked.pid, "--show", "1")
    assert listing["share"] > 0.2
    for kind in ("code", "ir", "bytecode"):
        shares = [line["share"] for line in listing["lines"] if line["kind"] == kind]
        assert sum(share > 0 for share in shares) > 1
        assert 0.8 * listing["share"] <= sum(shares) <= 1.001 * listing["share"]


def test_samples_of_interpreted_code(runtime):
    with ljspy.busy("jit.off()", program=ljspy.luajit(runtime)) as target:
        (listing,) = lists_beside(target.pid, "--bytecode", "heavy")
    assert listing["share"] > 0.8
    hot = [line["text"].replace("=>", "  ").split()[1] for line in listing["lines"] if line["share"] and line["share"] > 0.1]
    assert hot and set(hot) <= {"MODVN", "ADDVV", "FORL"}


def test_text_has_shares_and_places(parked):
    parked.write("\n")
    text = traces_beside(parked.pid, "--show", "1").stdout
    assert re.search(r"\n---- TRACE 1 IR\n", text)
    assert re.search(r"\n +\d+\.\d\d  [0-9a-f]{8,}  \w+ .* show\.lua:\d+\n", text)


def test_what_there_is_not_is_said(parked):
    for wanted, message in (("--show=60000", "There is no trace 60000."), ("--bytecode=nowhere.lua:7", 'There is no function "nowhere.lua:7".')):
        done = ljspy.run("traces", "-p", parked.pid, "-d", "1ms", wanted)
        assert done.returncode == ljspy.WITH_ERRORS and message in done.stderr and done.stdout == ""


def test_a_build_that_is_not_known_has_numbers(parked):
    """The names of fields and functions belong to a version: another one has numbers."""
    known = texts(show("-p", parked.pid, "-d", "1ms", "--show", "5")["ir"])
    with ljspy.Target([ljspy.luajit("luajit"), "-e", """
            jit.version = "LuaJIT 2.1.99999999999"
            local t = setmetatable({}, { __index = { x = 1 } })
            for i = 1, 200 do t[i] = t.x + #t end
            io.write("ready\\n") io.flush() io.read()"""]).wait_ready() as other:
        shown = show("-p", other.pid, "-d", "1ms", "--show", "1")
    assert any("FLOAD" in line and "tab." in line for line in known)
    loads = [line for line in texts(shown["ir"]) if "FLOAD" in line]
    assert loads and all(re.search(r"  #\d+$", line) for line in loads)
    assert any("is not known" in line for line in texts(shown["note"]))


@pytest.mark.parametrize("options, message", [
    (("--show", "0"), "is not the number of a trace"), (("--show", "70000"), "is not the number of a trace"),
    (("--show", "1", "--bytecode", "f"), "give one of them"), (("--core", "/dev/null"), "A core file has no samples")])
def test_options_that_make_no_sense(options, message):
    done = ljspy.run("traces", *options)
    assert done.returncode == ljspy.USAGE and message in done.stderr
