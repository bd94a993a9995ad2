# SPDX-License-Identifier: MIT
"""Recordings of allocations are shown by bytes and by objects, in every view.

tests/formats/make_samples.c makes them up: 10 MB and 100,000 objects, with the shares that
it describes.
"""

import json
import pathlib
import re
import subprocess

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

HERE = pathlib.Path(__file__).resolve().parent
MAKER = ljspy.LJSPY.parent / "tests/formats/make_samples"

TABLES = "main chunk test.lua;make test.lua:5;[alloc: table]"
STRINGS = "main chunk test.lua;make test.lua:5;string.gsub [builtin];[alloc: string]"
GROWTH = "main chunk test.lua;[alloc: growth of a table]"
UNSEEN = "[lost: who allocated was not seen]"
BYTES = {TABLES: 5000000, STRINGS: 3500000, GROWTH: 1000000, UNSEEN: 500000}
OBJECTS = {TABLES: 60000, STRINGS: 40000}


@pytest.fixture(scope="module", name="recording")
def made_up(tmp_path_factory):
    if not MAKER.exists():
        pytest.skip(f"{MAKER} is not built: make make_samples")
    path = tmp_path_factory.mktemp("allocations") / "made-up.ljspy"
    path.write_bytes(subprocess.run([MAKER, "alloc", "ljspy", "alloc"], stdout=subprocess.PIPE, check=True, timeout=60).stdout)
    return path


def report(*arguments, status=ljspy.OK, command="report"):
    result = ljspy.run(command, *arguments)
    assert result.returncode == status, result.stderr
    return result.stdout if status == ljspy.OK else result.stderr


def folded(*arguments):
    lines = report(*arguments, "-f", "folded").splitlines()
    return {stack: int(weight) for stack, weight in (line.rsplit(" ", 1) for line in lines)}


def test_bytes_are_shown_unless_objects_are_asked_for(recording):
    assert folded(recording) == folded(recording, "--clock", "alloc") == BYTES
    assert folded(recording, "--clock", "alloc-objects") == OBJECTS


def test_a_recording_of_a_view_has_all_that_was_recorded(recording, tmp_path):
    again = tmp_path / "again.ljspy"
    report(recording, "--clock", "alloc-objects", "-o", again)
    assert folded(again) == BYTES
    assert folded(again, "--clock", "alloc-objects") == OBJECTS


def rows(text):
    """Of the table of functions: own and total share, own and total amount."""
    table = text.split("  function\n")[1].split("\n\n")[0]
    found = re.findall(r"^ *([\d.]+) ± [\d.]+ +([\d.]+) ± [\d.]+ {2,}([\d.,]+(?: k?M?B)?) {2,}([\d.,]+(?: k?M?B)?)  (.*)$", table, re.MULTILINE)
    return {name: (float(own), float(total), own_amount, total_amount) for own, total, own_amount, total_amount, name in found}


def test_what_was_allocated_is_its_allocators_own(recording):
    text = report(recording)
    assert text.startswith("Allocated bytes of luajit makes.lua\n")
    assert "50 samples of 10.0 MB, 10 with a lost part" in text
    assert "  own bytes   total bytes  function\n" in text
    assert rows(text) == {
        "make test.lua:5": (50, 85, "5.0 MB", "8.5 MB"),
        "string.gsub [builtin]": (35, 35, "3.5 MB", "3.5 MB"),
        "main chunk test.lua": (10, 95, "1.0 MB", "9.5 MB"),
        UNSEEN: (5, 5, "500.0 kB", "500.0 kB"),
    }
    what = text.split("  bytes  allocated\n")[1].split("\n\n")[0]
    shares = re.findall(r"([\d.]+) ± [\d.]+ +[\d.]+ k?M?B  (\[.*\])", what)
    assert shares == [("50.00", "[alloc: table]"), ("35.00", "[alloc: string]"), ("10.00", "[alloc: growth of a table]"), ("5.00", UNSEEN)]
    assert " ms" not in text


