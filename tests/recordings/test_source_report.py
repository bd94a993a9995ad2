# SPDX-License-Identifier: MIT
"""ljspy report --source: lines with their time, and where their text comes from."""

import os
import re
import shutil
import subprocess

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

# Time at line 3, in the interpreter or in compiled code, and at line 7, in C.
PROGRAM = """\
local function count()
	local sum = 0
	for i = 1, 3e5 do sum = sum + i % 7 end
	return sum
end
local function copy()
	return #("x"):rep(3e6)
end
io.write("ready\\n") io.flush()
while true do
	count()
	copy()
end
"""

COLUMNS = ("own", "total", "interpreted", "compiled", "C", "GC", "other")


def report(*arguments, status=ljspy.OK, **options):
    result = ljspy.run("report", *arguments, **options)
    assert result.returncode == status, result.stderr
    return result.stdout


def lines(text):
    """For each line of the listing with time, its columns; 0 where there is nothing."""
    found = {}
    for line in text.splitlines():
        number = re.match(r"^(.{63}) *(\d+)(?:  (.*))?$", line)
        if number and number[1].strip():
            cells = [number[1][9 * i:9 * i + 7].strip() for i in range(7)]
            found[int(number[2])] = dict(zip(COLUMNS, (float(cell or 0) for cell in cells)), text=number[3])
    return found


def start(directory, jit="off", name="busy.lua", through=(), source=PROGRAM):
    path = directory / name
    path.write_text(source)
    argv = [*through, ljspy.luajit("luajit"), "-j" + jit, name]
    return ljspy.Target(argv, cwd=directory).wait_ready()


def record(target, path, *options, seconds=1):
    result = ljspy.run_beside(target.pid, seconds, "record", "-r", "499", *options, "-o", path, "-p", target.pid)
    assert result.returncode == ljspy.OK, result.stderr


@pytest.fixture
def public(tmp_path):
    """A directory that everybody may enter, as the superuser's ljspy reads only what everybody may."""
    with ljspy.directory_of(None) as directory:
        directory.chmod(0o755)
        yield directory


@pytest.mark.parametrize("jit", ["off", "on"])
def test_lines_have_own_and_total_time_by_state(public, tmp_path, jit):
    with start(public, jit) as target:
        record(target, tmp_path / "a.ljspy", seconds=2)
        text = report(tmp_path / "a.ljspy", "--source")
    found = lines(text)
    assert {3, 11} <= set(found)
    assert found[3]["own"] > 5 and found[3]["compiled" if jit == "on" else "interpreted"] > 0.2 * found[3]["own"]
    assert found[3]["interpreted" if jit == "on" else "compiled"] < 0.1 * found[3]["own"]
    # LuaJIT's compiled code copies a string only once.
    assert jit == "on" or found[7]["own"] > 5 and found[7]["C"] + found[7]["GC"] > 0.9 * found[7]["own"]
    assert found[11]["total"] >= found[3]["own"] and found[11]["own"] < 5
    assert found[3]["text"].strip() == PROGRAM.splitlines()[2].strip()
    assert abs(sum(line["own"] for line in found.values()) - 100) < 3


def test_sources_are_found_when_the_target_has_ended(public, tmp_path):
    with start(public) as target:
        record(target, tmp_path / "a.ljspy")
    text = report(tmp_path / "a.ljspy", "--source", cwd="/")
    assert "for i = 1, 3e5 do" in text and "(" not in text.split("\nbusy.lua")[1].split("\n")[0]


