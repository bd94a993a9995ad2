# SPDX-License-Identifier: MIT
"""Programs whose code is decrypted where it is mapped, or unpacked elsewhere: their files show no LuaJIT."""

import json
import os
import platform
import re
import struct
import sys

import pytest

import ljspy
import stacks

pytestmark = [
    pytest.mark.usefixtures("built"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="it searches the library for x86-64's instructions"),
]

KEY = 0x5A
LIBRARY = ljspy.PACKAGES / "libluajit-5.1-2/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2"
DISPATCH = b"\x41\xff\x24\xee"  # jmp [r14 + rbp * 8]
PT_GNU_EH_FRAME = 0x6474E550

PROGRAM = """
import ctypes, mmap, sys
path, key = sys.argv[1], int(sys.argv[2])
lua, libc = ctypes.CDLL(path), ctypes.CDLL(None)
if sys.argv[3] == "wait":
    print("waits", flush=True)
    sys.stdin.readline()
base = min(int(line.split("-")[0], 16) for line in open("/proc/self/maps") if line.split()[-1] == path)
for pair in sys.argv[4:]:
    begin, end = (base + int(number) for number in pair.split("-"))
    page = begin & -mmap.PAGESIZE
    assert libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(end - page), 7) == 0
    bytes_there = (ctypes.c_ubyte * (end - begin)).from_address(begin)
    bytes_there[:] = [byte ^ key for byte in bytes_there]
    assert libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(end - page), 5) == 0
lua.luaL_newstate.restype = ctypes.c_void_p
state = ctypes.c_void_p(lua.luaL_newstate())
assert lua.luaL_loadstring(state, b"while true do end") == 0
print("ready", flush=True)
lua.lua_pcall(state, 0, 0, 0)
"""


# Puts memory of its own, with the same content, in the place of each mapping, as UPX leaves programs.
UNPACKED = """
import ctypes, mmap, sys
path = sys.argv[1]
lua, libc = ctypes.CDLL(path), ctypes.CDLL(None)
libc.mmap.restype = libc.mremap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_size_t]
libc.mremap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
for line in [line.split() for line in open("/proc/self/maps") if line.split()[-1] == path]:
    begin, end = (int(number, 16) for number in line[0].split("-"))
    copy = libc.mmap(None, end - begin, 3, 0x22, -1, 0)
    ctypes.memmove(copy, begin, end - begin)
    assert libc.mprotect(copy, end - begin, sum(2 ** i for i in range(3) if line[1][i] != "-")) == 0
    assert libc.mremap(copy, end - begin, end - begin, 3, begin) == begin
assert path not in open("/proc/self/maps").read()
lua.luaL_newstate.restype = ctypes.c_void_p
state = ctypes.c_void_p(lua.luaL_newstate())
assert lua.luaL_loadstring(state, b"local function works() for i = 1, 1e6 do end end while true do works() end") == 0
print("ready", flush=True)
lua.lua_pcall(state, 0, 0, 0)
"""


# Has so many programs in memory of no file, and LuaJIT from a file if there is one.
MANY = """
import ctypes, mmap, struct, sys
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_size_t]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
machine = open("/proc/self/exe", "rb").read(20)[18:]
header = struct.pack("<4s5B7xH2sIQQQIHHHHHH", b"\\x7fELF", 2, 1, 1, 0, 0, 3, machine, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
header += struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, mmap.PAGESIZE, mmap.PAGESIZE, mmap.PAGESIZE)
for i in range(int(sys.argv[1])):
    at = libc.mmap(None, 2 * mmap.PAGESIZE, 3, 0x22, -1, 0)
    ctypes.memmove(at, header, len(header))
    assert libc.mprotect(at, mmap.PAGESIZE, 5) == 0
    assert libc.mprotect(at + mmap.PAGESIZE, mmap.PAGESIZE, 0) == 0
if sys.argv[2:]:
    lua = ctypes.CDLL(sys.argv[2])
    lua.luaL_newstate.restype = ctypes.c_void_p
    assert lua.luaL_newstate()
print("ready", flush=True)
sys.stdin.readline()
"""


def segments(data):
    (offset,), (count,) = struct.unpack_from("<Q", data, 32), struct.unpack_from("<H", data, 56)
    return [struct.unpack_from("<IIQQQQQQ", data, offset + 56 * i) for i in range(count)]


def encrypted(data):
    """The ranges of the VM and of the unwind table, which the library's own beginning does not need."""
    header = next(segment for segment in segments(data) if segment[0] == PT_GNU_EH_FRAME)
    table = header[2] + 4 + struct.unpack_from("<i", data, header[2] + 4)[0]
    loaded = next(s for s in segments(data) if s[0] == 1 and s[2] <= table < s[2] + s[5])
    assert header[2] == header[3]
    ranges = [(data.find(DISPATCH), data.rfind(DISPATCH) + len(DISPATCH)), (table, loaded[2] + loaded[5])]
    assert ranges[0][1] - ranges[0][0] > 4096
    return ranges


