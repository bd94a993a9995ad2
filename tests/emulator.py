# SPDX-License-Identifier: MIT
"""A machine that QEMU emulates, with Debian's own kernel, for tests that need another kernel or another machine."""

import os
import pathlib
import re
import shutil
import stat
import subprocess

SECONDS_MAX = 900
MEMORY = "1G"
INIT = pathlib.Path(__file__).with_name("emulated_init.sh")


def lay_root(root, busybox, names):
    """An empty root with busybox's commands of these names."""
    shutil.rmtree(root, ignore_errors=True)
    for folder in ("bin", "proc", "dev", "tmp", "lib", "lib64"):
        (root / folder).mkdir(parents=True)
    shutil.copy(busybox, root / "bin/busybox")
    for name in names.split():
        (root / "bin" / name).symlink_to("busybox")


def lay_program(root, program):
    """A program of this machine, and the libraries that it needs."""
    shutil.copy(program, root / "bin")
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    for library in re.findall(r"(/\S+) \(0x", listed):
        (root / library.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, root / library.lstrip("/"))


def lay_unpacked(root, tree, command, name):
    """An unpacked release's program as /bin/NAME; COMMAND runs it here by its loader."""
    shutil.copytree(tree, root / name, symlinks=True)
    # The first word is the loader.
    words = [str(word).replace(str(tree), f"/{name}") for word in command]
    script = root / "bin" / name
    script.write_text(f'#!/bin/sh\nexec {" ".join(words)} "$@"\n')
    script.chmod(0o755)


def lay_commands(root, lines):
    """What the machine does before it turns itself off."""
    shutil.copy(INIT, root / "init")
    (root / "init").chmod(0o755)
    (root / "commands").write_text("".join(f"{line}\n" for line in lines))


def archive(root):
    """The files as the kernel takes them at its start: cpio, "newc"."""
    path = root.with_name(f"{root.name}.cpio")
    with path.open("wb") as out:

        def add(name, mode, content):
            encoded = name.encode() + b"\0"
            fields = (add.number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(encoded), 0)
            add.number += 1
            out.write(b"070701" + b"".join(b"%08x" % field for field in fields) + encoded)
            out.write(b"\0" * (-out.tell() % 4) + content)
            out.write(b"\0" * (-out.tell() % 4))

        add.number = 1
        for found in sorted(root.rglob("*")):
            status = found.lstat()
            content = b""
            if stat.S_ISLNK(status.st_mode):
                content = os.readlink(found).encode()
            elif stat.S_ISREG(status.st_mode):
                content = found.read_bytes()
            add(str(found.relative_to(root)), status.st_mode, content)
        add("TRAILER!!!", 0, b"")
    return path


def run(emulator, kernel, root, console):
    """Boot the kernel, whose only program is root's init; return what it has said."""
    command = [*emulator, "-m", MEMORY, "-nographic", "-no-reboot", "-nic", "none", "-kernel", kernel,
               "-initrd", archive(root), "-append", f"console={console} quiet panic=-1"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS_MAX, check=False)
        said = done.stdout
    except subprocess.TimeoutExpired as late:
        said = late.stdout or b""
    return said.decode(errors="replace").replace("\r", "")
