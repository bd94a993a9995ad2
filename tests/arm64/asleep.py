# SPDX-License-Identifier: MIT
"""Stacks of threads that sleep in each way that the C library has to wait, in the emulated arm64 machine.

The thread of each wait (asleep.c) must have its functions in their order, up to the thread's first. A sleeping
thread tells its pc and stack pointer only; where a function that any module may call keeps its return
address in a register meanwhile, the callers must be marked as lost.
"""

import collections
import re
import shutil
import subprocess

import machine

HERE = machine.ROOT / "tests/arm64"
COMPILER = "aarch64-linux-gnu-gcc"
SUITES = "bookworm", "trixie", "sid"
# System calls that the C library makes in a leaf function, which it exports.
UNKNOWN = {"flock", "semop", "syscall"}
WAITS = re.findall(r"\bWAIT\((\w+), ", (HERE / "asleep.c").read_text())
LUA = ["ffi.__call", "lock", "waits", "main chunk"]
LOST = "[lost"


def lay(root, sysroot):
    subprocess.run([COMPILER, f"--sysroot={sysroot}", "-std=c17", "-D_GNU_SOURCE", "-O2", "-shared", "-fPIC", "-pthread",
                    "-o", root / "asleep.so", HERE / "asleep.c"], check=True)  # fmt: skip
    shutil.copy(HERE / "asleep.lua", root)
    return commands()


def commands():
    for suite in SUITES:
        yield f"luajit-{suite} /asleep.lua /asleep.so >/tmp/out & target=$!; until grep -q ready /tmp/out; do sleep 0.2; done; sleep 2"
        yield f"ljspy dump --native all -p $target 2>/dev/null >/tmp/dump; {machine.send('/tmp/dump', f'asleep {suite} dump')}"
        yield "ljspy record --clock wall --native all -p $target -d 2s -r 10 -f folded -o /tmp/wall 2>/dev/null; kill -9 $target"
        yield machine.send("/tmp/wall", f"asleep {suite} wall")


def dumped(text):
    """The frames of each thread, innermost first."""
    for thread in re.split(r"(?m)^(?=Thread )", text)[1:]:
        yield [line.strip() for line in thread.splitlines()[1:] if line.startswith("    ")]


def recorded(text):
    for line in text.splitlines():
        yield line.rpartition(" ")[0].split(";")[::-1]


def verdict(frames):
    """The wait that a stack is in, if it is right; else None."""
    functions = [frame.split(" ")[0] for frame in frames]
    for wait in WAITS:
        if f"{wait}_inner" in functions:
            at = functions.index(f"{wait}_inner")
            own = functions[at:at + 3] == [f"{wait}_inner", f"{wait}_outer", "pool_thread"]
            return wait if own and at and not any(LOST in frame for frame in frames) else None
    if "keep_asleep" in functions:
        return "pause"
    if any(frame.startswith(LUA[0]) for frame in frames):
        at = next(i for i, frame in enumerate(frames) if frame.startswith(LUA[0]))
        right = all(frame.startswith(name) for frame, name in zip(frames[at:], LUA)) and "main" in functions
        return "Lua" if right and not any(LOST in frame for frame in frames) else None
    return LOST if any(LOST in frame for frame in frames) and not any("asleep.so" in frame for frame in frames) else None


def judge(said):
    """What is wrong."""
    files = machine.sent(said)
    for suite in SUITES:
        for way, stacks in (("dump", dumped), ("wall", recorded)):
            found, wrong = collections.Counter(), []
            for frames in stacks(files.get(f"asleep {suite} {way}", b"").decode()):
                found[verdict(frames)] += 1
                if verdict(frames) is None:
                    wrong.append(frames)
            known = {wait for wait in found if wait not in (None, LOST)}
            print(f"asleep, {suite}, {way}: {len(known)} kinds of wait, {found[LOST]} lost, {len(wrong)} wrong")
            # By the wall clock, only the thread of Lua is sampled.
            expected = {*WAITS, "pause", "Lua"} - UNKNOWN if way == "dump" else {"Lua"}
            if known != expected or found[LOST] != (len(UNKNOWN) if way == "dump" else 0):
                yield f"asleep, {suite}, {way}: {dict(found)}"
            yield from (f"asleep, {suite}, {way}: {frames}" for frames in wrong)
