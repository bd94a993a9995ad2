# SPDX-License-Identifier: MIT
"""Names of native code come from all sources in the files; without one, code has no name."""

import collections
import lzma
import pathlib
import re
import shutil
import subprocess

import pytest

import ljspy
import stacks

pytestmark = pytest.mark.usefixtures("built")

HERE = pathlib.Path(__file__).parent
INCLUDE = ljspy.PACKAGES / "libluajit-5.1-dev/usr/include/luajit-2.1"
SOURCE = (HERE / "names.c").read_text().splitlines()


def line_of(tag):
    return next(n for n, line in enumerate(SOURCE, 1) if line.endswith(f"/* in {tag} */"))


WITH_DEBUG_INFO = [
    f"exported names.c:{line_of('exported')}",
    f"hidden names.c:{line_of('hidden')}",
    f"inlined names.c:{line_of('inlined')}",
]
BY_SYMBOLS = ["exported [libnames.so]", "hidden [libnames.so]"]
STRIPPED = ["exported [libnames.so]", r"libnames\.so\+0x"]


def is_stripped(frames):
    return frames[:1] == STRIPPED[:1] and len(frames) == 2 and re.match(STRIPPED[1], frames[1])


def split_debug_info(build, path, debug_file, link=True):
    """Move debug info and symbols from a library to another file."""
    debug_file.parent.mkdir(parents=True, exist_ok=True)
    build("objcopy", "--only-keep-debug", path, debug_file)
    build("strip", path)
    if link:
        build("objcopy", f"--add-gnu-debuglink={debug_file}", path)


def build_id(path):
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    return re.search(r"Build ID: (\w+)", notes)[1]


def section(path, name):
    """The addresses of a section, relative to the program's beginning."""
    headers = subprocess.run(["readelf", "-lSW", path], capture_output=True, text=True, check=True).stdout
    address, size = re.search(rf" {re.escape(name)} +PROGBITS +(\w+) \w+ (\w+)", headers).groups()
    begin = int(address, 16) - int(re.search(r"LOAD +0x0+ (\w+)", headers)[1], 16)
    return range(begin, begin + int(size, 16))


def test_symbol_table(library, frames_in):
    assert frames_in(library(), "exported") == BY_SYMBOLS


def test_debug_info_tells_lines_and_inlined_functions(library, frames_in):
    assert frames_in(library("-g"), "exported") == WITH_DEBUG_INFO


@pytest.mark.parametrize("version", (4, 5))
def test_debug_info_of_clang(frames_in, build, tmp_path, version):
    if not shutil.which("clang"):
        pytest.skip("no clang")
    path = tmp_path / "libnames.so"
    build("clang", "-O2", f"-gdwarf-{version}", "-fPIC", "-shared", HERE / "names.c", "-o", path)
    assert frames_in(path, "exported") == WITH_DEBUG_INFO


def test_compressed_debug_info(library, frames_in):
    assert frames_in(library("-g", "-gz"), "exported") == WITH_DEBUG_INFO


def test_stripped_code_goes_by_its_place(library, frames_in):
    assert is_stripped(frames_in(library("-s"), "exported"))


@pytest.mark.parametrize("place", ("libnames.so.debug", ".debug/libnames.so.debug"))
@pytest.mark.parametrize("has_build_id", (True, False), ids=("build-id", "checksum"))
def test_debuglink(library, frames_in, build, tmp_path, place, has_build_id):
    path = library("-g", *([] if has_build_id else ["-Wl,--build-id=none"]))
    split_debug_info(build, path, tmp_path / place)
    assert frames_in(path, "exported") == WITH_DEBUG_INFO


def test_debug_file_of_another_build_is_not_believed(library, frames_in, build, tmp_path):
    path = library("-g")
    debug_file = tmp_path / "libnames.so.debug"
    split_debug_info(build, path, debug_file)
    other = library("-g", "-O1")
    build("objcopy", "--only-keep-debug", other, debug_file)
    path = library("-g")
    build("strip", path)
    build("objcopy", f"--add-gnu-debuglink={debug_file}", path)
    assert is_stripped(frames_in(path, "exported"))


