# SPDX-License-Identifier: MIT
"""The same sources give the same program, and what is installed can be taken away again."""

import shutil
import subprocess

import pytest

import ljspy


def make(directory, *arguments):
    return subprocess.run(["make", "-C", directory, *arguments], capture_output=True, text=True, timeout=280, check=True)


@pytest.fixture
def copies(tmp_path):
    """The sources in two folders, whose names differ in length."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ljspy.ROOT, capture_output=True, check=False)
    if tracked.returncode:
        pytest.skip("not a git checkout, so the sources are not known")
    folders = tmp_path / "a", tmp_path / "somewhere" / "else"
    for folder in folders:
        for name in filter(None, tracked.stdout.decode().split("\0")):
            if name.startswith("tests/") or not (ljspy.ROOT / name).is_file():
                continue
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ljspy.ROOT / name, folder / name)
    return folders


def test_objects_do_not_tell_where_they_were_built(copies):
    """A C file, assembler with files included, and generated code, with their debug info."""
    objects = ["memory/array.o", "output/flamegraph/flamegraph_assets.o", "output/formats/pprof.pb-c.o"]
    built = []
    for folder in copies:
        make(folder, *(f"build/release/{name}" for name in objects))
        built.append([(folder / "build/release" / name).read_bytes() for name in objects])
    assert all(built[0])
    assert built[0] == built[1]


def test_uninstall_removes_what_install_installed(tmp_path):
    def files():
        return [path for path in tmp_path.rglob("*") if path.is_file()]

    make(ljspy.ROOT, "install", f"DESTDIR={tmp_path}", "PREFIX=/usr")
    assert {path.name for path in files()} >= {"ljspy", "ljspy.1", "_ljspy"}
    make(ljspy.ROOT, "uninstall", f"DESTDIR={tmp_path}", "PREFIX=/usr")
    assert not files()
