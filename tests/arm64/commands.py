# SPDX-License-Identifier: MIT
"""Other commands and clocks than `ljspy record -p`, in the emulated arm64 machine.

The programs and judges are those of the tests on x86-64: waits that a program times by its own watch
(tests/clocks), coroutines that wait in known places, turns of an event loop, traces that jit.util knows
(tests/compiled), graphs of objects that tell of themselves (tests/heap), and programs with known stacks.
"""

import json
import pathlib
import re
import shutil
import sys

import machine
import stacks

sys.path[:0] = [str(machine.ROOT / "tests" / name) for name in ("clocks", "compiled", "heap", "safety")]

import heaps  # noqa: E402, pylint: disable=wrong-import-position
import test_no_stop  # noqa: E402, pylint: disable=wrong-import-position
import test_traces  # noqa: E402, pylint: disable=wrong-import-position
import test_wall  # noqa: E402, pylint: disable=wrong-import-position

LUAJIT = f"luajit-{machine.SUITE}"
COMMANDS = f"{machine.SENDING} ifconfig mkfifo cat"
TERMINFO = pathlib.Path("/lib/terminfo/v/vt100")
RATE = 100
SECONDS = 4  # of the emulated machine's time
WAITS = ("compute sleep execute", "resolve read_pipe lock", "events resolve_by_poll compute")
ALL_WAITS = [*test_wall.LEAVES, "events"]
ONE_OF_FOUR = 3  # for each coroutine that waits in one place, so many wait in the other
GRAPHS = ((1, 100, "stop"), (7920, 150, "8"), (15839, 200, "32"))  # seed, objects, what the collector does
LEAK_STEPS = 100
TURN_MS = 50
UNSTOPPED = (("calls", "off"), ("coroutines", "off"), ("coroutines", "on"), ("traces", "on"))
LEAST_UNSTOPPED = 20  # samples
HEAVY = re.compile(r"[\d.]+%[ ^v]? *([\d.]+)%[ ^v]? +heavy\s+shares\.lua:")  # a move of the cursor may be in between


def lay(root, build, sysroot):
    """What the commands need."""
    program = build / "tests/heap/show_heap"
    shutil.copy(program, root / "bin")
    machine.lay_libraries(root, sysroot, [program])
    for folder in ("clocks", "compiled", "heap", "heap_outputs"):
        shutil.copytree(machine.ROOT / "tests" / folder, root / folder)
    (root / "lib/terminfo/v").mkdir(parents=True)
    shutil.copy(TERMINFO, root / "lib/terminfo/v")
    return commands()


def commands():
    yield "ifconfig lo up; mkfifo /tmp/go"
    yield from clocks()
    yield from traces()
    yield from heap()
    yield "cd /programs"
    for name, jit in UNSTOPPED:
        yield f"{LUAJIT} {name}.lua {jit} 600 >/tmp/out & target=$!; {ready('/tmp/out')}"
        yield f"ljspy record --no-stop -p $target -d 3s -r 50 -f folded -o /tmp/unstopped 2>&1 | sed 's/^/unstopped-figures /'"
        yield f"kill -9 $target; {machine.send('/tmp/unstopped', f'unstopped {name} {jit}')}"
    yield f"{LUAJIT} shares.lua off 600 >/tmp/out & target=$!; {ready('/tmp/out')}; echo 'top begins'"
    yield "TERM=vt100 LINES=24 COLUMNS=120 timeout -s INT 8 ljspy top -p $target </dev/console >/dev/console 2>/tmp/top"
    yield "echo; echo top ends $?; cat /tmp/top; grep TracerPid /proc/$target/status | sed 's/^/top leaves /'; kill -9 $target"


def ready(path):
    return f"until grep -q ready {path}; do sleep 0.2; done"


def clocks():
    def recorded(title, options, turns):
        """A recording of a program, what the program says, and the recording in other ways."""
        yield f"ljspy record {options} -r {RATE} -o /tmp/it.ljspy -- {LUAJIT} waits.lua {SECONDS} {turns} >/tmp/said 2>/tmp/figures"
        yield "ljspy report /tmp/it.ljspy -f json -o /tmp/json; ljspy report /tmp/it.ljspy --off-cpu -f json -o /tmp/off-cpu"
        for name in ("said", "figures", "json", "off-cpu"):
            yield machine.send(f"/tmp/{name}", f"{title} {name}")

    yield "cd /clocks"
    for number, turns in enumerate([*WAITS, " ".join(ALL_WAITS)]):
        yield from recorded(f"wall {number}", "--clock wall", turns)
    yield from recorded("blocked", "--blocked", "events compute")
    yield f"{LUAJIT} parked.lua 30 >/tmp/out & target=$!; {ready('/tmp/out')}"
    yield "ljspy record --coroutines -d 3s -o /tmp/parked.ljspy -p $target 2>&1 | sed 's/^/parked-figures /'; kill -9 $target"
    yield "ljspy report /tmp/parked.ljspy --lines --state parked -f folded -o /tmp/parked"
    yield machine.send("/tmp/parked", "parked")