def test_objects_are_counted(recording):
    text = report(recording, "--clock", "alloc-objects")
    assert "samples of 100,000 objects" in text
    assert rows(text)["make test.lua:5"] == (60, 100, "60,000", "100,000")


def test_groups_lines_and_filters(recording):
    assert folded(recording, "--by", "state") == {f"interpreted;{stack}": weight for stack, weight in BYTES.items()}
    assert folded(recording, "--include", "alloc: string") == {STRINGS: 3500000}
    assert folded(recording, "--exclude", "make") == {GROWTH: 1000000, UNSEEN: 500000}
    assert folded(recording, "--pid", "4242") == BYTES
    assert folded(recording, "--until", "51ms") == {stack: weight // 10 for stack, weight in BYTES.items()}
    assert folded(recording, "--inverted") == {";".join(reversed(stack.split(";"))): weight for stack, weight in BYTES.items()}
    lines = folded(recording, "--lines")
    assert lines["main chunk test.lua:30;make test.lua:6;[alloc: table]"] == 2500000
    assert sum(lines.values()) == 10000000
    source = report(recording, "--source")
    assert "in percent of all bytes" in source
    assert re.search(r"^ *35\.00 +35\.00 +35\.00 +8$", source, re.MULTILINE)


def test_times_are_not_in_it(recording):
    old = HERE / "version-6.ljspy"
    for options in (["--clock", "cpu"], ["--clock", "wall"], ["--off-cpu"]):
        assert "time is not in it" in report(recording, *options, status=ljspy.NOTHING_PROFILED)
    assert "ljspy record --alloc" in report(old, "--clock", "alloc", status=ljspy.NOTHING_PROFILED)
    assert "no sum" in report(recording, old, status=ljspy.NOTHING_PROFILED)
    assert "cannot be compared" in report(recording, old, command="diff", status=ljspy.NOTHING_PROFILED)


def test_two_recordings_are_compared(recording, tmp_path):
    half = tmp_path / "half.ljspy"
    report(recording, "--exclude", "gsub", "-o", half)
    text = report(recording, half, command="diff")
    assert "50 samples, 10.0 MB in 30.0 s (333.3 kB/s)" in text
    assert "40 samples, 6.5 MB in 30.0 s" in text
    assert "own, % of all bytes" in text
    assert re.search(r"^ *50\.00 +76\.92 .*make test.lua$", text, re.MULTILINE)


def test_pictures_have_bytes(recording, tmp_path):
    report(recording, "--heatmap", "-o", tmp_path / "heat.svg")
    picture = (tmp_path / "heat.svg").read_text()
    assert 'data-unit="bytes"' in picture and 'data-sampled="1"' in picture
    moments = picture.split('<metadata id="moments">')[1].split("</metadata>")[0].splitlines()[1:]
    assert len(moments) == 50
    assert sum(int(moment.split()[3]) for moment in moments) == 10000000


def test_recordings_of_version_6_have_no_allocations():
    document = json.loads(report(HERE / "version-6.ljspy", "-f", "json"))
    assert document["session"]["clock"] == "wall" and document["samples"]
    assert all("alloc_bytes" not in sample for sample in document["samples"])
    assert any(sample["gc_phase"] == "sweep" for sample in document["samples"] if "gc_phase" in sample)


def test_recordings_of_version_7_know_no_steps():
    """They have all else, and so do bytes that a version 7 has of allocations."""
    path = HERE / "version-7.ljspy"
    document = json.loads(report(path, "-f", "json"))
    assert document["session"]["clock"] == "alloc" and len(document["samples"]) == 18
    assert all("gc_step_ns" not in sample and "vm_allocated_bytes" not in sample for sample in document["samples"])
    assert sum(sample["alloc_bytes"] for sample in document["samples"]) == sum(folded(path).values()) > 0
