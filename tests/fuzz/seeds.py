# SPDX-License-Identifier: MIT
"""Make the seeds of fuzzing from real programs and files:

    seeds.py BUILD FOLDER [images]

Writes the seeds of each target to FOLDER/TARGET/. With "images", also renews the
snapshots of real processes in tests/fuzz/images.
"""

import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import zlib

HERE = pathlib.Path(__file__).resolve().parent
PACKAGES = HERE.parent.parent / "build/packages"
LUAJITS = {
    "bookworm": PACKAGES / "luajit/usr/bin/luajit",
    "openresty": PACKAGES / "luajit2/usr/bin/luajit",
    "bullseye": PACKAGES / "bullseye/luajit/usr/bin/luajit",
}

E_MACHINE, EM_X86_64, EM_AARCH64 = 18, 62, 183

# A library with imports, exports, unwind tables and a debug link.
LIBRARY = """
extern int other(int);
static int inner(int x) { return other(x) + 1; }
int ngx_http_lua_ffi_get_phase(int x) { return inner(x) * 2; }
int exported(int *x) { for (int i = 0; i < 9; i++) x[i] = other(i); return x[0]; }
"""

# Structures with LuaJIT's names, for debug info.
STRUCTURES = """
typedef struct GCRef { unsigned long gcptr64; } GCRef;
typedef struct lua_State { GCRef nextgc; unsigned char marked, gct, dummy_ffid, status; GCRef glref;
	void *base, *top, *maxstack; GCRef stack; GCRef env; void *cframe; unsigned stacksize; } lua_State;
typedef struct GCproto { GCRef nextgc; unsigned char marked, gct, numparams, framesize; unsigned sizebc;
	GCRef chunkname; int firstline, numline; } GCproto;
typedef struct GCState { unsigned total; unsigned char state; GCRef root; } GCState;
typedef struct global_State { GCState gc; int vmstate; GCRef mainthref; GCRef cur_L; GCRef jit_base; } global_State;
typedef struct jit_State { GCRef L; int state; GCRef *trace; } jit_State;
typedef struct GG_State { lua_State L; global_State g; jit_State J; void *dispatch[200]; } GG_State;
typedef enum { BC_ISLT, BC_JMP = 88, BC_FUNCF = 89 } BCOp;
typedef enum { IR_LT, IR_KGC = 24 } IROp;
GG_State gg; GCproto pt; BCOp op; IROp ir;
"""

NAMES = [
    "_ZN3foo3barIiEEvT_", "_RNvC6_123foo3bar", "_ZN4core3ptr13drop_in_place17h0123456789abcdefE",
    "@/usr/local/share/lua/5.1/kong/plugins/rate-limiting/init.lua", "=content_by_lua(nginx.conf:24)",
    "evil;\\n\\x1b[31m</script><b>\\xff\\u202e\\xc3\\xa9\\xf0\\x9f\\x98\\x80",
]

def text(string):
    return bytes([len(string) + 1]) + string


# Two functions, a lost one, and samples of them: src/apart/sample_message.h.
FUNCTIONS = b"\1\0\7" + text(b"heavy") + text(b"a.lua") + b"\0" + b"\1\3\0" + text(b"sqrt") + b"\0" + text(b"libm.so.6") + b"\2\3"
SAMPLE = b"\3\x81\1\14\15" + text(b"luajit") + b"\0" + text(b"content") + b"\2\4\2\1\1\0\0\3" + b"\2\0\2\3\0\0\1\11\5"

COMMAND_LINES = [
    "record -p 12,13 -d 1h30m -r 997 -o out.svg --stats stats.json --native all --traces --lines",
    "record --name ^nginx --subprocesses -f folded -- luajit test.lua",
    "report a.ljspy b.ljspy --since 20m --until 25m --include ^access|log --exclude [[:alpha:]]+\\.so --min-percent 0.5%",
    "report a.ljspy --state running,gc --pid 1 --tid 2,3 --thread worker --by module --merge-recursion -o x.pb.gz",
    "diff a.ljspy b.ljspy --lines -o diff.svg", "dump --core core.1 --json", "top -p 1 --help", "info -p 1 --layout a",
]


def made(command, **options):
    return subprocess.run(command, check=True, capture_output=True, **options).stdout


def compiled(source, *options):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "made"
        subprocess.run(["gcc", "-xc", "-", "-o", out, *options], input=source.encode(), check=True)
        return out.read_bytes()