def traces():
    yield f"cd /compiled; {LUAJIT} table.lua </tmp/go >/tmp/out & target=$!"
    yield f"exec 9>/tmp/go; {ready('/tmp/out')}; sleep 1; ljspy traces -p $target -d 100ms --json >/tmp/traces"
    yield "echo go >&9; exec 9>&-; ljspy traces -p $target -d 2s -r 100 --json >/tmp/hot; kill -9 $target"
    for name in ("out", "traces", "hot"):
        yield machine.send(f"/tmp/{name}", f"traces {name}")


def heap():
    yield "cd /heap"
    for number, (seed, count, state) in enumerate(GRAPHS):
        yield f"sleep 600 | {LUAJIT} graph.lua {seed} {count} /tmp/told {state} >/tmp/out & target=$!; {ready('/tmp/out')}; sleep 1"
        yield "show_heap $target >/tmp/heap; kill -9 $target"
        for name in ("told", "heap"):
            yield machine.send(f"/tmp/{name}", f"graph {number} {name}")
    yield f"cd /heap_outputs; {LUAJIT} leak.lua {LEAK_STEPS} </tmp/go >/tmp/out & target=$!; exec 9>/tmp/go; {ready('/tmp/out')}; sleep 1"
    yield "ljspy heap -p $target -f json -o /tmp/leak 2>&1 | sed 's/^/heap says /'; kill -9 $target; exec 9>&-"
    yield machine.send("/tmp/leak", "leak")


def checked(what, check, *arguments):
    """What a test's check says, as text."""
    try:
        check(*arguments)
    except (AssertionError, KeyError, IndexError, ValueError) as fault:
        yield f"{what}: {type(fault).__name__} {str(fault)[:600]}"


def judge_clocks(files):
    def wall(title):
        document = json.loads(files[f"{title} json"])
        return test_wall.recorded_of(document, files[f"{title} said"].decode(), RATE)

    def shares(number, turns):
        recorded = wall(f"wall {number}")
        spent, whole = recorded.by_wait(), sum(recorded.spent.values())
        print(f"wall clock: {len(recorded.document['samples'])} samples, {recorded.missed:.3f} missed; " + ", ".join(
            f"{wait} {spent.get(wait, 0) / whole:.3f} of {recorded.spent[wait] / whole:.3f}" for wait in turns.split()))
        test_wall.assert_shares(recorded)
        assert recorded.interrupted == 0, recorded.interrupted
        for wait in turns.split():
            if wait != "compute":
                test_wall.assert_state(recorded, wait, "idle" if wait == "events" else "blocked")

    def off_cpu(title):
        recorded = wall(title)
        leaves = test_wall.leaves_of(json.loads(files[f"{title} off-cpu"]), recorded)
        right = test_wall.right_leaves(leaves)
        print("off the CPU:", ", ".join(sorted(leaf for _, leaf in right)))
        assert {wait for wait, _ in right} == {*test_wall.LEAVES}, dict(leaves)
        assert recorded.interrupted == 0, recorded.interrupted

    for number, turns in enumerate(WAITS):
        yield from checked(f"wall clock of {turns}", shares, number, turns)
    yield from checked("off the CPU", off_cpu, f"wall {len(WAITS)}")
    yield from checked("blocked turns", blocked, wall("blocked"), files["blocked figures"].decode())
    yield from checked("coroutines", parked, stacks.parse_folded(files["parked"].decode()))


def blocked(recorded, figures):
    """Only the turns that compute are in the recording; almost all of them, each as long as the program says."""
    turns = re.search(r"blocked +(\d+) turns of 20 ms or more, ([\d.]+) ms of .* p50 ([\d.]+) ms", figures)
    assert turns, figures
    count, ms, median = int(turns[1]), float(turns[2]), float(turns[3])
    made = recorded.spent["compute"] * 1000 / TURN_MS
    print(f"blocked: {count} of {made:.0f} turns, {ms:.0f} of {recorded.spent['compute'] * 1000:.0f} ms, p50 {median} ms")
    assert 0.8 * made <= count <= made + 1, figures
    assert abs(median - TURN_MS) <= 0.2 * TURN_MS, figures
    assert set(recorded.by_wait()) <= {"compute", None}, recorded.by_wait()
    assert recorded.by_wait()["compute"] > 0.8 * recorded.spent["compute"], recorded.by_wait()


