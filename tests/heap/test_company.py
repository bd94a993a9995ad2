# SPDX-License-Identifier: MIT
"""The heap of a VM that is not alone in its process: beside many others, or threads that know nothing of it."""

import json
import os
import re
import signal
import subprocess
import threading

import pytest

import heaps
import ljspy

pytestmark = pytest.mark.usefixtures("built")

VMS = 64
# Of what all have, so much may be copied for one.
PART = 8
NAPPERS = 16
LOOKS = 12
BYTES_MAX = 10**7  # of one that churn.c opens
ENDINGS = 5
FIRST_END_S = 0.1
# So long is the program of a series busy, or for so many looks.
BUSY_S = 8
LOOKS_BUSY = 4


def build(name, directory):
    library = ljspy.PACKAGES / "libluajit-5.1-2/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2"
    include = ljspy.PACKAGES / "libluajit-5.1-dev/usr/include/luajit-2.1"
    path = directory / name
    subprocess.run(["gcc", "-O1", "-D_GNU_SOURCE", "-pthread", f"-I{include}", heaps.HERE / f"{name}.c", "-o", path, library,
                    f"-Wl,-rpath,{library.parent}"], check=True)
    return path


def test_one_vm_is_copied_without_the_others(tmp_path):
    with ljspy.Target([build("vms", tmp_path), VMS]) as target:
        target.wait_ready()
        ljspy.wait_until(lambda: ljspy.sleeps(target.pid))
        found = heaps.accounts(target.pid)
    everything = sum(heap.total for heap in found)
    print(f"{everything} bytes in all, at most {max(heap.held_bytes for heap in found)} copied at once,"
          f" {max(heap.attempts for heap in found)} attempts")
    assert len(found) == VMS
    assert all((heap.sum, heap.uncertain, heap.changed_pages) == (heap.total, 0, 0) for heap in found)
    assert all(heap.held_bytes <= everything / PART for heap in found)


def read_beside_naps(directory, *more):
    with ljspy.Target([build("naps", directory), NAPPERS, *more]) as target:
        target.wait_ready()
        done = ljspy.run("heap", "-p", target.pid, "-f", "json", "-o", "-")
    print(done.stderr)
    return done


def test_lua_that_sleeps_is_read_beside_naps(tmp_path):
    done = read_beside_naps(tmp_path)
    assert done.returncode == 0, done.stderr
    heap = json.loads(done.stdout)["processes"][0]["vms"][0]
    print(heap["held"])
    assert heap["sum"] > 32 << 20 and heap["difference"] == 0


def test_naps_are_named_where_they_leave_no_time_to_copy(tmp_path):
    """Where all of them wait for a CPU, as beside others that are busy, the heap can be read. The other one always can."""
    done = read_beside_naps(tmp_path, "busy")
    assert done.returncode in (0, 1), done.stderr
    small, large = sorted(json.loads(done.stdout)["processes"][0]["vms"], key=lambda vm: vm["gc_total"])
    print(small["held"], large["held"])
    assert small["sum"] > 0 and small["difference"] == 0 and small["held"]["method"] != "missing"
    assert large["gc_total"] > 32 << 20
    is_missing = large["held"]["method"] == "missing"
    assert large["sum"] == 0 if is_missing else large["difference"] == 0
    assert is_missing == (done.returncode == 1) == ("a thread of it woke meanwhile" in done.stderr)
    assert is_missing == ("could not be read; gc.total" in done.stderr)


def test_a_large_heap_in_which_nothing_happens_is_read_behind_one_that_is_busy(tmp_path):
    """However long the tries at the busy one have taken in vain."""
    done = read_beside_naps(tmp_path, "busy", "large")
    busy, idle = sorted(json.loads(done.stdout)["processes"][0]["vms"], key=lambda vm: vm["gc_total"])
    print(busy["held"], idle["held"])
    is_missing = busy["held"]["method"] == "missing"
    assert is_missing == (done.returncode == 1) == ("a thread of it woke meanwhile" in done.stderr)
    assert busy["sum"] == 0 if is_missing else busy["difference"] == 0
    assert 48 << 20 < idle["gc_total"] == idle["sum"] and idle["held"]["method"] != "missing"


def numbers(directory):
    return sorted(int(path.stem.split("-")[1]) for path in directory.glob("x-*.heap"))


def test_a_series_counts_the_moments_without_the_heap(tmp_path):
    """Where it could be read while the process was busy, so much the better. tests/unit/test_heap_series.c has all cases."""
    told = tmp_path / "stderr"
    with ljspy.Target([build("naps", tmp_path), NAPPERS, "turns"], limit=300) as target, told.open("w") as stderr:
        target.wait_ready()
        series = subprocess.Popen([ljspy.LJSPY, "heap", "-p", str(target.pid), "--every", "1s", "-o", tmp_path / "x.heap"],
                                  stdout=subprocess.PIPE, stderr=stderr, text=True)
        try:
            assert ljspy.wait_until((tmp_path / "x-1.heap").exists, seconds=30)
            os.kill(target.pid, signal.SIGUSR1)
            ljspy.wait_until(lambda: len(numbers(tmp_path)) > LOOKS_BUSY, seconds=BUSY_S)
            os.kill(target.pid, signal.SIGUSR1)
            before = len(numbers(tmp_path))
            assert ljspy.wait_until(lambda: len(numbers(tmp_path)) > before, seconds=60)
            series.send_signal(signal.SIGINT)
            output = series.communicate(timeout=60)[0]
        finally:
            series.kill()
    print(told.read_text(), output)
    read = numbers(tmp_path)
    unread = re.search(r"^(\d+) moments? could not be read\.$", output, re.MULTILINE)
    unread = int(unread[1]) if unread else 0
    assert unread >= read[-1] - len(read)
    assert (unread > 0) == (series.returncode == 1) == ("in one moment" in told.read_text())
    assert told.read_text().count("in one moment") <= 1
    assert "Totals over time" in output


def test_a_process_that_ends_has_closed_no_state(tmp_path):
    told = []
    for number in range(ENDINGS):
        with ljspy.Target([build("naps", tmp_path), NAPPERS, "busy"]) as target:
            target.wait_ready()
            timer = threading.Timer(FIRST_END_S * 2**number, os.kill, (target.pid, signal.SIGKILL))
            timer.start()
            told.append(ljspy.run("heap", "-p", target.pid, "-f", "json", "-o", "-").stderr)
            timer.join()
    print(told)
    assert not any("closed" in text for text in told)
    assert any("ended while its heap was read" in text for text in told)


def test_a_state_that_is_closed_meanwhile_leaves_the_others(tmp_path):
    with ljspy.Target([build("churn", tmp_path)]) as target:
        target.wait_ready()
        for _ in range(LOOKS):
            done = ljspy.run("heap", "-p", target.pid, "-f", "json", "-o", "-")
            assert done.returncode in (0, 1), done.stderr
            found = json.loads(done.stdout)["processes"][0]["vms"]
            whole = [vm for vm in found if vm["held"]["method"] != "missing" and vm["sum"] and vm["difference"] == 0]
            print(f"{len(found)} states, {len(whole)} whole: {done.stderr}")
            assert len(whole) >= 2 and all(0 <= vm["gc_total"] < BYTES_MAX for vm in found)
            assert len(whole) == len(found) or "missing" in done.stderr or "not found" in done.stderr