def test_debug_file_by_build_id_in_the_targets_root(library, frames_in, build, namespace, tmp_path):
    """The target sees another /usr/lib/debug than ljspy does."""
    path = library("-g")
    identity = build_id(path)
    root = tmp_path / "debug"
    split_debug_info(build, path, root / ".build-id" / identity[:2] / f"{identity[2:]}.debug", link=False)
    if not pathlib.Path("/usr/lib/debug").is_dir():
        pytest.skip("no /usr/lib/debug to mount over")
    command = f'mount --bind "{root}" /usr/lib/debug && exec "$@"'
    assert is_stripped(frames_in(path, "exported"))
    assert frames_in(path, "exported", before=[*namespace, "sh", "-c", command, "sh"]) == WITH_DEBUG_INFO


def test_mini_debug_info(library, frames_in, build, tmp_path):
    """A section contains a compressed ELF file with function symbols, as in Fedora."""
    path = library()
    mini = tmp_path / "mini"
    build("objcopy", "--only-keep-debug", path, mini)
    build("strip", path)
    compressed = tmp_path / "mini.xz"
    compressed.write_bytes(lzma.compress(mini.read_bytes(), check=lzma.CHECK_CRC32))
    build("objcopy", "--add-section", f".gnu_debugdata={compressed}", path)
    assert frames_in(path, "exported") == BY_SYMBOLS


def test_cxx_and_rust_names_are_readable(library, frames_in):
    path = library()
    assert frames_in(path, "calls_cxx")[:2] == ["calls_cxx [libnames.so]", "profiler::work<int> [libnames.so]"]
    assert frames_in(path, "calls_rust")[:2] == ["calls_rust [libnames.so]", "profiler::work [libnames.so]"]


def test_assembler_without_sizes(library, frames_in):
    """Code is named by its symbol if unwind tables give its extent; else by address, not by a neighbour."""
    path = library()
    assert frames_in(path, "sizeless_covered") == ["sizeless_covered [libnames.so]"]
    frame, *_ = frames_in(path, "sizeless")
    assert re.match(r"libnames\.so\+0x\w+ \[libnames\.so\]|\[lost", frame)


def test_assembler_without_unwind_tables(library, frames_in):
    """ljspy knows the caller only if the code certainly has nothing on the stack, nor in
    registers that callers rely on."""
    path = library()
    assert frames_in(path, "leaf") == ["leaf [libnames.so]"]
    for function in ("pushes", "borrows"):
        assert [frame for frame in frames_in(path, function) if frame.startswith("[lost: ")], function


def test_debug_frame_in_a_separate_file(library, frames_in, build, tmp_path):
    path = library("-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables")
    split_debug_info(build, path, tmp_path / ".debug/libnames.so.debug")
    assert frames_in(path, "exported") == WITH_DEBUG_INFO


def record_entries(directory, pid, is_entry):
    """
    Stacks of a program that calls through a procedure linkage table, until an entry is among them: of each twenty to
    forty interrupts, one meets it; on a busy machine, fewer.
    """
    recorded = ljspy.record_native_until(lambda stacks_: any(is_entry(frames[-1]) for frames, _ in stacks_),
                                         directory, "-p", pid, seconds=0.5, options=["--native", "all"])
    return seen(recorded)


def seen(recorded):
    return [(frames, weight) for frames, weight in recorded if frames != [ljspy.UNSEEN]]


@pytest.mark.parametrize("strip", ([], ["-s"]), ids=("symbols", "stripped"))
@pytest.mark.parametrize(
    "options",
    (["-Wl,-z,lazy"], ["-Wl,-z,now"], ["-fcf-protection", "-Wl,-z,ibtplt"], ["-fcf-protection", "-Wl,-z,ibtplt,-z,now"]),
    ids=("lazy", "now", "plt.sec", "plt.sec-now"),
)
def test_procedure_linkage_table(host, library, tmp_path, options, strip):
    """Entries are named after the function they jump to."""
    path = library(*options, *strip)
    leaves = collections.Counter()
    with ljspy.Target([host, path, "calls_plt"]).wait_ready() as target:
        recorded = record_entries(tmp_path, target.pid, lambda frame: frame == "callee@plt [libnames.so]")
    for frames, weight in recorded:
        at = frames.index("calls_plt [libnames.so]") if "calls_plt [libnames.so]" in frames else len(frames)
        leaves.update({frame: weight for frame in frames[at + 1 :]})
    assert leaves["callee@plt [libnames.so]"], leaves
    assert set(leaves) <= {"callee@plt [libnames.so]", "callee [libnames.so]"}


