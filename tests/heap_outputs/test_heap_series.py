# SPDX-License-Identifier: MIT
"""`heap --every` goes on past what may pass, and tells the user meanwhile what is amiss."""

import os
import re
import signal
import subprocess

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

GROWS = """
    local kept = {}
    io.write("ready\\n") io.flush()
    while io.read() do for i = 1, 20000 do kept[#kept + 1] = { i } end io.write("more\\n") io.flush() end
"""


def test_a_series_outlasts_another_tracer_at_its_first_look(tmp_path):
    told = tmp_path / "told"
    with ljspy.busy() as target, told.open("w") as stderr:
        recorder = ljspy.Recorder(tmp_path, "-p", target.pid, seconds=50)
        ljspy.wait_traced(target.pid)
        series = subprocess.Popen([ljspy.LJSPY, "heap", "-p", str(target.pid), "--every", "200ms"],
                                  stdout=subprocess.PIPE, stderr=stderr, text=True)
        try:
            # Not only at the end of the series.
            assert ljspy.wait_until(lambda: "goes on with the next look" in told.read_text())
            recorder.process.send_signal(signal.SIGINT)
            recorder.finish()
            # It is traced for the look, unless that is over before this one sees it.
            ljspy.wait_until(lambda: ljspy.status_field(target.pid, "TracerPid") != "0", seconds=5)
            with pytest.raises(subprocess.TimeoutExpired):
                series.wait(3)
            series.send_signal(signal.SIGINT)
            text = series.communicate(timeout=60)[0]
        finally:
            series.kill()
    assert series.returncode == ljspy.WITH_ERRORS, told.read_text()
    assert told.read_text().count("traced by process") == 1
    assert text.startswith("Totals over time\n") and re.search(r"^\d+ moments? could not be read\.$", text, re.MULTILINE)


def test_a_full_disk_is_told_with_what_is_kept(tmp_path):
    """The program grows until its heaps do not fit any more."""
    disk = tmp_path / "disk"
    disk.mkdir()
    with ljspy.Target([ljspy.luajit("luajit"), "-e", GROWS], limit=90).wait_ready() as target, (tmp_path / "told").open("w") as told:
        argv = ljspy.in_namespaces("-m", setup=f"mount -t tmpfs -o size=256k none {disk}", argv=[
            "sh", "-c", '"$1" heap -p "$2" --every 200ms --for 60s -o "$3/x.heap"; status=$?; ls "$3"; exit $status', "sh",
            ljspy.LJSPY, target.pid, disk])
        series = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=told, text=True, start_new_session=True)
        try:
            said = (tmp_path / "told").read_text
            while "The series goes on, and compares" not in said() and "mount" not in said() and series.poll() is None:
                target.write("more\n")
                target.read_until(b"more\n")
                ljspy.wait_until(lambda seen=said(): said() != seen, seconds=5)
            if "mount" in said() or "unshare" in said():
                pytest.skip("no file system can be mounted here")
            # The next look fails the same way, which is not told again.
            target.write("more\n")
            target.read_until(b"more\n")
            target.stop()
            text = series.communicate(timeout=60)[0]
        finally:
            if series.poll() is None:
                os.killpg(series.pid, signal.SIGKILL)
    assert series.returncode == ljspy.WITH_ERRORS, said()
    assert said().count("No space left") == 1
    assert said().count("What was written before stays. The series goes on") == 1
    kept = re.findall(r"^x-\d+\.heap$", text, re.MULTILINE)
    lost, shown = map(int, re.search(r"(\d+) of the (\d+) moments in the text could not be written", said()).groups())
    assert said().count("Wrote") == len(kept) == shown - lost > 0
    assert text.count(" UTC ") == shown
