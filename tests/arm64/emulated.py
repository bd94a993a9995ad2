#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Stacks of arm64 programs, judged on Debian's own arm64 kernel in an emulated machine.

emulated.py BUILD SYSROOT [STEPS]

BUILD has ljspy and tests/exactness/exactness, built for arm64; SYSROOT has the libraries that
they need. QEMU emulates the machine, whose clock counts instructions: what it shows does not
depend on how fast this machine is. There

- the judge of tests/exactness steps through programs with known stacks, STEPS instructions of
  each, on several releases' LuaJIT. No stack may be wrong, and few may be lost;
- ljspy dumps a parked program, and its stack must be the one that debug.traceback() gives;
- ljspy records a program of tests/programs, and every stack must be on the program's list.
"""

import collections
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/layouts"), str(ROOT / "tests")]

import emulator  # noqa: E402, pylint: disable=wrong-import-position
import packages  # noqa: E402, pylint: disable=wrong-import-position
import stacks  # noqa: E402, pylint: disable=wrong-import-position

HERE = ROOT / "tests/arm64"
WORK = ROOT / "build/arm64"
# An instruction takes 8 ns of the emulated machine's time.
EMULATOR = ["qemu-system-aarch64", "-M", "virt", "-cpu", "max", "-smp", "1", "-icount", "shift=3,sleep=off"]
SUITE = "bookworm"
COMMANDS = "sh mount mkdir sleep grep kill uname poweroff sed timeout"
# What the judge steps through: release, whether the JIT compiler is on, programs.
STEPPED = (
    ("bookworm", "off", "calls recursion varargs coroutines protected metamethods callbacks hooks"),
    ("trixie", "off", "calls coroutines"),
)
LOST_SHARE = 0.01
RECORDED = "calls"
ROW = re.compile(r"step (\S+) +(\S+) +(\S+) +(\d+) judged, +(\d+) wrong, +(\d+) without a line, +(\d+) lost")


def kernel_tree():
    """Debian's kernel and a static busybox, unpacked."""
    apt = packages.lists(SUITE, "arm64")
    plan = packages.planned(apt, "linux-image-arm64")
    image = next(name for name in plan if re.match(r"linux-image-\d", name))
    return packages.downloaded(apt, WORK / f"kernel-{SUITE}", [image, "busybox-static"])


def needed(program):
    listed = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", listed)


def lay_libraries(root, sysroot, programs):
    """Copy the libraries that the programs need, and those that these need."""
    folders = [sysroot / name for name in ("usr/lib/aarch64-linux-gnu", "lib/aarch64-linux-gnu", "lib", "usr/lib")]
    wanted = ["ld-linux-aarch64.so.1", *(name for program in programs for name in needed(program))]
    copied = set()
    while wanted:
        name = wanted.pop()
        if name not in copied:
            found = next(folder / name for folder in folders if (folder / name).exists())
            shutil.copy(found, root / "lib" / name)
            copied.add(name)
            wanted += needed(found)


def lay_luajit(root, suite):
    """A release's LuaJIT with its own libraries, and a command that runs it."""
    tree = packages.tree(suite, "luajit:arm64")
    emulator.lay_unpacked(root, tree, packages.loader(tree, tree / "usr/bin/luajit"), f"luajit-{suite}")


def commands(steps):
    yield "cd /exactness"
    for suite, jit, names in STEPPED:
        for name in names.split():
            yield f'echo "step {suite} $(exactness step /bin/luajit-{suite} {name} {jit} {steps})"'
    yield "cd /programs"
    yield f"luajit-{SUITE} parked.lua >/tmp/said &"
    yield "target=$!; until grep -q ready /tmp/said; do sleep 0.2; done; sleep 1"
    yield "sed 's/^/traceback /' /tmp/said; ljspy dump -p $target | sed 's/^/dump /'; kill -9 $target"
    yield f"luajit-{SUITE} -joff {RECORDED}.lua off 600 >/tmp/said &"
    yield "target=$!; until grep -q ready /tmp/said; do sleep 0.2; done"
    yield "ljspy record -p $target -d 4s -r 50 --native all -f folded -o - 2>/tmp/figures | sed 's/^/record /'"
    yield "sed 's/^/figures /' /tmp/figures; kill -9 $target"


def lay_base(root, programs, sysroot, more=""):
    """A root with busybox's commands, and programs with their libraries."""
    emulator.lay_root(root, kernel_tree() / "bin/busybox", f"{COMMANDS} {more}")
    for program in programs:
        shutil.copy(program, root / "bin")
    lay_libraries(root, sysroot, programs)


def boot(root):
    """What the machine says while it runs the root's commands."""
    return emulator.run(EMULATOR, next((kernel_tree() / "boot").glob("vmlinuz-*")), root, "ttyAMA0")


def lay_root(build, sysroot, steps):
    """The files of the emulated machine."""
    root = WORK / "root"
    lay_base(root, [build / "ljspy", build / "tests/exactness/exactness"], sysroot)
    for suite in {suite for suite, _, _ in STEPPED} | {SUITE}:
        lay_luajit(root, suite)
    shutil.copytree(stacks.PROGRAMS, root / "programs")
    shutil.copy(HERE / "parked.lua", root / "programs")
    shutil.copytree(ROOT / "tests/exactness", root / "exactness")
    emulator.lay_commands(root, commands(steps))
    return root


def lines_of(said, word):
    return re.findall(rf"(?m)^{word} ?(.*)$", said)


def judge_steps(said):
    rows = ROW.findall(said)
    for row in rows:
        suite, program, jit, *counts = row
        judged, wrong, no_line, lost = map(int, counts)
        print(f"{suite} {program}, jit {jit}: {judged} stacks, {wrong} wrong, {no_line} without a line, {lost} lost")
        if judged == 0 or wrong or lost > LOST_SHARE * judged:
            yield f"{suite} {program}: {counts}"
    wanted = sum(len(names.split()) for _, _, names in STEPPED)
    if len(rows) != wanted:
        yield f"{len(rows)} of {wanted} programs were judged"


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
    if not verdicts["whole"]:
        yield "the recording has no whole stack"


def main():
    if not shutil.which("qemu-system-aarch64"):
        print("skipped: qemu-system-aarch64 is not installed (Debian's package qemu-system-arm)")
        return 0
    build, sysroot = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    steps = sys.argv[3] if sys.argv[3:] else "1000"
    root = lay_root(build, sysroot, steps)
    said = boot(root)
    print("\n".join(re.findall(r"kernel .*", said)))
    faults = [*judge_steps(said), *judge_dump(said), *judge_record(said)]
    if "all done" not in said:
        faults.append(f"The emulated machine did not come to its end: {said[-2000:]}")
    print("\n".join(faults))
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
