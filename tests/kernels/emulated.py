#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""ljspy on the kernels of Debian's releases, in an emulated machine.

emulated.py BUILD DOCUMENT [SUITE...]

BUILD has ljspy. On each release's kernel ljspy

- records a program of tests/programs, whose every stack must be on the program's list;
- samples, by the wall clock, a parked program, and dumps it: the stack must be the one that
  debug.traceback() gives;
- is killed while it samples, KILLS times, and the program must run on untraced;
- does all of this with a worker of nginx under load (tests/arm64/nginx.py).

What was seen goes into the document, unless only some releases are asked for.
"""

import collections
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/layouts"), str(ROOT / "tests"), str(ROOT / "tests/arm64")]

import emulator  # noqa: E402, pylint: disable=wrong-import-position
import nginx  # noqa: E402, pylint: disable=wrong-import-position
import packages  # noqa: E402, pylint: disable=wrong-import-position
import stacks  # noqa: E402, pylint: disable=wrong-import-position
import written  # noqa: E402, pylint: disable=wrong-import-position

WORK = ROOT / "build/kernels"
SUITES = ("bullseye", "bookworm", "trixie")
EMULATOR = ["qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-smp", "1",
            "-icount", "shift=2,sleep=off"]  # 4 ns an instruction
COMMANDS = f"sh mount mkdir sleep grep kill uname poweroff sed {nginx.COMMANDS}"
LUAJIT = "luajit-bookworm"
RECORDED = "calls"
KILLS = 5
# Where the parked program is, by names.
PARKED = r"sorted parked.lua:\d+;table\.sort \[builtin\];.*(third parked.lua:\d+;)+park parked.lua:\d+;usleep "
HEAD = ["| kernel | stacks of `record` | `--clock wall` | `dump` | ljspy killed | nginx, all of it |", "|---|---|---|---|---|---|"]


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
    yield "ljspy record -p $target -d 5s -r 20 --native all -f folded -o - 2>/tmp/figures | sed 's/^/record /'"
    yield "sed 's/^/figures /' /tmp/figures"
    yield f"for n in {' '.join(map(str, range(KILLS)))}; do"
    yield "ljspy record -p $target -d 60s -r 200 -o /tmp/killed.ljspy 2>/dev/null & sampler=$!"
    yield "sleep 1.$n; kill -9 $sampler; sleep 1"
    yield "echo killed $(grep -E '^(State|TracerPid)' /proc/$target/status)"
    yield "done; kill -9 $target"
    yield f"{LUAJIT} parked.lua >/tmp/parked & target=$!"
    yield "until grep -q ready /tmp/parked; do sleep 0.2; done; sleep 1"
    yield "sed 's/^/traceback /' /tmp/parked; ljspy dump -p $target | sed 's/^/dump /'"
    yield "ljspy record -p $target --clock wall -d 3s -r 10 -f folded -o - 2>/dev/null | sed 's/^/wall /'; kill -9 $target"


def lay_root(suite, build):
    """The files of the emulated machine."""
    root = WORK / f"{suite}.root"
    # A release before trixie has /bin.
    busybox = next(path for folder in ("usr/bin", "bin") if (path := kernel_tree(suite) / folder / "busybox").exists())
    emulator.lay_root(root, busybox, COMMANDS)
    emulator.lay_program(root, build / "ljspy")
    tree = packages.tree("bookworm", "luajit")
    emulator.lay_unpacked(root, tree, packages.loader(tree, tree / "usr/bin/luajit"), LUAJIT)
    shutil.copytree(stacks.PROGRAMS, root / "programs")
    shutil.copy(ROOT / "tests/arm64/parked.lua", root / "programs")
    emulator.lay_commands(root, [*commands(), *nginx.lay(root, "amd64")])
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
    dumped, waited = places(lines_of(said, "dump")), lines_of(said, "wall")
    if not traced or dumped[:len(traced)] != traced:
        faults.append(f"dumped {dumped}, but debug.traceback() says {traced}")
    if not waited or not all(re.search(PARKED, line) for line in waited):
        faults.append(f"by the wall clock: {waited}")
    killed = lines_of(said, "killed")
    well = [line for line in killed if re.search(r"State: R.*TracerPid: 0", line)]
    if len(well) != KILLS:
        faults.append(f"killed: {killed}")
    (samples, *_), (lost, *_) = ([line.split()[0] for line in lines_of(said, f"figures {word}")] or "?" for word in ("samples", "lost"))
    served = list(nginx.judge(said))
    faults += served
    (in_nginx, *_) = re.findall(r"nginx-figures samples +(\d+)", said) or "?"
    return [f"{samples} samples, {lost} lost, {verdicts['wrong']} kinds of stack wrong", f"{len(waited)} kind of stack, right",
            f"{len(dumped)} frames, right", f"{len(well)} of {KILLS} times it ran on, untraced",
            f"{in_nginx} samples, " + ("wrong" if served else "right")], faults


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
