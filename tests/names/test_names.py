"""Names of native code, by whatever the files tell, and none where they do not."""

import lzma
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

HERE = pathlib.Path(__file__).parent
LIBLUAJIT = ljspy.PACKAGES / "libluajit-5.1-2/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2"
INCLUDE = ljspy.PACKAGES / "libluajit-5.1-dev/usr/include/luajit-2.1"
SOURCE = (HERE / "names.c").read_text().splitlines()


def line_of(tag):
    return next(n for n, line in enumerate(SOURCE, 1) if line.endswith(f"/* in {tag} */"))


def build(*arguments):
    subprocess.run([str(a) for a in arguments], check=True, timeout=60)


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    program = tmp_path_factory.mktemp("names") / "host"
    build("gcc", "-O2", f"-I{INCLUDE}", HERE / "host.c", "-o", program, LIBLUAJIT, "-ldl",
          f"-Wl,-rpath,{LIBLUAJIT.parent}")
    return program


@pytest.fixture
def library(tmp_path):
    """Builds the library with more options."""

    def make(*options):
        path = tmp_path / "libnames.so"
        build("gcc", "-O2", "-fPIC", "-shared", "-Wl,--build-id", "-Wl,-z,lazy", *options, HERE / "names.c", "-o", path)
        return path

    return make


@pytest.fixture
def frames_in(host):
    """Frames of a thread in the library's function, root first; only those above
    the function that Lua calls."""

    def frames_above_run(target):
        dump = ljspy.run("dump", "--native", "all", "-p", target.pid).stdout
        frames = [line.strip() for line in reversed(dump.splitlines()) if line.startswith(" ")]
        return frames[1 + max((i for i, frame in enumerate(frames) if frame == "run [host]"), default=len(frames)) :]

    def find(library, function, before=()):
        with ljspy.Target([*before, host, library, function]).wait_ready() as target:
            for _ in range(5):  # it may not have got there yet
                if frames := frames_above_run(target):
                    break
            return frames

    return find


WITH_DEBUG_INFO = [
    f"exported names.c:{line_of('exported')}",
    f"hidden names.c:{line_of('hidden')}",
    f"inlined names.c:{line_of('inlined')}",
]
BY_SYMBOLS = ["exported [libnames.so]", "hidden [libnames.so]"]
STRIPPED = ["exported [libnames.so]", r"libnames\.so\+0x"]


def is_stripped(frames):
    return frames[:1] == STRIPPED[:1] and len(frames) == 2 and re.match(STRIPPED[1], frames[1])


def split_debug_info(path, debug_file, link=True):
    """Take debug info and symbols out of a library."""
    debug_file.parent.mkdir(parents=True, exist_ok=True)
    build("objcopy", "--only-keep-debug", path, debug_file)
    build("strip", path)
    if link:
        build("objcopy", f"--add-gnu-debuglink={debug_file}", path)


def build_id(path):
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    return re.search(r"Build ID: (\w+)", notes)[1]


def test_symbol_table(library, frames_in):
    assert frames_in(library(), "exported") == BY_SYMBOLS


def test_debug_info_tells_lines_and_inlined_functions(library, frames_in):
    assert frames_in(library("-g"), "exported") == WITH_DEBUG_INFO


@pytest.mark.parametrize("version", (4, 5))
def test_debug_info_of_clang(library, frames_in, tmp_path, version):
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
def test_debuglink(library, frames_in, tmp_path, place, has_build_id):
    path = library("-g", *([] if has_build_id else ["-Wl,--build-id=none"]))
    split_debug_info(path, tmp_path / place)
    assert frames_in(path, "exported") == WITH_DEBUG_INFO


def test_debug_file_of_another_build_is_not_believed(library, frames_in, tmp_path):
    path = library("-g", "-DOTHER")
    debug_file = tmp_path / "libnames.so.debug"
    split_debug_info(path, debug_file)
    other = library("-g", "-O1")
    build("objcopy", "--only-keep-debug", other, debug_file)
    path = library("-g")
    build("strip", path)
    build("objcopy", f"--add-gnu-debuglink={debug_file}", path)
    assert is_stripped(frames_in(path, "exported"))


