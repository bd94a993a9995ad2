# SPDX-License-Identifier: MIT
"""What the heap of one VM costs where there are many in the process."""

import subprocess

import pytest

import heaps
import ljspy

pytestmark = pytest.mark.usefixtures("built")

VMS = 64
# Of what all have, so much may be copied for one.
PART = 8


@pytest.fixture(name="program", scope="module")
def fixture_program(tmp_path_factory):
    library = ljspy.PACKAGES / "libluajit-5.1-2/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2"
    include = ljspy.PACKAGES / "libluajit-5.1-dev/usr/include/luajit-2.1"
    path = tmp_path_factory.mktemp("vms") / "vms"
    subprocess.run(["gcc", "-O1", f"-I{include}", heaps.HERE / "vms.c", "-o", path, library, f"-Wl,-rpath,{library.parent}"],
                   check=True)
    return path


def test_one_vm_is_copied_without_the_others(program):
    with ljspy.Target([program, VMS]) as target:
        target.wait_ready()
        ljspy.wait_until(lambda: ljspy.sleeps(target.pid))
        found = heaps.accounts(target.pid)
    everything = sum(heap.total for heap in found)
    print(f"{everything} bytes in all, at most {max(heap.held_bytes for heap in found)} copied at once,"
          f" {max(heap.attempts for heap in found)} attempts")
    assert len(found) == VMS
    assert all((heap.sum, heap.uncertain, heap.changed_pages) == (heap.total, 0, 0) for heap in found)
    assert all(heap.held_bytes <= everything / PART for heap in found)