def test_another_user_reads_what_that_user_may(public, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    with start(public) as target:
        record(target, public / "a.ljspy")
        (public / "a.ljspy").chmod(0o644)
        assert "for i = 1, 3e5 do" in report(public / "a.ljspy", "--source", user=ljspy.NOBODY)
        (public / "busy.lua").chmod(0o600)
        text = report(public / "a.ljspy", "--source", user=ljspy.NOBODY)
    assert "\nbusy.lua (not readable by everybody, or not by you)\n" in text


def test_a_command_that_ljspy_starts_has_sources_at_once(public, tmp_path):
    (public / "busy.lua").write_text(PROGRAM.replace("while true do", "while os.clock() < 1 do"))
    result = ljspy.run("record", "--source", "-f", "text", "-o", "-", "--", ljspy.luajit("luajit"), "busy.lua",
                       cwd=public)
    assert "for i = 1, 3e5 do" in result.stdout, result.stderr


def test_a_file_that_changed_since_is_marked(public, tmp_path):
    with start(public) as target:
        record(target, tmp_path / "a.ljspy")
        assert "changed after" not in report(tmp_path / "a.ljspy", "--source")
        (public / "busy.lua").write_text("-- one more line\n" + PROGRAM)
        assert "\nbusy.lua (changed after the process began: lines may have moved)\n" in report(tmp_path / "a.ljspy", "--source")


def test_without_source_there_are_numbers(public, tmp_path):
    with start(public) as target:
        record(target, tmp_path / "a.ljspy")
        (public / "busy.lua").unlink()
        text = report(tmp_path / "a.ljspy", "--source")
    assert "\nbusy.lua (there is no such file)\n" in text and lines(text)[3]["own"] > 5
    assert lines(text)[3]["text"] is None


@pytest.mark.parametrize("what, note", [("fifo", "no regular file"), ("device", "no regular file"), ("binary", "no text"),
                                        ("large", "too large to show"), ("private", "not readable by everybody, or not by you")])
def test_what_is_no_source_is_not_read(public, tmp_path, what, note):
    with start(public) as target:
        record(target, tmp_path / "a.ljspy")
        path = public / "busy.lua"
        path.unlink()
        if what == "fifo":
            os.mkfifo(path)
        elif what == "device":
            path.symlink_to("/dev/zero")
        elif what == "binary":
            path.write_bytes(b"\x1bLJ\x02\x00")
        elif what == "large":
            path.write_bytes(b"-- secret\n" * 300000)
        else:
            path.write_text("secret = 1\n" * 20)
            path.chmod(0o600 if os.geteuid() == 0 else 0o000)
        text = report(tmp_path / "a.ljspy", "--source", timeout=30)
    assert f"\nbusy.lua ({note})\n" in text and "secret" not in text


def test_links_lead_nowhere_outside_the_root_of_the_target(public, tmp_path):
    """The target is in a root of its own, where the link's target is another file."""
    if os.geteuid() != 0:
        pytest.skip("only root can change the root")
    luajit = ljspy.luajit("luajit")
    outside = public / "outside.lua"
    outside.write_text("-- outside\n" * 20)
    inside = public / "root"
    for path in subprocess.run(["ldd", luajit], capture_output=True, text=True, check=True).stdout.split():
        if path.startswith("/"):
            (inside / path[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, inside / path[1:])
    shutil.copy(luajit, inside / "luajit")
    (inside / "app").mkdir()
    (inside / "app" / "busy.lua").write_text(PROGRAM)
    with ljspy.Target([shutil.which("chroot"), inside, "/luajit", "/app/busy.lua"], env={}).wait_ready() as target:
        record(target, tmp_path / "a.ljspy")
        assert "for i = 1, 3e5 do" in report(tmp_path / "a.ljspy", "--source")
        (inside / "app" / "busy.lua").unlink()
        (inside / "app" / "busy.lua").symlink_to(outside)
        text = report(tmp_path / "a.ljspy", "--source")
        assert "outside" not in text and "(there is no such file)" in text


def test_files_of_a_container_are_read_from_it_while_it_lives(public, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can mount")
    (public / "work").mkdir()
    source = public / "busy.lua"
    source.write_text(PROGRAM)
    setup = f"mount -t tmpfs none {public}/work\ncp {source} {public}/work/busy.lua\nmount --bind {public}/work /mnt"
    argv = ljspy.in_namespaces("-m", setup=setup, argv=[ljspy.luajit("luajit"), f"{public}/work/busy.lua"])
    with ljspy.Target(argv).wait_ready() as target:
        record(target, tmp_path / "a.ljspy")
        assert "for i = 1, 3e5 do" in report(tmp_path / "a.ljspy", "--source")
    assert "for i = 1, 3e5 do" not in report(tmp_path / "a.ljspy", "--source")


def test_another_machine_is_told(public, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can mount")
    boot = public / "boot"
    boot.write_text("01234567-89ab-cdef-0123-456789abcdef\n")
    with start(public) as target:
        record(target, tmp_path / "a.ljspy")
        through = ljspy.in_namespaces("-m", setup=f"mount --bind {boot} /proc/sys/kernel/random/boot_id")
        text = report(tmp_path / "a.ljspy", "--source", through=through)
    assert "\nbusy.lua (read on another machine than the target ran on, or after a restart)\n" in text


def test_pages_and_pictures_hold_the_sources_and_others_refuse(public, tmp_path):
    with start(public) as target:
        record(target, tmp_path / "a.ljspy")
    for name in ("a.html", "a.svg"):
        report(tmp_path / "a.ljspy", "--source", "-o", tmp_path / name)
        page = (tmp_path / name).read_text()
        assert 'data-source="1"' in page and '<metadata id="source-0">local function count()\n\tlocal sum = 0\n' in page
        report(tmp_path / "a.ljspy", "-o", tmp_path / name)
        assert "local function count()" not in (tmp_path / name).read_text()
    result = ljspy.run("report", tmp_path / "a.ljspy", "--source", "-f", "folded")
    assert result.returncode == ljspy.USAGE and "folded" in result.stderr
