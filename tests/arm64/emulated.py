#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Stacks of arm64 programs, judged on Debian's own arm64 kernel in an emulated machine.

emulated.py BUILD SYSROOT [STEPS]

BUILD has ljspy and tests/exactness/exactness, built for arm64; SYSROOT has the libraries that
they need. QEMU emulates the machine, whose clock counts instructions: what it shows does not
depend on how fast this machine is. There

- the judge of tests/exactness steps through programs with known stacks, STEPS instructions of
  each, on several releases' LuaJIT, and samples others whose code is compiled. No stack may be
  wrong, and few may be lost;
- frames in compiled code are judged by an instrumented LuaJIT (jit_truth.py);
- ljspy dumps a parked program, and its stack must be the one that debug.traceback() gives;
- ljspy records a program of tests/programs, and every stack must be on the program's list;
- ljspy records a worker of nginx under load, and is killed while it does (nginx.py);
- naps in system calls that a stop would end with EINTR end as they should (waits.py);
- the other commands and clocks are judged by the programs of their own tests (commands.py);
- native frames of code with signed return addresses are judged (signed.py), those of sleeping threads (asleep.py,
  and without the machine, unit_programs.py), and others by libunwind-ptrace's walk of the same stopped thread (second_opinion.py);
- a part of it runs again on a kernel with larger pages.
"""

import collections
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/exactness")]

import asleep  # noqa: E402, pylint: disable=wrong-import-position
import commands  # noqa: E402, pylint: disable=wrong-import-position
import emulator  # noqa: E402, pylint: disable=wrong-import-position
import jit_truth  # noqa: E402, pylint: disable=wrong-import-position
import machine  # noqa: E402, pylint: disable=wrong-import-position
import nginx  # noqa: E402, pylint: disable=wrong-import-position
import random_programs  # noqa: E402, pylint: disable=wrong-import-position
import second_opinion  # noqa: E402, pylint: disable=wrong-import-position
import signed  # noqa: E402, pylint: disable=wrong-import-position
import stacks  # noqa: E402, pylint: disable=wrong-import-position
import unit_programs  # noqa: E402, pylint: disable=wrong-import-position
import waits  # noqa: E402, pylint: disable=wrong-import-position

HERE = ROOT / "tests/arm64"
TRUTH, TRUTH_PROGRAMS = ["2022"], ["heapsort", "bank"]  # the instrumented LuaJIT's release
# What the judge steps through, with the JIT compiler off, and what it samples, with the compiler on:
# release, programs, parameters of the compiler.
STEPPED = (
    ("bookworm", "calls recursion varargs coroutines resumes protected metamethods callbacks hooks "
                 "tailcalls returns callers random-1 random-2"),
    ("trixie", "calls coroutines random-3"),
    ("bullseye", "calls coroutines random-4"),
    ("sid", "calls coroutines random-5"),
)
SAMPLED = (
    ("bookworm", "calls recursion varargs coroutines protected metamethods callbacks iterators", "hotloop=2 hotexit=2"),
    ("trixie", "calls coroutines ffi generators growth pairs tailcalls returns callers", "hotloop=2 hotexit=2"),
    ("bullseye", "generators next", "hotloop=2 hotexit=2"),
    ("bullseye", "calls metamethods", "hotloop=2 hotexit=2 sizemcode=32 maxmcode=32 maxtrace=20"),
)
RANDOM = 5  # of these are random programs
SAMPLES = 100
# Of each stepped program, and of all that is sampled while traces are compiled and left all the time.
LOST_SHARE, LOST_SAMPLED_SHARE = 0.01, 0.02
LOST_SAMPLED_MOST = 0.04  # of one sampled program
# A part on Debian's kernel with pages of 16 KiB; there is none with 64.
LARGE_PAGES = "trixie", "linux-image-arm64-16k"
LARGE_PAGES_STEPPED, LARGE_PAGES_STEPS = (("bookworm", "calls"), ("trixie", "calls")), 150
RECORDED = "calls"
LEAST_RECORDED = 10  # kinds of stack
SKID_MAX = 50  # percent of the samples
ROW = re.compile(r"(step|sample) (\S+) +(\S+) +(\S+) +(\d+) judged, +(\d+) wrong, +(\d+) without a line, +(\d+) lost")


def step_commands(steps, stepped):
    yield "cd /exactness"
    for suite, names in stepped:
        for name in names.split():
            yield f'echo "step {suite} $(exactness step /bin/luajit-{suite} {name} off {steps})"'


def sample_commands():
    for suite, names, settings in SAMPLED:
        for name in names.split():
            yield f'echo "sample {suite} $(exactness sample /bin/luajit-{suite} {name} on {SAMPLES} {settings})"'


def live_commands():
    yield "grep KernelPageSize /proc/self/smaps | sed q; cd /programs"
    yield f"luajit-{machine.SUITE} parked.lua >/tmp/said &"
    yield "target=$!; until grep -q ready /tmp/said; do sleep 0.2; done; sleep 1"
    yield "sed 's/^/traceback /' /tmp/said; ljspy dump -p $target | sed 's/^/dump /'; kill -9 $target"
    yield f"luajit-{machine.SUITE} -joff {RECORDED}.lua off 600 >/tmp/said &"
    yield "target=$!; until grep -q ready /tmp/said; do sleep 0.2; done"
    yield "ljspy record -p $target -d 4s -r 50 --native all -f folded -o - 2>/tmp/figures | sed 's/^/record /'"
    yield "sed 's/^/figures /' /tmp/figures; kill -9 $target"


def lay_random(root, seeds):
    """The random programs of these seeds, for the judge."""
    return " ".join(random_programs.write(seed, root / "exactness") for seed in seeds)


def lay_base(build, sysroot, suites, more=""):
    """The files of the emulated machine, but for its commands."""
    root = machine.WORK / "root"
    machine.lay_base(root, [build / "ljspy", build / "tests/exactness/exactness"], sysroot, more)
    for suite in {machine.SUITE, *suites}:
        machine.lay_luajit(root, suite)
    shutil.copytree(stacks.PROGRAMS, root / "programs")
    shutil.copy(HERE / "parked.lua", root / "programs")
    shutil.copytree(ROOT / "tests/exactness", root / "exactness")
    lay_random(root, range(1, RANDOM + 1))
    return root


def boot_part(build, sysroot, steps, stepped, *kernel):
    """What the machine says of what a short run can judge: judge_part()."""
    root = lay_base(build, sysroot, (suite for suite, _ in stepped))
    emulator.lay_commands(root, [*step_commands(steps, stepped), *live_commands()])
    return machine.boot(root, *kernel)


def boot_whole(build, sysroot, steps):
    root = lay_base(build, sysroot, (suite for suite, *_ in STEPPED + SAMPLED),
                    " ".join({*f"{jit_truth.COMMANDS} {nginx.COMMANDS} {waits.COMMANDS}".split()}))
    first = [*step_commands(steps, STEPPED), *sample_commands(), *live_commands()]
    truth = jit_truth.lay(root, build, sysroot, TRUTH, TRUTH_PROGRAMS)
    emulator.lay_commands(root, [*first, *nginx.lay(root), *waits.lay(root, sysroot), *truth])
    return machine.boot(root)


def boot_commands(build, sysroot):
    root = lay_base(build, sysroot, {*signed.SUITES, *asleep.SUITES}, commands.COMMANDS)
    emulator.lay_commands(root, [*commands.lay(root, build, sysroot), *signed.lay(root, sysroot),
                                *asleep.lay(root, sysroot), *second_opinion.lay(root, build, sysroot)])
    return machine.boot(root)


def lines_of(said, word):
    return re.findall(rf"(?m)^{word} ?(.*)$", said)


def judge_steps(said, programs):
    """As many programs must have been judged."""
    rows = ROW.findall(said)
    sampled = collections.Counter()
    for row in rows:
        mode, suite, program, jit, *counts = row
        judged, wrong, no_line, lost = map(int, counts)
        print(f"{suite} {program}, jit {jit}: {judged} stacks, {wrong} wrong, {no_line} without a line, {lost} lost")
        if mode == "sample":
            sampled.update(judged=judged, lost=lost)
        if judged == 0 or wrong or lost > (LOST_SHARE if mode == "step" else LOST_SAMPLED_MOST) * judged:
            yield f"{suite} {program}: {counts}"
    if sampled["lost"] > LOST_SAMPLED_SHARE * sampled["judged"]:
        yield f"lost: {sampled['lost']} of {sampled['judged']} samples"
    if len(rows) != programs:
        yield f"{len(rows)} of {programs} programs were judged"


def count(*groups):
    return sum(len(names.split()) for group in groups for _, names, *_ in group)


def judge_dump(said):
    """The lines of debug.traceback() are those of the dump, apart from native code."""
    place = re.compile(r"(parked\.lua:\d+)")
    traced = [found[1] for line in lines_of(said, "traceback") if (found := place.match(line.strip()))]
    dumped = [found[1] for line in lines_of(said, "dump") if (found := place.search(line))]
    print(f"dump of a parked program: {' '.join(dumped)}")
    if not traced or dumped[:len(traced)] != traced:
        yield f"dumped {dumped}, but debug.traceback() says {traced}"


def judge_record(said):
    program = next(one for one in stacks.all_programs() if one.name == RECORDED)
    verdicts = collections.Counter()
    for sample in stacks.parse_folded("\n".join(lines_of(said, "record"))):
        verdict = program.judge(sample)
        verdicts[verdict] += 1
        if verdict == "wrong":
            yield ";".join(sample.frames)
    print(f"recording of {RECORDED}.lua: {dict(verdicts)}; {' '.join(lines_of(said, 'figures samples'))}")
    # The program hardly ever is in a system call.
    skid = next((float(found[1]) for line in lines_of(said, "figures") if (found := re.match(r"skid .*\((.*) %\)", line))), 0)
    if skid > SKID_MAX:
        yield f"{skid} % of the recording's samples are said to be at the end of a system call"
    if verdicts["whole"] < LEAST_RECORDED:
        yield f"the recording has {verdicts['whole']} kinds of whole stack"


def judge_part(said, stepped):
    """What is wrong."""
    yield from judge_steps(said, count(stepped))
    yield from judge_dump(said)
    yield from judge_record(said)
    yield from ended(said)


def ended(said):
    if "all done" not in said:
        yield f"The emulated machine did not come to its end: {said[-2000:]}"


def main():
    if not shutil.which("qemu-system-aarch64"):
        print("skipped: qemu-system-aarch64 is not installed (Debian's package qemu-system-arm)")
        return 0
    build, sysroot = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    steps = sys.argv[3] if sys.argv[3:] else "1000"
    faults = [*unit_programs.judge(build, sysroot)]
    said = boot_whole(build, sysroot, steps)
    (machine.WORK / "said").write_text(said, encoding="utf-8")
    print("\n".join(re.findall(r"kernel .*", said)))
    faults += [*judge_steps(said, count(STEPPED, SAMPLED)), *judge_dump(said), *judge_record(said),
              *nginx.judge(said), *waits.judge(said), *jit_truth.judge_all(said, TRUTH, TRUTH_PROGRAMS)]
    faults += ended(said)
    said = boot_commands(build, sysroot)
    (machine.WORK / "said-commands").write_text(said, encoding="utf-8")
    faults += [*commands.judge(said), *signed.judge(said), *asleep.judge(said), *second_opinion.judge(said), *ended(said)]
    said = boot_part(build, sysroot, LARGE_PAGES_STEPS, LARGE_PAGES_STEPPED, *LARGE_PAGES)
    print("\n".join(re.findall(r"(?:kernel|KernelPageSize:) .*", said)))
    faults += [*judge_part(said, LARGE_PAGES_STEPPED)] if "16 kB" in said else ["no pages of 16 KiB"]
    print("\n".join(faults))
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