def unpacked(image):
    """The parts of an image: its layout as text, registers, extent of the VM, and memory by address."""
    bytes_ = made(["zstd", "-dc", image])
    found, at = {"ranges": {}}, 0
    while at < len(bytes_):
        end = bytes_.index(b"\n", at)
        words = bytes_[at:end].decode().split()
        at = end + 1
        if words[0] in ("layout", "range"):
            length = int(words[-1])
            piece = bytes_[at:at + length]
            at += length
            if words[0] == "layout":
                found["layout"] = piece
            else:
                found["ranges"][int(words[1], 16)] = piece
        else:
            found[words[0]] = [int(word, 16) for word in words[1:]]
    return found


def note(kind, description):
    padded = description + bytes(-len(description) % 4)
    return struct.pack("<3I", 5, len(description), kind) + b"CORE\0\0\0\0" + padded


def core(image, bytes_max, machine=EM_X86_64):
    """A core file with some of an image's memory."""
    r = image["registers"]
    if machine == EM_X86_64:
        order = [15, 14, 13, 12, 6, 1, 11, 10, 9, 8, 0, 2, 3, 4, 5, 18, 16]
        registers = [r[i] for i in order] + [0x33, r[17], r[7], 0x2b, 0, 0, 0, 0, 0, 0]
    else:
        registers = [*r[:16], *r[:15], r[7], r[16], 0]  # x0 to x30, sp, pc, pstate
    status = bytes(32) + struct.pack("<I", 42) + bytes(76) + struct.pack(f"<{len(registers)}Q", *registers) + bytes(8)
    process = bytes(24) + struct.pack("<4I", 42, 1, 42, 42) + b"luajit".ljust(16, b"\0") + bytes(80)
    begin = image["vm"][0] & ~0xfff
    files = struct.pack("<5Q", 1, 4096, begin, begin + 4096, 0) + b"/usr/bin/luajit\0"
    notes = note(1, status) + note(3, process) + note(0x46494c45, files) + note(6, struct.pack("<4Q", 33, begin, 0, 0))
    kept, size = [], 0
    for address, piece in image["ranges"].items():
        if size + len(piece) <= bytes_max:
            kept.append((address, piece))
            size += len(piece)
    offset = 64 + 56 * (len(kept) + 1)
    headers = struct.pack("<2I6Q", 4, 4, offset, 0, 0, len(notes), len(notes), 4)
    offset += len(notes)
    for address, piece in kept:
        headers += struct.pack("<2I6Q", 1, 6, offset, address, 0, len(piece), len(piece), 8)
        offset += len(piece)
    elf = b"\x7fELF\2\1\1".ljust(16, b"\0") + struct.pack(
        "<2HI3QI6H", 4, machine, 1, 0, 64, 0, 0, 64, 56, len(kept) + 1, 0, 0, 0)
    return elf + headers + notes + b"".join(piece for _, piece in kept)


def take_images(build):
    for name, luajit in LUAJITS.items():
        for jit in ("on", "off"):
            subprocess.run([build / "make_image", "walk", HERE / "images/walk", f"{name}-{jit}", "1",
                            luajit, HERE / "seeds.lua", jit], check=True)
        subprocess.run([build / "make_image", "recognise", HERE / "images/recognise", name, "1",
                        luajit, HERE / "seeds.lua", "on"], check=True)


def request():
    """An nginx request with its connection, the module's context and a coroutine, as in fuzz_request.c."""
    words, at = [0] * 64, 0x400000
    request, contexts, connection, context, part, coctx, L = (at + 8 * n for n in (0, 4, 6, 8, 20, 32, 44))
    words[0:4] = 0x50545448, connection, contexts, request
    words[5], words[6] = context, request
    words[8:12] = 0, request, part, 0
    words[20:27] = 0, coctx, 1, 0, 24, 4, 0
    words[32:35] = 0, L, at + 8 * 11  # made by the first coroutine; its context is in the request's
    offsets = (0, L - at, coctx - at)
    return struct.pack("<3H64Q", *offsets, *words)


