#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Packages for arm64, installed and run on Debian's arm64 kernel in an emulated machine.

arm64_machine.py WORK PACKAGE STATIC OUT

WORK has files to keep. dpkg installs PACKAGE in a root with what it depends on, and checks that; STATIC runs in a root
of its own; OUT, what make install has installed, in the root of contrib/Dockerfile's image. Each records LuaJIT there.
"""

import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/arm64"), str(ROOT / "tests/layouts"), str(ROOT / "tests")]

import emulator  # noqa: E402, pylint: disable=wrong-import-position
import machine  # noqa: E402, pylint: disable=wrong-import-position
import packages  # noqa: E402, pylint: disable=wrong-import-position

DPKG_NEEDS = ("dpkg", "dash", "coreutils", "tar", "diffutils", "libc-bin")
DPKG = "/usr/bin/dpkg"
WAYS = "package", "static", "image"
PROGRAM = "shares"
COMMANDS = "chroot"


def fields(package, *names):
    return subprocess.run(["dpkg-deb", "-f", package, *names], capture_output=True, text=True, check=True).stdout


def lay_system(root, names):
    """Debian's packages of these names and what they depend on, unpacked, and dpkg's record of them as installed."""
    def make(work):
        apt = packages.lists(machine.SUITE, "arm64")
        packages.download(apt, work, packages.planned(apt, *names))
        database = work / "root/var/lib/dpkg"
        for folder in ("info", "updates", "triggers"):
            (database / folder).mkdir(parents=True)
        records = []
        for archive in sorted(work.glob("*.deb")):
            subprocess.run(["dpkg-deb", "-x", archive, work / "root"], check=True)
            record = fields(archive)
            name = re.search(r"(?m)^Package: (.*)$", record)[1]
            suffix = ":arm64" if re.search(r"(?m)^Multi-Arch: same$", record) else ""
            (database / f"info/{name}{suffix}.list").touch()
            records.append(record.replace(f"Package: {name}\n", f"Package: {name}\nStatus: install ok installed\n"))
        (database / "status").write_text("\n".join(records))
        (work / "root/proc").mkdir(exist_ok=True)
        (work / "root/tmp").mkdir(exist_ok=True)
        if (work / "root/bin/dash").exists() and not (work / "root/bin/sh").exists():
            (work / "root/bin/sh").symlink_to("dash")
        return work / "root"

    packages.made_once(root, make)


def depends(package):
    """The names of what the package depends on, of alternatives the first."""
    listed = fields(package, "Depends").replace("\n", " ").split(",")
    return [re.match(r"\s*([^\s(|:]+)", entry)[1] for entry in listed if entry.strip()]


def image_packages():
    """Those that the last stage of the image's Dockerfile installs."""
    stage = (ROOT / "contrib/Dockerfile").read_text().rpartition("FROM ")[2]
    listed = re.search(r"(?s)--no-install-recommends (.*?)&&", stage)[1]
    return listed.replace("\\", " ").split()


def commands():
    yield f"cd /programs; luajit-{machine.SUITE} {PROGRAM}.lua off 600 >/tmp/said & target=$!"
    yield "until grep -q ready /tmp/said; do sleep 0.2; done"
    yield "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    for root in WAYS:
        yield f"mount -t proc proc /{root}/proc"
    # By its path: busybox has a dpkg of its own.
    yield f"chroot /package {DPKG} -i /ljspy.deb 2>&1 | sed 's/^/dpkg says /'; chroot /package {DPKG} -s ljspy 2>&1 | sed 's/^/dpkg knows /'"
    for root in WAYS:
        yield f"chroot /{root} ljspy --version 2>&1 | sed 's/^/{root} version /'"
        yield f"chroot /{root} ljspy record -p $target -d 3s -r 50 -f folded -o /tmp/folded 2>&1 | sed 's/^/{root} says /'"
        yield f"sed 's/^/{root} records /' /{root}/tmp/folded"


def lay(work, package, static, out):
    root = work / "root"
    emulator.lay_root(root, machine.kernel_tree() / "bin/busybox", f"{machine.COMMANDS} {COMMANDS}")
    machine.lay_luajit(root, machine.SUITE)
    shutil.copytree(ROOT / "tests/programs", root / "programs")
    lay_system(work / "package", [*depends(package), *DPKG_NEEDS])
    lay_system(work / "image", image_packages())
    for name in ("package", "image"):
        shutil.copytree(work / name, root / name, symlinks=True)
    shutil.copy(package, root / "package/ljspy.deb")
    shutil.copytree(out, root / "image", symlinks=True, dirs_exist_ok=True)
    for folder in ("bin", "tmp", "proc"):
        (root / "static" / folder).mkdir(parents=True)
    shutil.copy(static, root / "static/bin")
    emulator.lay_commands(root, commands())
    return root


def judge(said):
    """What is wrong."""
    if "dpkg knows Status: install ok installed" not in said:
        yield f"dpkg: {re.findall('dpkg (?:says|knows) .*', said)[:12]}"
    for way in WAYS:
        rows = re.findall(rf"(?m)^{way} records (.* (\d+))$", said)
        weight = sum(int(row[1]) for row in rows)
        busy = sum(int(row[1]) for row in rows if f"heavy {PROGRAM}.lua" in row[0])
        print(f"arm64 {way}: {', '.join(re.findall(rf'{way} version (.*)', said))}, {busy} of {weight} samples in the busy function")
        if not weight or busy < 0.9 * weight:
            yield f"{way}: {re.findall(rf'{way} (?:says|version) .*', said)}, {rows[:3]}"
    if "all done" not in said:
        yield f"The emulated machine did not come to its end: {said[-1000:]}"


def run(work, package, static, out):
    work.mkdir(parents=True, exist_ok=True)
    said = machine.boot(lay(work, package, static, out))
    (work / "said").write_text(said, encoding="utf-8")
    return list(judge(said))


def main():
    faults = run(*(pathlib.Path(argument).resolve() for argument in sys.argv[1:5]))
    print("\n".join(faults))
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
