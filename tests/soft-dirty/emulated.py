#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Heaps on a kernel that marks pages which are written (soft-dirty): Debian's own, in an emulated machine.

emulated.py BUILD

BUILD has ljspy and show_heap. Debian's kernel and busybox are fetched and unpacked, and QEMU
emulates the machine. Exits with 1 if a heap does not add up, or was not read by these marks.
"""

import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/layouts"), str(ROOT / "tests")]

import builds  # noqa: E402, pylint: disable=wrong-import-position
import emulator  # noqa: E402, pylint: disable=wrong-import-position
import packages  # noqa: E402, pylint: disable=wrong-import-position

HERE = ROOT / "tests/soft-dirty"
WORK = ROOT / "build/soft-dirty"
LUAJIT = builds.Program("bookworm", "luajit", "usr/bin/luajit")
UNPACKED = ROOT / "build/packages/bookworm/luajit"
SCRIPTS = [ROOT / "tests/heap" / name for name in ("busy_cache.lua", "growing.lua", "busy.lua")]
COMMANDS = "sh mount mkdir sleep grep kill uname poweroff"
EMULATOR = ["qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-smp", "2"]


def fetch(package):
    """The folder with what the package has."""
    unpacked = WORK / package
    if not unpacked.exists():
        WORK.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", package], cwd=WORK, check=True)
        archive = next(WORK.glob(f"{package}_*.deb"))
        subprocess.run(["dpkg", "-x", archive, unpacked], check=True)
        archive.unlink()
    return unpacked


def kernel():
    depends = subprocess.run(["apt-cache", "depends", "linux-image-amd64"], capture_output=True, text=True, check=True)
    package = re.search(r"Depends: (linux-image-\S+)", depends.stdout)[1]
    return next((fetch(package) / "boot").glob("vmlinuz-*"))


def lay_root(build):
    """The files of the emulated machine."""
    root = WORK / "root"
    emulator.lay_root(root, fetch("busybox-static") / "bin/busybox", COMMANDS)
    for program in (build / "ljspy", build / "tests/heap/show_heap"):
        emulator.lay_program(root, program)
    LUAJIT.prepare()
    emulator.lay_unpacked(root, UNPACKED, packages.loader(UNPACKED, UNPACKED / "usr/bin/luajit"), "run-luajit")
    for script in SCRIPTS:
        shutil.copy(script, root)
    shutil.copy(HERE / "init.sh", root / "init")
    return root


def judge(said):
    """What is wrong, in words."""
    looks = re.findall(r"looked (\S+) heap\t(.*)", said)
    faults = [] if "all looked at" in said else ["The emulated machine did not come to its end."]
    for program, line in looks:
        total, summed, _, attempts, method, _, _, longest_us, held_bytes, pages, *_ = line.strip().split("\t")
        print(f"{program}: {int(total) / 1e6:.1f} MB, {method}, held for {int(longest_us) / 1000:.1f} ms at most,"
              f" {int(held_bytes) / 1e6:.2f} MB copied meanwhile, attempt {attempts}")
        if total != summed or pages != "0":
            faults.append(f"{program}: {total} bytes are not {summed}")
        if program == "busy_cache.lua" and (method != "written" or int(held_bytes) > int(total) / 4):
            faults.append(f"{program} was read {method}, with {held_bytes} bytes copied while it was held")
    if len(looks) != 3 * len(SCRIPTS):
        faults.append(f"{len(looks)} looks: {said[-2000:]}")
    return faults


def main():
    if not shutil.which("qemu-system-x86_64"):
        print("skipped: qemu-system-x86_64 is not installed (Debian's package qemu-system-x86)")
        return 0
    said = emulator.run(EMULATOR, kernel(), lay_root(pathlib.Path(sys.argv[1]).resolve()), "ttyS0")
    for line in re.findall(r"(?:kernel|words) .*", said):
        print(line.strip())
    faults = judge(said)
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
