# SPDX-License-Identifier: MIT
"""The emulated arm64 machine: Debian's kernel, a static busybox, and programs with their libraries."""

import base64
import gzip
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/layouts"), str(ROOT / "tests")]

import emulator  # noqa: E402, pylint: disable=wrong-import-position
import packages  # noqa: E402, pylint: disable=wrong-import-position

WORK = ROOT / "build/arm64"
# An instruction takes 4 ns of the emulated machine's time. Signatures of return addresses by QEMU's own way of
# making them: the architecture's takes most of the time of whatever calls the kernel.
EMULATOR = ["qemu-system-aarch64", "-M", "virt", "-cpu", "max,pauth-impdef=on", "-smp", "1", "-icount", "shift=2,sleep=off"]
SUITE = "bookworm"
COMMANDS = "sh mount mkdir sleep grep kill uname poweroff sed timeout"
SENDING = "gzip base64"  # the commands that send() needs
SENT = re.compile(r"(?ms)^begin (.*?)$(.*?)^end$")


def kernel_tree(suite=SUITE, package="linux-image-arm64"):
    """Debian's kernel and a static busybox, unpacked."""
    apt = packages.lists(suite, "arm64")
    image = next(name for name in packages.planned(apt, package) if re.match(r"linux-image-\d", name))
    return packages.downloaded(apt, WORK / f"kernel-{suite}{package.removeprefix('linux-image-arm64')}", [image, "busybox-static"])


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


def lay_base(root, programs, sysroot, more=""):
    """A root with busybox's commands, and programs with their libraries."""
    emulator.lay_root(root, kernel_tree() / "bin/busybox", f"{COMMANDS} {more}")
    for program in programs:
        shutil.copy(program, root / "bin")
    lay_libraries(root, sysroot, programs)


def boot(root, *kernel):
    """What the machine says while it runs the root's commands; with the kernel of kernel_tree()."""
    return emulator.run(EMULATOR, next((kernel_tree(*kernel) / "boot").glob("vmlinuz-*")), root, "ttyAMA0")


def send(path, title):
    """The command that sends a file as text, for the machine has only a console."""
    return f'echo "begin {title}"; gzip -c {path} | base64; echo end'


def sent(said):
    """The files that were sent, by their titles."""
    return {title: gzip.decompress(base64.b64decode(text)) for title, text in SENT.findall(said)}