@pytest.mark.parametrize("options", (["-static"], ["-static-pie"], ["-static", "-s"]), ids=("static", "static-pie", "stripped"))
def test_procedure_linkage_table_of_a_static_program(build, tmp_path, options):
    """A static program has a procedure linkage table for functions chosen at its start;
    no unwind table covers it."""
    development = ljspy.PACKAGES / "libluajit-5.1-dev/usr"
    program = tmp_path / "static"
    build("gcc", "-O2", f"-I{INCLUDE}", *options, HERE / "static.c", "-o", program,
          development / "lib/x86_64-linux-gnu/libluajit-5.1.a", "-lm", "-ldl")
    entries = section(program, ".plt")

    def is_entry(frame):
        place = re.fullmatch(r"static\+0x(\w+) \[static\]", frame)
        return int(place[1], 16) in entries if place else frame == "callee@plt [static]"

    with ljspy.Target([program]).wait_ready() as target:
        recorded = record_entries(tmp_path, target.pid, is_entry)
    assert not [frames for frames, _ in recorded if any(map(stacks.is_lost, frames))]
    above = [frames[frames.index("lj_BC_FUNCC [vm]") + 1 :] for frames, _ in recorded if "lj_BC_FUNCC [vm]" in frames]
    assert any(is_entry(frames[-1]) for frames in above)
    if "-s" in options:
        assert {len(frames) for frames in above} == {1, 2}
        assert all(frame.startswith("static+0x") for frames in above for frame in frames)
    else:
        assert {";".join(frames) for frames in above} == {
            "calls_plt [static]",
            "calls_plt [static];callee@plt [static]",
            "calls_plt [static];chosen [static]",
        }


NAMELESS = "ffi+0x [ffi];ffi+0x [ffi]"
CALLED_THROUGH_THE_FFI = {
    "nameless": (["-static-pie"], NAMELESS),
    "exported": (["-pie", "-rdynamic"], "work [ffi];ffi+0x [ffi]"),
    # Beyond 2 GB, unwind tables do not reach it.
    "far": (["-static-pie", "-DFAR", "-Wl,--section-start=.far=0xd0000000", "-fno-asynchronous-unwind-tables"], NAMELESS),
}


@pytest.mark.parametrize("jit", ("on", "off"))
@pytest.mark.parametrize(("options", "called"), CALLED_THROUGH_THE_FFI.values(), ids=CALLED_THROUGH_THE_FFI.keys())
def test_functions_called_through_the_ffi_are_not_luajits(build, tmp_path, options, called, jit):
    """LuaJIT and the program are one module, and nothing in it has a name that is not exported."""
    development = ljspy.PACKAGES / "libluajit-5.1-dev/usr"
    program = tmp_path / "ffi"
    build("gcc", "-O2", "-fPIE", "-s", *options, f"-I{INCLUDE}", HERE / "ffi.c", "-o", program,
          development / "lib/x86_64-linux-gnu/libluajit-5.1.a", "-lm", "-ldl")
    with ljspy.Target([program, jit]).wait_ready() as target:
        recorded = ljspy.record_native(tmp_path, "-p", target.pid, seconds=1, rate=ljspy.HIGHEST_RATE)
    above = collections.Counter()
    for frames, weight in recorded:
        if callers := [i for i, frame in enumerate(frames) if frame.startswith("calls ")]:
            above[";".join(re.sub(r"0x\w+", "0x", frame) for frame in frames[callers[-1] + 1 :])] += weight
    assert above[called] > 0.8 * above.total(), above


def test_static_program_without_section_headers(build, tmp_path):
    """Nothing leads to its unwind table, not even a program header. Only the linkage table has none."""
    development = ljspy.PACKAGES / "libluajit-5.1-dev/usr"
    program = tmp_path / "static"
    build("gcc", "-O2", f"-I{INCLUDE}", "-static", "-s", HERE / "static.c", "-o", program,
          development / "lib/x86_64-linux-gnu/libluajit-5.1.a", "-lm", "-ldl")
    linkage = section(program, ".plt")
    with program.open("r+b") as file:
        file.seek(0x28)  # e_shoff
        file.write(bytes(8))
        file.seek(0x3C)  # e_shnum, e_shstrndx
        file.write(bytes(4))
    with ljspy.Target([program]).wait_ready() as target:
        recorded = seen(ljspy.record_native_until(seen, tmp_path, "-p", target.pid, options=["--native", "all"],
                                                  seconds=1, rate=ljspy.HIGHEST_RATE))
    leaves = [int(re.fullmatch(r"static\+0x(\w+) \[static\]", frames[-1])[1], 16) for frames, _ in recorded]
    lost = [any(map(stacks.is_lost, frames)) for frames, _ in recorded]
    assert False in lost
    assert lost == [leaf in linkage for leaf in leaves], recorded


