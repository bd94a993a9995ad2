# SPDX-License-Identifier: MIT
"""Other work of a machine that slows a target and ljspy: spinners on its CPU, a
CPU quota."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

CGROUP_V1 = pathlib.Path("/sys/fs/cgroup/cpu")
CGROUP_V2 = pathlib.Path("/sys/fs/cgroup")

QUOTA_PERIOD_US = 100_000


def on_cpu(cpu):
    """For subprocess: run on this CPU only."""
    return lambda: os.sched_setaffinity(0, {cpu})


@contextlib.contextmanager
def spinners(count, cpu, limit=120):
    """COUNT processes that use all of CPU and end by themselves after LIMIT seconds."""

    def prepare():
        signal.alarm(limit)
        os.sched_setaffinity(0, {cpu})

    spinning = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=prepare) for _ in range(count)
    ]
    try:
        time.sleep(0.2 if count else 0)
        yield [s.pid for s in spinning]
    finally:
        for spinner in spinning:
            spinner.kill()
            spinner.wait()


def _new_group():
    """A new control group for CPU time, and a function that sets its quota in us."""
    name = f"ljspy-test-{os.getpid()}-{time.monotonic_ns()}"
    if (CGROUP_V1 / "cpu.cfs_quota_us").exists() or (CGROUP_V1 / "cgroup.procs").exists():
        group = CGROUP_V1 / name
        group.mkdir()
        return group, lambda us: (
            (group / "cpu.cfs_period_us").write_text(str(QUOTA_PERIOD_US)),
            (group / "cpu.cfs_quota_us").write_text(str(us)),
        )
    group = CGROUP_V2 / name
    group.mkdir()
    return group, lambda us: (group / "cpu.max").write_text(f"{us} {QUOTA_PERIOD_US}")


@contextlib.contextmanager
def quota(percent, *pids):
    """Give the processes PERCENT of one CPU, as a container with a limit has it.
    Skips the test if this machine allows no new control group."""
    try:
        group, limit = _new_group()
    except OSError as error:
        pytest.skip(f"no control group for CPU time can be made: {error}")
    try:
        try:
            limit(QUOTA_PERIOD_US * percent // 100)
            for pid in pids:
                (group / "cgroup.procs").write_text(str(pid))
        except OSError as error:
            pytest.skip(f"no CPU quota can be set: {error}")
        yield group
    finally:
        # Move the remaining processes out: only an empty group can be removed.
        for pid in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):
                (group.parent / "cgroup.procs").write_text(pid)
        with contextlib.suppress(OSError):
            group.rmdir()