def test_debug_file_by_build_id_in_the_targets_root(library, frames_in, tmp_path):
    """The target sees another /usr/lib/debug than ljspy does."""
    namespace = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    if subprocess.run([*namespace, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no mount namespace can be made here")
    path = library("-g")
    identity = build_id(path)
    root = tmp_path / "debug"
    split_debug_info(path, root / ".build-id" / identity[:2] / f"{identity[2:]}.debug", link=False)
    pathlib.Path("/usr/lib/debug").mkdir(exist_ok=True) if os.geteuid() == 0 else None
    if not pathlib.Path("/usr/lib/debug").is_dir():
        pytest.skip("no /usr/lib/debug to mount over")
    command = f'mount --bind "{root}" /usr/lib/debug && exec "$@"'
    assert is_stripped(frames_in(path, "exported"))
    assert frames_in(path, "exported", before=[*namespace, "sh", "-c", command, "sh"]) == WITH_DEBUG_INFO


def test_mini_debug_info(library, frames_in, tmp_path):
    """Symbols of functions in a compressed ELF file within a section, as Fedora has it."""
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
    """By its symbol where unwind tables tell its extent; else by its place, not by a neighbour."""
    path = library()
    assert frames_in(path, "sizeless_covered") == ["sizeless_covered [libnames.so]"]
    frame, *_ = frames_in(path, "sizeless")
    assert re.match(r"libnames\.so\+0x\w+ \[libnames\.so\]|\[lost", frame)


@pytest.mark.parametrize("strip", ([], ["-s"]), ids=("symbols", "stripped"))
@pytest.mark.parametrize(
    "options",
    (["-Wl,-z,lazy"], ["-Wl,-z,now"], ["-fcf-protection", "-Wl,-z,ibtplt"], ["-fcf-protection", "-Wl,-z,ibtplt,-z,now"]),
    ids=("lazy", "now", "plt.sec", "plt.sec-now"),
)
def test_procedure_linkage_table(host, library, tmp_path, options, strip):
    """Its entries are named after what they jump to."""
    path = library(*options, *strip)
    with ljspy.Target([host, path, "calls_plt"]).wait_ready() as target:
        recorded = ljspy.record_native(tmp_path, "-p", target.pid, options=["--native", "all"])
    leaves = {}
    for frames, weight in recorded:
        at = frames.index("calls_plt [libnames.so]") if "calls_plt [libnames.so]" in frames else len(frames)
        for frame in frames[at + 1 :]:
            leaves[frame] = leaves.get(frame, 0) + weight
    assert leaves.get("callee@plt [libnames.so]"), leaves
    assert set(leaves) <= {"callee@plt [libnames.so]", "callee [libnames.so]"}


HOSTILE = {
    # A million scopes, each within the one before.
    "deep": ".fill 1000000, 1, 2",
    # A scope that says that it is followed by itself.
    "endless": "scope: .uleb128 3\n.long scope - begin\n",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_debug_info_costs_itself_alone(library, frames_in, tmp_path, kind):
    """Whatever it does to the library that reads it, there are names by symbols,
    and of other modules all the same."""
    source = tmp_path / "hostile.s"
    source.write_text(
        f"""
	.section .debug_abbrev,"",@progbits
	.uleb128 1, 0x11
	.byte 1
	.uleb128 0x11, 1, 0x12, 7, 0, 0
	.uleb128 2, 0x0b
	.byte 1
	.uleb128 0, 0
	.uleb128 3, 0x0b
	.byte 1
	.uleb128 1, 0x13, 0, 0
	.byte 0
	.section .debug_info,"",@progbits
begin:	.long end - begin - 4
	.value 4
	.long .debug_abbrev
	.byte 8
	.uleb128 1
	.quad 0
	.quad 0x7fffffffffff
	{HOSTILE[kind]}
end:
"""
    )
    assert frames_in(library(source), "exported") == BY_SYMBOLS
