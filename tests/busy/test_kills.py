# SPDX-License-Identifier: MIT
"""No matter when and how ljspy ends: its files have a clear name and are readable."""

import contextlib
import os
import random
import signal
import subprocess
import time

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

# Ten for each of BUSY_SECONDS.
KILLS = round(10 * float(os.environ.get("BUSY_SECONDS", 1.6)))

SIGNALS = [signal.SIGKILL, signal.SIGKILL, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1]

UNFINISHED = ".unfinished.ljspy"


def start(path, pid, *options):
    arguments = [ljspy.LJSPY, "record", "-o", path, "-p", str(pid), *options]
    return subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def test_kills_at_any_moment_leave_nothing_unexplained(tmp_path):
    """Some kills come before there is any output, some while ljspy renders it, some after that."""
    count = KILLS - KILLS % 4
    left = written = 0
    with contextlib.ExitStack() as stack:
        targets = [stack.enter_context(ljspy.busy(limit=600)) for _ in range(4)]
        for first in range(0, count, len(targets)):
            names = [f"{first + i}.svg" for i in range(len(targets))]
            recorders = [start(tmp_path / name, target.pid, "-d", "1800ms", "--stats", tmp_path / f"{name}.json") for name, target in zip(names, targets)]
            begin = time.monotonic()
            moments = sorted((random.uniform(0.3, 2.4), random.choice(SIGNALS), i) for i in range(len(recorders)))
            for moment, number, i in moments:
                time.sleep(max(0, begin + moment - time.monotonic()))
                recorders[i].send_signal(number)
            for recorder in recorders:
                recorder.stderr.read()
                recorder.stderr.close()
                recorder.wait(30)
    for path in tmp_path.iterdir():
        name = path.name
        if name.endswith(UNFINISHED):
            left += 1
            assert ljspy.run("report", path).returncode == ljspy.OK
        else:
            written += 1
            assert name.endswith((".svg", ".json")), name
            assert path.stat().st_size, name
    print(f"{count} kills: {left} recordings left, {written} files written, 0 of another kind")
