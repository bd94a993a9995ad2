# SPDX-License-Identifier: MIT
"""Run make for what others install; a lock lets one test process do so at a time."""

import fcntl
import os
import subprocess

import ljspy


def make(target):
    lock = ljspy.ROOT / "build" / ".make-lock"
    lock.parent.mkdir(exist_ok=True)
    with open(lock, "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}
        made = subprocess.run(
            ["make", "-C", ljspy.ROOT, "CC=gcc", target], capture_output=True, text=True, env=environment, timeout=900, check=False
        )
    assert made.returncode == 0, made.stdout + made.stderr


def version():
    return ljspy.run("--version").stdout.split()[1]