@pytest.fixture
def packed(tmp_path):
    """The command that runs LuaJIT from such a file, at once or, with "wait", once it has read a line."""
    data, path = bytearray(LIBRARY.read_bytes()), tmp_path / "libpacked.so"
    ranges = encrypted(data)
    for begin, end in ranges:
        data[begin:end] = bytes(byte ^ KEY for byte in data[begin:end])
    path.write_bytes(data)
    numbers = [f"{begin}-{end}" for begin, end in ranges]
    program = tmp_path / f"unpacks-{os.getpid()}-{tmp_path.name}"  # a name that no other program has
    program.symlink_to(sys.executable)
    return lambda when="now": [program, "-c", PROGRAM, path, str(KEY), when, *numbers]


def test_its_memory_tells(packed, tmp_path):
    with ljspy.Target(packed()) as target:
        target.read_until(b"ready\n")
        result = ljspy.run("info", "-p", target.pid)
        assert result.returncode == ljspy.OK, result.stderr
        assert re.search(r"libpacked\.so", result.stdout), result.stdout
        result = ljspy.run("record", "-p", target.pid, "-d", "1s", "-o", tmp_path / "x.folded")
        assert result.returncode == ljspy.OK, result.stderr


def recorded_pids(path):
    result = ljspy.run("report", path, "-f", "json")
    assert result.returncode == ljspy.OK, result.stderr
    document = json.loads(result.stdout)
    assert document["samples"]
    lua = {number for number, function in enumerate(document["functions"]) if function["kind"] == "lua"}
    frames = {number for number, frame in enumerate(document["frames"]) if frame["function"] in lua}
    threads = {s["thread"] for s in document["samples"] if frames & set(document["stacks"][s["stack"]])}
    return {document["threads"][thread]["pid"] for thread in threads}


def test_one_that_has_not_unpacked_yet_says_nothing_of_another(packed, tmp_path):
    """Of the same file; it is searched first. Nor does it mean that it never will."""
    with ljspy.Target(packed("wait")) as late, ljspy.Target(packed("wait")) as never, ljspy.Target(packed()) as target:
        for waiting in (late, never):
            waiting.read_until(b"waits\n")
        target.read_until(b"ready\n")
        output = tmp_path / "x.ljspy"
        name = packed()[0].name
        recorder = ljspy.Recorder(tmp_path, "--name", name, seconds=ljspy.RECORDING_SECONDS,
                                  options=("-f", "ljspy", "-o", output))
        ljspy.wait_traced(target.pid)
        late.process.stdin.write(b"\n")
        late.process.stdin.flush()
        late.read_until(b"ready\n")
        ljspy.wait_traced(late.pid)
        recorder.end_after(late.pid, 1)
        _, said = recorder.process.communicate(timeout=60)
        assert recorder.process.returncode == ljspy.OK, said
        assert recorded_pids(output) == {late.pid, target.pid}


def test_what_is_unpacked_to_memory_of_no_file_is_found(tmp_path):
    library = tmp_path / "libunpacked.so"
    library.write_bytes(LIBRARY.read_bytes())
    with ljspy.Target([sys.executable, "-c", UNPACKED, library]) as target:
        target.read_until(b"ready\n")
        result = ljspy.run("info", "-p", target.pid)
        assert result.returncode == ljspy.OK, result.stderr
        assert "LuaJIT in unpacked program" in result.stdout
        recorder, (samples, *_) = ljspy.recorded(tmp_path, "-p", target.pid, options=["--native", "all"])
    total = ljspy.weight_of(samples)
    assert ljspy.weight_of(samples, ljspy.has_frame("works")) > 0.9 * total > 0
    assert not [sample.frames for sample in samples if any(map(stacks.is_lost, sample.frames))]
    assert sum(weight for frames, weight in ljspy.native_stacks(recorder) if "lua_pcall [unpacked program]" in frames) > 0.9 * total


@pytest.mark.parametrize(("count", "told"), [(8, None), (11, "3 unpacked programs were not looked into")])
@pytest.mark.parametrize("arguments", [[], [LIBRARY]])
def test_more_than_are_looked_into_are_told(count, told, arguments):
    with ljspy.Target([sys.executable, "-c", MANY, str(count), *arguments]) as target:
        target.read_until(b"ready\n")
        result = ljspy.run("info", "-p", target.pid)
        assert result.returncode == (ljspy.OK if arguments else ljspy.NOTHING_PROFILED), result.stderr
        text = result.stdout if arguments else result.stderr
        assert told in text if told else "not looked into" not in text, text
        assert ("as far as can be seen" in result.stderr) == bool(told and not arguments), result.stderr