def footprint(reader, *words):
    """Words of memory, as in fuzz_footprint.c: (offset, value) or (offset, value, True) for an address."""
    parts = [struct.pack("<HBI", word[0] // 8, len(word) > 2, word[1]) for word in words]
    return bytes([reader]) + b"".join(parts)


def footprints():
    """What LuaJIT's and glibc's allocators, nginx and the C library leave in memory."""
    bins = [(16 + 56 + 16 * i + at, 16 + 56 + 16 * i, True) for i in range(4) for at in (16, 24)]
    chunks = [(8, 0x373), (0x378, 0x102 | 1), (0x478, 0x40 | 3), (0x4b8, 0x10000 - 0x4b0 - 64 | 1)]
    yield footprint(1, (0x10, 0), (16 + 840, 0, True), (16 + 848, 0x10000), *bins, *chunks)
    yield footprint(2, (0, 0x20, True), (16, 0x10000), (24, 0x10000), (0x20 + 2208 + 8, 0x405), (0xcc8 + 8, 0x1005),
                    (0x1cc8 + 8, 0x10000 - 0x1cc8 | 1))
    yield footprint(2, (8, 0x291), (0x298, 0x71), (0x308, 0x10000 - 0x300 | 1))
    yield footprint(3, (8, 8), (16, 3), (24, 0x200, True), (32, 0x200 + 24 * 8, True), (48, 0x200, True), (72, 8),
                    (80, 0x2000, True), (88, 0x10000, True), (120, 0x300, True), (0x200, 8), (0x208, 40, True),
                    *[(0x300 + 8 * i, int.from_bytes(b' in zone "dogs"\0'[4 * i:4 * i + 4], "little")) for i in range(4)])
    yield footprint(4, (0xf000, 0xf000, True), (0xf100, 0x0, True), (0xf108, 0x10000))
    yield footprint(5, (0x100, 0x1000, True), (0x118, 0x100), (0x120, 0x3), (0x128, 0x78), (0x108, 0x200, True),
                    (0x200, 0x2000, True), (0x208, 0x3000, True))
    yield b"\0" + pathlib.Path("/proc/self/smaps").read_bytes()[:1900]


def machine_codes(images):
    """Pieces of machine code, of this machine's LuaJIT and of arm64's, with the targets that read them."""
    for image in images:
        if len(image["ranges"]) > 100:
            yield "", b"".join(image["ranges"].values())[:1200]
    program = PACKAGES / "bookworm/luajit-arm64/usr/bin/luajit"
    if program.exists():
        bytes_ = program.read_bytes()
        for at in range(0x8000, len(bytes_) - 1200, 0x6000):
            yield "other_", bytes_[at:at + 1200]


def vector_code():
    """push rbp; sub rsp, 64; vector instructions of each prefix; vzeroupper; add rsp, 64; pop rbp; ret"""
    vectors = (
        "62f17c48111c24", "62e1fe287f4dfe", "62d11c20c2c901",  # vmovups (%rsp), vmovdqu64 -0x40(%rbp), vcmpltps
        "62e27d49a04ca402", "62e37d0816cb01", "c5fb93d9",  # vpscatterdd, vpextrd to ebx, kmovd to ebx
        "c5f8914c2408", "62f47c0801d8", "c5f877",  # kmovw 8(%rsp), an add of APX, vzeroupper
    )
    return bytes.fromhex("55" "4883ec40" + "".join(vectors) + "4883c440" "5d" "c3")


def trace_with_call():
    """IR_CALLXS of the constant 0x70007 (tests/unit/made_up_trace.h), and code that calls by rbx and that function."""
    parts = ((576, "0280f87f1363ff00"), (512, "00000000131dff00"), (520, "0700070000000000"), (0xffff, "0000000000000000"))
    ir = b"".join(struct.pack("<H", place) + bytes.fromhex(word) for place, word in parts)
    return b"\1\1" + ir + bytes.fromhex("ffd3" "e800000000" "41ffd4")


def code_seeds(images):
    yield "code", vector_code()
    yield "trace_code", trace_with_call()
    for reader, code in machine_codes(images):
        yield reader + "code", code
        # Registers in the middle of the memory; trace_code's parts end at once.
        yield reader + "vm_code", b"\0\0\0" + 33 * b"\0\2" + code
        yield reader + "trace_code", b"\1\1\xff\xff" + bytes(8) + code


def program_with_table():
    """A small static program without section headers: a segment of code, and one with a CIE, an FDE and the end mark."""
    code, table = 0x100, 0x200
    cie = struct.pack("<IIB3sBBBBB3x", 16, 0, 1, b"zR\0", 1, 0x78, 16, 1, 0x1b)
    fde = struct.pack("<IIiIB3x", 16, len(cie) + 4, code - (table + len(cie) + 8), 16, 0)
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, EM_X86_64, 1, code, 64, 0, 0, 64, 56, 2, 64, 0, 0)
    segments = b"".join(struct.pack("<IIQQQQQQ", 1, flags, at, at, at, size, size, 4)
                        for flags, at, size in ((5, code, 16), (4, table, len(cie + fde) + 4)))
    return (header + segments).ljust(table, b"\x90") + cie + fde + bytes(4)


def seeds(build):
    """Yields pairs of target and bytes."""
    library = [compiled(LIBRARY, "-O1", "-shared", "-fPIC", "-nostdlib", "-Wl,-z,noseparate-code", "-Wl,--build-id", *more)
               for more in ((), ("-s",), ("-g",), ("-Wl,--no-eh-frame-hdr",), ("-Wl,--hash-style=sysv",))]
    structures = [compiled(STRUCTURES, "-g", "-c", *more)
                  for more in ((), ("-gdwarf-4",), ("-gz",), ("-fdebug-types-section",))]
    images = [unpacked(path) for path in sorted(HERE.glob("images/*/*.image"))]
    for kind, *weight in (("small",), ("hostile",), ("empty",), ("alloc", "alloc")):
        recording = made([build.parent / "formats/make_samples", kind, "ljspy", *weight])
        yield "recording", b"\0\1\0" + recording
        records = made(["zstd", "-dc"], input=recording)[:4000]
        for number in range(24):
            yield "recording", bytes([number, number * 37 & 0xfe, 2]) + records
    for path in sorted(HERE.parent.glob("recordings/version-*.heap")):
        heap = path.read_bytes()
        yield "heap_file", b"\0" + heap
        yield "heap_file", b"\1" + made(["zstd", "-dc"], input=heap)
    for line in COMMAND_LINES:
        yield "arguments", b"".join(word.encode() + b"\0" for word in line.split())
    yield "sample_message", b"".join(struct.pack("<H", len(m)) + m for m in (FUNCTIONS + SAMPLE, SAMPLE))
    for name in NAMES:
        yield "names", b"\x19" + name.encode().decode("unicode_escape").encode("latin-1", "ignore")
    for number, file in enumerate(("maps", "stat", "status", "cmdline", "statm", "syscall", "schedstat", "comm",
                                   "sched", "fdinfo/1", "net/tcp")):
        yield "proc", bytes([number]) + pathlib.Path(f"/proc/self/{file}").read_bytes()[:4000]
    for call in ("running\n", "-1 0x7ffe611a7138 0x55cfe33ad292\n", "7 0x1 0x2 0x3 0x4 0x5 0x6 0x7ffe 0x7f35\n"):
        yield "proc", b"\5" + call.encode()
    yield "request", request()
    for seed in footprints():
        yield "footprint", seed
    for file in library:
        code = re.search(rb"\xe8....", file, re.DOTALL)
        pc = struct.pack("<H", (code.start() if code else 0x1000) & 0xffff)
        for target in ("elf", "symbols"):
            yield target, pc + file
        yield "table_search", file
        yield "file_image", b"".join(struct.pack("<IH", 0x400000 + address, length)
                                     for address, length in ((0, 64), (0x200, 0x400), (0x1000, 8), (0x3ff0, 64))) + file
        yield "other_elf", pc + file[:E_MACHINE] + struct.pack("<H", EM_AARCH64) + file[E_MACHINE + 2:]
        build_id = re.search(rb"\x14\x00\x00\x00\x03\x00\x00\x00GNU\x00(.{20})", file, re.DOTALL)[1]
        for bits, identity in ((1, b""), (2, b""), (1, build_id), (2, build_id)):
            yield "debug_file", bytes([bits, len(identity)]) + identity + struct.pack("<I", zlib.crc32(file)) \
                + b"/usr/lib/x86_64-linux-gnu/libz.so.1\0libz.debug\0" + file
    yield "table_search", program_with_table()
    for file in structures:
        yield "dwarf_layout", file
    for image in images:
        yield "layout_text", image["layout"]
        yield "core", core(image, 6000)
        yield "other_core", core(image, 6000, EM_AARCH64)
    yield "core", core(images[0], 200000)
    yield from code_seeds(images)


def main():
    build, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    if sys.argv[3:] == ["images"]:
        take_images(build)
    for number, (target, bytes_) in enumerate(seeds(build)):
        (folder / target).mkdir(parents=True, exist_ok=True)
        (folder / target / f"seed-{number}").write_bytes(bytes_)
    for target in ("walk", "recognise", "states", "heap"):
        (folder / target).mkdir(parents=True, exist_ok=True)
        for number in range(6):
            (folder / target / f"seed-{number}").write_bytes(bytes([number | 0x80 * (number & 1), 0]))


main()
