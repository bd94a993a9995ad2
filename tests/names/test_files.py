# SPDX-License-Identifier: MIT
"""Names come from the mapped file, wherever it is now."""

import os
import re

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

BY_SYMBOLS = ["exported [libnames.so]", "hidden [libnames.so]"]
IS_ROOT = os.geteuid() == 0


def frames_above_run(target):
    """Frames above the function that Lua calls; none if the thread is not there yet."""
    dump = ljspy.run("dump", "--native", "all", "-p", target.pid).stdout
    frames = [line.strip() for line in reversed(dump.splitlines()) if line.startswith(" ")]
    return frames[1 + max((i for i, frame in enumerate(frames) if frame == "run [host]"), default=len(frames)) :]


def wait_inside(target):
    assert ljspy.wait_until(lambda: frames_above_run(target))


def is_named_without_its_file(frames):
    """Whether there are only exported names, which mapped memory gives."""
    return frames[0] == BY_SYMBOLS[0] and re.match(r"libnames\.so\+0x\w+ ", frames[1])


def test_deleted_library(host, library):
    path = library()
    with ljspy.Target([host, path, "exported"]).wait_ready() as target:
        wait_inside(target)
        path.unlink()
        frames = frames_above_run(target)
    # With the right permission, the mapping still leads to the file.
    assert frames == BY_SYMBOLS if IS_ROOT else is_named_without_its_file(frames)


def test_library_replaced_by_another_build(host, library, tmp_path):
    """As a package upgrade does: the new file's names belong to other code."""
    installed = tmp_path / "installed" / "libnames.so"
    installed.parent.mkdir()
    library().rename(installed)
    with ljspy.Target([host, installed, "exported"]).wait_ready() as target:
        wait_inside(target)
        library("-O0").rename(installed)
        frames = frames_above_run(target)
    assert frames == BY_SYMBOLS if IS_ROOT else is_named_without_its_file(frames)


def test_library_renamed(host, library):
    """Another library now has the old name; /proc/PID/maps gives the mapped one's new name."""
    path = library()
    with ljspy.Target([host, path, "exported"]).wait_ready() as target:
        wait_inside(target)
        path.rename(path.with_name("libnames.so.old"))
        library("-O0")
        assert [frame.split(" ")[0] for frame in frames_above_run(target)] == ["exported", "hidden"]


def test_deleted_program(library, build, host, tmp_path):
    program = tmp_path / "host"
    build("cp", host, program)
    with ljspy.Target([program, library(), "exported"]).wait_ready() as target:
        wait_inside(target)
        program.unlink()
        dump = ljspy.run("dump", "-p", target.pid).stdout
    assert re.search(r"^    main \[host\]$", dump, re.MULTILINE), dump


def test_library_that_only_the_target_can_see(host, library, namespace, tmp_path):
    """The library is in the target's mount namespace; outside, another one has its name."""
    visible, hidden = tmp_path / "visible", tmp_path / "hidden"
    visible.mkdir()
    hidden.mkdir()
    library().rename(hidden / "libnames.so")
    library("-O0").rename(visible / "libnames.so")
    command = f'mount --bind "{hidden}" "{visible}" && exec "$@"'
    argv = [*namespace, "sh", "-c", command, "sh", host, visible / "libnames.so", "exported"]
    with ljspy.Target(argv).wait_ready() as target:
        wait_inside(target)
        assert frames_above_run(target) == BY_SYMBOLS


def test_the_kernels_own_code(runtime, jit, tmp_path):
    """The vdso is in no file; os.clock() calls it."""
    program = "jit.{}() io.write('ready\\n') io.flush() while true do os.clock() end"
    with ljspy.Target([ljspy.luajit(runtime), "-e", program.format(jit)]).wait_ready() as target:
        recorded = ljspy.record_native(tmp_path, "-p", target.pid, seconds=1, options=["--native", "all"])
    inside = [frames for frames, _ in recorded if frames[-1].endswith(" [vdso]")]
    if not any("vdso" in frame for frames, _ in recorded for frame in frames):
        pytest.skip("the C library does not use the vdso here")
    for frames in inside:
        assert re.match(r"\w*clock_gettime \[vdso\]", frames[-1]), frames
        assert "os.clock [builtin]" in frames
