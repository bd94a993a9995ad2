# SPDX-License-Identifier: MIT
"""What `ljspy` says of heaps of which something was not found: in each format, and by its exit status."""

import gzip
import shutil
import subprocess

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

PROGRAM = "kept = {{}} for i = 1, {count} do kept[i] = {{}} end io.write('ready\\n') io.flush() io.read()"
HEADER_BYTES = 20  # doc/HEAP_FILE.md
MISSING = 9000000


def heap(path, count):
    with ljspy.Target([ljspy.luajit("luajit"), "-e", PROGRAM.format(count=count)]).wait_ready() as target:
        ljspy.sleeps(target.pid)
        done = ljspy.run("heap", "-p", target.pid, "-o", path)
    assert done.returncode == ljspy.OK and "not found" not in done.stderr, done.stderr
    return path


def with_missing(path, result):
    """The same heap, of which gc.total says that it is larger. A cut core file has less, too."""
    if not shutil.which("zstd"):
        pytest.skip("zstd is not installed")
    content = subprocess.run(["zstd", "-dc", path], capture_output=True, timeout=60, check=True).stdout
    at = content.index(b"gc_total") + len(b"gc_total")
    length = content[at]
    total = str(int(content[at + 1:at + 1 + length]) + MISSING).encode()
    raw = result.with_suffix(".raw")
    raw.write_bytes(content[:at] + bytes([len(total)]) + total + content[at + 1 + length:])
    packed = subprocess.run(["zstd", "-c", "--check", raw], capture_output=True, timeout=60, check=True).stdout
    result.write_bytes(path.read_bytes()[:HEADER_BYTES] + packed)
    return result


@pytest.fixture(name="heaps")
def fixture_heaps(tmp_path):
    whole = heap(tmp_path / "whole.heap", 3000)
    return with_missing(heap(tmp_path / "small.heap", 1000), tmp_path / "missing.heap"), whole


@pytest.mark.parametrize("form", ("svg", "html", "folded", "pprof", "heapsnapshot", "heap", "json"))
def test_each_format_comes_with_what_is_missing(form, heaps, tmp_path):
    missing, whole = heaps
    done = ljspy.run("report", missing, "-f", form, "-o", tmp_path / "out")
    assert done.returncode == ljspy.WITH_ERRORS and "missing.heap: luajit (pid" in done.stderr
    assert f"+{MISSING} bytes not found" in done.stderr
    if form in ("svg", "html"):
        assert f"+{MISSING} bytes not found" in (tmp_path / "out").read_text()
    if form == "pprof":  # who gets it by HTTP sees no message
        assert f"+{MISSING} bytes not found".encode() in gzip.decompress((tmp_path / "out").read_bytes())
    done = ljspy.run("report", whole, "-f", form, "-o", tmp_path / "out")
    assert done.returncode == ljspy.OK and "not found" not in done.stderr


def test_texts_say_what_is_missing(heaps):
    missing, whole = heaps
    for arguments in (("report", missing), ("diff", missing, whole), ("report", missing, whole)):
        done = ljspy.run(*arguments)
        assert done.returncode == ljspy.WITH_ERRORS
        assert f"+{MISSING} bytes not found" in done.stdout and not done.stderr
    assert "Grew in every interval" not in done.stdout and "There are no suspects" in done.stdout
    assert "not found" not in ljspy.run("diff", whole, whole).stdout


def test_a_difference_as_picture_says_what_is_missing(heaps, tmp_path):
    missing, whole = heaps
    done = ljspy.run("diff", missing, whole, "-o", tmp_path / "out.svg")
    assert done.returncode == ljspy.WITH_ERRORS and f"+{MISSING} bytes not found" in done.stderr
    assert "Before: luajit (pid" in (tmp_path / "out.svg").read_text()
