# SPDX-License-Identifier: MIT
"""Native frames of code whose return addresses are signed, in the emulated arm64 machine, which signs them.

The judge of tests/exactness steps through each instruction of C functions that call Lua back. A recording must
name the C functions in their order.
"""

import collections
import re
import shutil
import subprocess

import machine
import stacks

HERE = machine.ROOT / "tests/arm64"
COMPILER = "aarch64-linux-gnu-gcc"
WAYS = "standard", "leaves", "combined"
SUITES = "bookworm", "trixie"
STEPS = 4000
ROW = re.compile(r"signed (\S+) +(\S+) +(\S+) +(\d+) judged, +(\d+) wrong, +(\d+) without a line, +(\d+) lost")


def lay(root, sysroot):
    subprocess.run([COMPILER, f"--sysroot={sysroot}", "-std=c17", "-O2", "-shared", "-fPIC", "-o", root / "signed.so",
                    HERE / "signed.c"], check=True)  # fmt: skip
    shutil.copy(HERE / "signed_busy.lua", root)
    shutil.copy(HERE / "signed.lua", root / "exactness/programs")
    return commands()


def commands():
    yield "cd /exactness"
    for suite in SUITES:
        yield f'echo "signed {suite} $(exactness step /bin/luajit-{suite} signed off {STEPS})"'
    yield f"luajit-{machine.SUITE} /signed_busy.lua >/tmp/out & target=$!; until grep -q ready /tmp/out; do sleep 0.2; done"
    yield "ljspy record -p $target -d 3s -r 50 --native all -f folded -o - 2>/dev/null | sed 's/^/signed-record /'"
    yield "sed 's/^/signed-says /' /tmp/out; kill -9 $target"


def legal(way):
    """The frames above the Lua function, root first, as far as they have come."""
    return [(), (f"{way}_works",), (f"{way}_works", f"{way}_leaf")]


def judge(said):
    """What is wrong."""
    rows = ROW.findall(said)
    for suite, _, _, *counts in rows:
        judged, wrong, _, lost = map(int, counts)
        print(f"signed return addresses, {suite}: {judged} stacks, {wrong} wrong, {lost} lost")
        if judged == 0 or wrong or lost > 0.01 * judged:
            yield f"signed return addresses, {suite}: {counts}"
    if len(rows) != len(SUITES):
        yield f"signed return addresses: {rows}"
    signatures = dict(re.findall(r"signed-says signature (\w+) (\d+)ULL", said))
    if {*signatures} != {*WAYS} or not all(int(bits) >> 47 for bits in signatures.values()):
        yield f"The machine does not sign return addresses: {signatures}"
    seen, wrong = collections.Counter(), collections.Counter()
    for line in re.findall(r"(?m)^signed-record (.*) \d+$", said):
        frames = line.split(";")
        native = tuple(frame.split(" ")[0] for frame in frames if "[signed.so]" in frame)
        way = native[0].split("_")[0] if native else None
        if native and native in legal(way) and any(frame.startswith("work ") for frame in frames):
            seen[way, native[-1]] += 1
        elif native or any(map(stacks.is_lost, frames)):
            wrong[line] += 1
    print("signed frames:", ", ".join(sorted({leaf for _, leaf in seen})), f"in {sum(seen.values())} kinds of stack, {sum(wrong.values())} wrong")
    if wrong or {leaf for _, leaf in seen} < {f"{way}_leaf" for way in WAYS}:
        yield f"signed return addresses: {dict(seen)}, wrong {dict(wrong)}"