# Abbreviations: a compilation unit and a scope, both with extents, a partial unit, an import of one.
HOSTILE_BEGIN = """
	.section .debug_abbrev,"",@progbits
	.byte 1, 0x11, 1, 0x11, 1, 0x12, 7, 0, 0
	.byte 2, 0x0b, 1, 0x11, 1, 0x12, 7, 0, 0
	.byte 3, 0x3c, 1, 0, 0
	.byte 4, 0x3d, 0, 0x18, 0x10, 0, 0
	.byte 0
	.macro unit number abbreviation
unit\\number:	.long end\\number - unit\\number - 4
	.value 4
	.long 0
	.byte 8, \\abbreviation
	.endm
	.section .debug_info,"",@progbits
	unit 0, 1
	.quad 0, 0x7fffffffffff
"""

HOSTILE = {
    # A million nested scopes: recursion exhausts the stack.
    "deep": """
	.rept 1000000
	.byte 2
	.quad 0, 0x7fffffffffff
	.endr
end0:
""",
    # Each unit imports the next one twice: 2^40 paths lead to the last.
    "branching": "".join(
        f"""
	.byte 4
	.long unit{n + 1} + 11
	.byte 4
	.long unit{n + 1} + 11
	.byte 0
end{n}:	unit {n + 1}, 3
"""
        for n in range(40)
    )
    + "	.byte 0\nend40:\n",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_debug_info_costs_itself_alone(library, frames_in, tmp_path, kind):
    """Whatever the debug info does to the library that reads it, ljspy still has names
    from symbols, and for other modules."""
    source = tmp_path / "hostile.s"
    source.write_text(HOSTILE_BEGIN + HOSTILE[kind])
    path = tmp_path / "libnames.so"
    library(source)
    assert frames_in(path, "exported") == BY_SYMBOLS


# Bytes that .cfi_escape adds to the unwind table of an endless function, and the
# expected next frame.
HOSTILE_RULES = {
    # The caller's rbx, which nothing needs, is in a register that does not exist.
    "register-beyond-all": ("0x09, 3, 0xff, 0xff, 0xff, 0xff, 0x0f", "run [host]"),
    "division-that-traps": ("0x0f, 12, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x09, 0xff, 0x1b", "[lost: "),
    "jump-to-itself": ("0x0f, 3, 0x2f, 0xfd, 0xff", "[lost: "),
}


@pytest.mark.parametrize("options", ([], ["-Wl,--no-eh-frame-hdr"]), ids=("eh-frame-hdr", "no-eh-frame-hdr"))
@pytest.mark.parametrize("kind", HOSTILE_RULES)
def test_hostile_unwind_tables_cost_themselves_alone(library, host, tmp_path, kind, options):
    """Whatever the tables would do to a library that interprets them, ljspy marks lost
    callers and shows the whole Lua stack."""
    rule, expected = HOSTILE_RULES[kind]
    source = tmp_path / "hostile.s"
    source.write_text(
        f"""
	.globl hostile
	.type hostile, @function
hostile:
	.cfi_startproc
	.cfi_escape {rule}
1:	jmp 1b
	.cfi_endproc
	.size hostile, . - hostile
	.section .note.GNU-stack,"",@progbits
"""
    )
    with ljspy.Target([host, library(source, *options), "hostile"]).wait_ready() as target:
        ljspy.wait_worked(target.pid)
        dump = ljspy.run("dump", "--native", "all", "-p", target.pid)
    assert dump.returncode in (ljspy.OK, ljspy.WITH_ERRORS)
    frames = [line.strip() for line in dump.stdout.splitlines() if line.startswith(" ")]
    assert frames[0] == "hostile [libnames.so]"
    assert frames[1].startswith(expected)
    assert any("local function calls()" in frame for frame in frames)
    assert frames[-1] == "_start [host]"
