# SPDX-License-Identifier: MIT
"""Make ELF cores of arm64 processes that an emulator runs.

qemu's user mode keeps the emulated process's memory in its own process, all addresses
moved by the same distance, so /proc shows it. qemu's gdb stub gives the registers.
"""

import os
import pathlib
import re
import signal
import socket
import struct

import ljspy
import packages

GUEST = 1 << 40  # addresses of the emulated process, which qemu reserves; qemu itself is above
WORDS, FLAGS_BYTES = 33, 4  # x0 to x30, sp, pc; and the flags, which the kernel keeps in a word, too
PAGE = 4096

PT_LOAD, PT_NOTE, ET_CORE, EM_AARCH64 = 1, 4, 4, 183
NT_PRSTATUS, NT_PRPSINFO, NT_FILE = 1, 3, 0x46494C45
PRSTATUS_PID, PRSTATUS_REGISTERS, PRSTATUS_SIZE = 32, 112, 392
PRPSINFO_PID, PRPSINFO_NAME, PRPSINFO_SIZE = 24, 40, 136

# Mark readable memory that is not writable as code: the emulator does not run code in place.
ACCESS = {"r-": 5, "rw": 6}


class Stub:
    """A client of qemu's gdb stub: the part of the remote protocol that this needs."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(ljspy.READY_SECONDS)
        assert ljspy.wait_until(path.exists, ljspy.READY_SECONDS)
        assert ljspy.wait_until(lambda: self.socket.connect_ex(str(path)) == 0)

    def send(self, packet):
        self.socket.sendall(b"$%s#%02x" % (packet, sum(packet) & 0xFF))

    def receive(self):
        data = b""
        while not re.search(rb"\$[^#]*#..", data, re.DOTALL):
            data += self.socket.recv(65536)
        self.socket.sendall(b"+")
        return re.search(rb"\$([^#]*)#", data, re.DOTALL)[1]

    def registers(self):
        self.send(b"g")
        return bytes.fromhex(self.receive().decode())[: WORDS * 8 + FLAGS_BYTES]


def mappings(pid):
    """Where its address 0 is here, and (begin, end, access, offset, path) of the emulated process."""
    lines = pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
    base = int(lines[0].partition("-")[0], 16)
    areas = []
    for line in lines:
        found = re.match(r"(\w+)-(\w+) (..)\S+ (\w+) \S+ \d+\s*(/.*)?", line)
        begin, end = int(found[1], 16) - base, int(found[2], 16) - base
        if begin < GUEST and found[3] in ACCESS:
            areas.append((begin, end, ACCESS[found[3]], int(found[4], 16), found[5]))
    return base, areas


def note(kind, contents):
    return struct.pack("<III8s", 5, len(contents), kind, b"CORE") + contents + bytes(-len(contents) % 4)


def notes(pid, registers, areas):
    status, info = bytearray(PRSTATUS_SIZE), bytearray(PRPSINFO_SIZE)
    struct.pack_into("<i", status, PRSTATUS_PID, pid)
    status[PRSTATUS_REGISTERS : PRSTATUS_REGISTERS + len(registers)] = registers
    struct.pack_into("<i", info, PRPSINFO_PID, pid)
    struct.pack_into("16s", info, PRPSINFO_NAME, b"luajit")
    files = [area for area in areas if area[4]]
    table = struct.pack("<QQ", len(files), PAGE)
    table += b"".join(struct.pack("<QQQ", begin, end, offset // PAGE) for begin, end, _, offset, _ in files)
    table += b"".join(area[4].encode() + b"\0" for area in files)
    return note(NT_PRSTATUS, status) + note(NT_PRPSINFO, info) + note(NT_FILE, table)


def header(kind, access, at, address, length, memory):
    return struct.pack("<IIQQQQQQ", kind, access, at, address, 0, length, memory, 1)


def write(pid, registers, path):
    """Write a core with all memory, as the kernel writes cores."""
    base, areas = mappings(pid)
    contents = []
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for begin, end, *_ in areas:
            memory.seek(base + begin)
            contents.append(memory.read(end - begin))
    described = notes(pid, registers, areas)
    at = 64 + 56 * (len(areas) + 1)
    headers = [struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", ET_CORE, EM_AARCH64, 1, 0, 64, 0, 0,
                           64, 56, len(areas) + 1, 0, 0, 0),
               header(PT_NOTE, 0, at, 0, len(described), 0)]
    at += len(described)
    for (begin, end, access, _, _), data in zip(areas, contents):
        headers.append(header(PT_LOAD, access, at, begin, len(data), end - begin))
        at += len(data)
    path.write_bytes(b"".join([*headers, described, *contents]))
    return path


class Emulated:
    """A release's LuaJIT for arm64 that runs a script. A context manager."""

    def __init__(self, suite, directory, *arguments, cwd):
        root = packages.tree(suite, "luajit:arm64")
        emulator = packages.arm64_emulator()
        self.directory, stub = directory, directory / "stub"
        self.cores = 0
        self.target = ljspy.Target(
            [emulator, "-R", hex(GUEST), "-g", stub, *packages.loader(root, root / "usr/bin/luajit"), *arguments], cwd=cwd)
        self.stub = Stub(stub)
        self.stub.send(b"c")
        self.said = self.target.read_until(b"ready\n", seconds=ljspy.READY_SECONDS)

    def core(self):
        """A core of this moment. A signal stops the process, which never learns of it."""
        os.kill(self.target.pid, signal.SIGUSR1)
        self.stub.receive()
        self.cores += 1
        path = write(self.target.pid, self.stub.registers(), self.directory / f"core.{self.cores}")
        self.stub.send(b"c")
        return path

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stub.socket.close()
        self.target.stop()
