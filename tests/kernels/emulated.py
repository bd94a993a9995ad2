#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""ljspy on the kernels of Debian's releases, in an emulated machine.

emulated.py BUILD DOCUMENT [SUITE...]

BUILD has ljspy. On each release's kernel ljspy

- records a program of tests/programs, whose every stack must be on the program's list;
- samples, by the wall clock, a parked program, and dumps it: the stack must be the one that
  debug.traceback() gives;
- is killed while it samples, KILLS times, and the program must run on untraced.

What was seen goes into the document, unless only some releases are asked for.
"""

import collections
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/layouts"), str(ROOT / "tests")]

import emulator  # noqa: E402, pylint: disable=wrong-import-position
import packages  # noqa: E402, pylint: disable=wrong-import-position
import stacks  # noqa: E402, pylint: disable=wrong-import-position
import written  # noqa: E402, pylint: disable=wrong-import-position

WORK = ROOT / "build/kernels"
SUITES = ("bullseye", "bookworm", "trixie")
EMULATOR = ["qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-smp", "1", "-icount", "shift=3,sleep=off"]  # 8 ns an instruction
COMMANDS = "sh mount mkdir sleep grep kill uname poweroff sed cat"
LUAJIT = "luajit-bookworm"
RECORDED = "calls"
KILLS = 10
HEAD = ["| kernel | stacks of `record` | `--clock wall` | `dump` | ljspy killed |", "|---|---|---|---|---|"]


def kernel_tree(suite):
    """The release's kernel and a static busybox, unpacked."""
    tree = WORK / suite
    if tree.is_dir():
        return tree
    apt = packages.lists(suite, "amd64")
    plan = packages.planned(apt, "linux-image-amd64")
    image = next(name for name in plan if re.match(r"linux-image-\d", name))
    return packages.downloaded(apt, tree, [image, "busybox-static"])


def commands():
    yield "cd /programs"
    yield f"{LUAJIT} {RECORDED}.lua on 10000 >/tmp/said & target=$!"
    yield "until grep -q ready /tmp/said; do sleep 0.2; done"
    yield "ljspy info -p $target | sed 's/^/info /'"
    yield "ljspy record -p $target -d 4s -r 50 --native all -f folded -o - 2>/tmp/figures | sed 's/^/record /'"
    yield "sed 's/^/figures /' /tmp/figures"
    yield f"for n in {' '.join(map(str, range(KILLS)))}; do"
    yield "ljspy record -p $target -d 60s -r 200 -o /tmp/killed.ljspy 2>/dev/null & sampler=$!"
    yield "sleep 1.$n; kill -9 $sampler; sleep 1"
    yield "echo killed $(grep -E '^(State|TracerPid)' /proc/$target/status)"
    yield "done; kill -9 $target"
    yield f"{LUAJIT} parked.lua >/tmp/parked & target=$!"
    yield "until grep -q ready /tmp/parked; do sleep 0.2; done; sleep 1"
    yield "sed 's/^/traceback /' /tmp/parked; ljspy dump -p $target | sed 's/^/dump /'"
    yield "ljspy record -p $target --clock wall -d 4s -r 20 -f folded -o - 2>/dev/null | sed 's/^/wall /'; kill -9 $target"


def lay_root(suite, build):
    """The files of the emulated machine."""
    root = WORK / f"{suite}.root"
    emulator.lay_root(root, kernel_tree(suite) / "bin/busybox", COMMANDS)
    emulator.lay_program(root, build / "ljspy")
    tree = packages.tree("bookworm", "luajit")
    emulator.lay_unpacked(root, tree, packages.loader(tree, tree / "usr/bin/luajit"), LUAJIT)
    shutil.copytree(stacks.PROGRAMS, root / "programs")
    shutil.copy(ROOT / "tests/arm64/parked.lua", root / "programs")
    emulator.lay_commands(root, commands())
    return root


def lines_of(said, word):
    return re.findall(rf"(?m)^{word} ?(.*)$", said)


def places(lines):
    return [found[1] for line in lines if (found := re.search(r"(parked\.lua:\d+)", line))]


def judged(said):
    """What was seen, for the row of the table, and what is wrong with it."""
    faults = [] if "all done" in said else [f"The machine did not come to its end: {said[-2000:]}"]
    program = next(one for one in stacks.all_programs() if one.name == RECORDED)
    verdicts = collections.Counter(program.judge(one) for one in stacks.parse_folded("\n".join(lines_of(said, "record"))))
    if not verdicts["whole"] or verdicts["wrong"]:
        faults.append(f"recorded {dict(verdicts)}")
    # Behind the traceback's last C function stands the coroutine's caller, which the dump shows apart.
    traced = [place for line in lines_of(said, "traceback") for place in places([line.strip()]) if line.strip().startswith("parked")]
    dumped, walled = places(lines_of(said, "dump")), lines_of(said, "wall")
    if not traced or dumped[:len(traced)] != traced:
        faults.append(f"dumped {dumped}, but debug.traceback() says {traced}")
    right = [line for line in walled if set(traced) <= {place.group(1) for place in re.finditer(r"(parked\.lua:\d+)", line)}]
    if not right:
        faults.append(f"by the wall clock: {walled}")
    killed = lines_of(said, "killed")
    well = [line for line in killed if re.search(r"State: R.*TracerPid: 0", line)]
    if len(well) != KILLS:
        faults.append(f"killed: {killed}")
    stacks_seen = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items(), reverse=True))
    return [stacks_seen, f"{len(right)} of {len(walled)} kinds of stack whole", f"{len(dumped)} frames, right" if dumped else "none",
            f"{len(well)} of {KILLS} times it ran on, untraced"], faults


def main():
    if not shutil.which("qemu-system-x86_64"):
        print("skipped: qemu-system-x86_64 is not installed (Debian's package qemu-system-x86)")
        return 0
    build = pathlib.Path(sys.argv[1]).resolve()
    rows, faults = [], []
    for suite in sys.argv[3:] or SUITES:
        kernel = next((kernel_tree(suite) / "boot").glob("vmlinuz-*"))
        said = emulator.run(EMULATOR, kernel, lay_root(suite, build), "ttyS0")
        (WORK / f"{suite}.said").write_text(said)
        cells, wrong = judged(said)
        rows.append(f"| {suite}: {kernel.name.removeprefix('vmlinuz-')} | {' | '.join(cells)} |")
        print(rows[-1], flush=True)
        faults += [f"{suite}: {fault}" for fault in wrong]
    print("\n".join(faults))
    if not faults and not sys.argv[3:]:
        written.write(pathlib.Path(sys.argv[2]), "kernels", "\n".join([*HEAD, *rows]))
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