def parked(samples):
    places = {line: sum(sample.weight for sample in samples if any(f"parked.lua:{line}" in frame for frame in sample.frames))
              for line in (9, 13)}  # fmt: skip
    print(f"coroutines: {places[9] / max(places[13], 1):.3f} of {ONE_OF_FOUR}")
    assert places[13] and abs(places[9] / places[13] - ONE_OF_FOUR) <= 0.05 * ONE_OF_FOUR, places
    assert sum(places.values()) == sum(sample.weight for sample in samples), samples
    assert all("coroutine.yield" in sample.frames[-1] for sample in samples), samples


def judge_traces(files):
    def one(name):
        (process,) = json.loads(files[f"traces {name}"])["processes"]
        (vm,) = process["vms"]
        return process, vm

    def table():
        truth = test_traces.truth_of(files["traces out"].decode())
        print(f"traces: {len(truth)}")
        test_traces.assert_table(*one("traces"), truth)

    def hot():
        process, vm = one("hot")
        first = vm["traces"][0]
        print(f"traces: {process['samples']} samples, {first['share']:.3f} of them in {first['start']['name']}")
        assert first["share"] > 0.5 and first["samples"] > 0 and first["start"]["name"] == "hot", first

    yield from checked("traces", table)
    yield from checked("hot traces", hot)


def judge_heap(files):
    def graph(number):
        seen, told = heaps.parse(files[f"graph {number} heap"].decode(errors="replace")), files[f"graph {number} told"].decode("latin-1")
        assert seen and seen.sum == seen.total and seen.uncertain == 0, seen and (seen.sum, seen.total, seen.uncertain)
        faults = heaps.wrong(seen, told)
        print(f"heap: {len(seen.kinds)} objects, {seen.total} bytes, collector {seen.state}, {len(faults)} wrong")
        assert not faults and told.count("object") >= GRAPHS[number][1] / 2, faults[:3]

    def leak():
        (process,) = json.loads(files["leak"])["processes"]
        (vm,) = process["vms"]
        assert vm["difference"] == 0 and not any(vm["uncertain"].values()), vm["uncertain"]
        assert {row["ctype"]: row["count"] for row in vm["cdata"]}["struct reading"] == LEAK_STEPS, vm["cdata"]
        paths = [row for row in vm["paths"] if row["count"] >= LEAK_STEPS and "leak.lua" in row["path"]]
        print(f"heap of leak.lua: {len(paths)} paths to what it makes again and again")
        assert len(paths) > 5, vm["paths"]

    for number in range(len(GRAPHS)):
        yield from checked(f"heap {GRAPHS[number]}", graph, number)
    yield from checked("heap of leak.lua", leak)


def judge_unstopped(files):
    programs = {program.name: program for program in stacks.all_programs()}
    for name, jit in UNSTOPPED:
        samples = stacks.parse_folded(files[f"unstopped {name} {jit}"].decode())
        wrong = [";".join(sample.frames) for sample in samples if programs[name].judge(test_no_stop.known(sample)) == "wrong"]
        print(f"not stopped, {name}, jit {jit}: {len(samples)} kinds of stack, {len(wrong)} wrong")
        if not samples or wrong:
            yield f"not stopped: {name}, jit {jit}: {wrong[:3]}"


def judge_top(said):
    """The first screen with rows has the busy function (later ones are only what changes), and top goes without a trace."""
    found = re.search(r"(?s)top begins(.*?)top ends (\d+)", said)
    screen = re.sub(r"\x1b[\[(]?[0-9;?]*[A-Za-z=>]|[\x0e\x0f]", "\n", found[1]) if found else ""
    totals = [float(total) for total in HEAVY.findall(screen)]
    figures = [int(count) for count in re.findall(r"samples (\d+)", screen)]
    print(f"top: {totals[:1]} %, {max(figures, default=0)} samples")
    if not totals or totals[0] < 90 or not any(figures):
        yield f"top shows {screen!r}"
    if "top leaves TracerPid:\t0" not in said:
        yield f"top ends with {found and found[2]}, {re.findall('top leaves.*', said)}"


def judge(said):
    """What is wrong."""
    files = machine.sent(said)
    for part in (judge_clocks, judge_traces, judge_heap, judge_unstopped):
        try:
            yield from part(files)
        except (KeyError, ValueError) as lacks:
            yield f"{part.__name__}: {lacks!r}"
    yield from judge_top(said)
