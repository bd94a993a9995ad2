# SPDX-License-Identifier: MIT
"""Naps in system calls that end with EINTR after a stop, in the emulated arm64 machine: each ends as it should."""

import re
import shutil
import subprocess

import machine

SAFETY = machine.ROOT / "tests/safety"
COMPILER = "aarch64-linux-gnu-gcc"
# Those that the kernel does not begin again by itself, and two that it does.
KINDS = ["epoll_wait", "epoll_pwait2", "rt_sigtimedwait", "semtimedop", "io_getevents", "ppoll, limit not writable", "nanosleep",
         "futex wait"]
SECONDS, RATE = 10, 999
LEAST_NAPS, LEAST_SAMPLES = 20, 300
COMMANDS = "mkfifo cat head"
ROW = re.compile(r"(?m)^nap ([^\t\n]+)\t(\d+)\t(\d+)\t(\d+)\t(\d+)\t(.*)$")


def lay(root, sysroot):
    shutil.copy(SAFETY / "naps.lua", root)
    subprocess.run([COMPILER, f"--sysroot={sysroot}", "-std=c17", "-D_GNU_SOURCE", "-shared", "-fPIC", "-O1", "-o", root / "naps.so",
                    SAFETY / "naps.c", "-lutil", "-lrt"], check=True)
    return commands()


def commands():
    names = " ".join(f"'{name}'" for name in KINDS)
    yield "mkfifo /tmp/go"
    yield f"luajit-{machine.SUITE} /naps.lua /naps.so {SECONDS} {names} </tmp/go >/tmp/naps 2>&1 & target=$!"
    yield "exec 9>/tmp/go; until grep -q ready /tmp/naps; do sleep 0.2; done"
    yield f"ljspy record -p $target -d 60s -r {RATE} -f folded -o /tmp/naps.folded >/tmp/figures 2>&1 & sampler=$!"
    yield "sleep 1; echo go >&9; exec 9>&-; wait $sampler"
    yield "sed 's/^/nap /' /tmp/naps; sed 's/^/nap-figures /' /tmp/figures"


def judge(said):
    """What is wrong."""
    rows = ROW.findall(said)
    samples = re.search(r"nap-figures samples +(\d+)", said)
    print(f"naps: {sum(int(row[1]) for row in rows)} in {len(rows)} calls, {samples[1] if samples else 0} samples, "
          f"{sum(int(row[2]) for row in rows)} interrupted, {sum(int(row[3]) for row in rows)} wrong, {sum(int(row[4]) for row in rows)} early")
    if {row[0] for row in rows} != {*KINDS} or not samples or int(samples[1]) < LEAST_SAMPLES:
        yield f"naps: {rows}"
    for name, naps, *ends, words in rows:
        if int(naps) < LEAST_NAPS or any(int(end) for end in ends):
            yield f"naps in {name}: {naps}, {ends} {words}"
