# SPDX-License-Identifier: MIT
"""How long a thread is held on a full machine: by ljspy, and by the floor, which does only
what no sampler with ptrace can leave out. The target itself keeps the times."""

import contextlib
import os
import subprocess
import time

import pytest

import ljspy
import surroundings
from gaps import NOTED_MS, Gaps

pytestmark = pytest.mark.usefixtures("built")

SECONDS = float(os.environ.get("BUSY_SECONDS", 3))
TURNS = 3
RATE = 199
HOGS = 8
FLOOR = ljspy.LJSPY.parent / "tests/bench/floor"
CPUS = sorted(os.sched_getaffinity(0))

# As a plain user, whose ljspy may not be more urgent than others, and as the user of this test.
USERS = {"a plain user": ljspy.NOBODY, "this user": None}


@contextlib.contextmanager
def hogs(count):
    with contextlib.ExitStack() as stack:
        for cpu in CPUS:
            stack.enter_context(surroundings.spinners(count // len(CPUS), cpu, limit=int(6 * TURNS * SECONDS) + 60))
        yield


def hold_by_floor(target, user, _):
    """How often it held the target."""
    argv = [FLOOR, target.pid, round(RATE * SECONDS), RATE]
    floor = subprocess.Popen(list(map(str, argv)), stdout=subprocess.PIPE, text=True, **ljspy.as_user(user))
    time.sleep(SECONDS)
    floor.terminate()
    out, _ = floor.communicate(timeout=30)
    return int(out.split()[3])


def hold_by_ljspy(target, user, directory):
    stats = ljspy.record(directory, "-p", target.pid, seconds=SECONDS, rate=RATE, user=user).stats
    return stats["samples"]


def hold_by_nobody(_target, _user, _directory):
    """What the target counts then is the machine's: the host may take a CPU away."""
    time.sleep(SECONDS)
    return 0


HOLDERS = {"nobody": hold_by_nobody, "floor": hold_by_floor, "ljspy": hold_by_ljspy}


def tell(who, held, count):
    """Of COUNT holds, the hundredth part was longer than p99."""
    held = sorted(held, reverse=True)
    p99 = f"{held[count // 100]:.1f}" if len(held) > count // 100 else f"under {NOTED_MS}"
    print(f"    {who:6} {count:5} holds, ms: p99 {p99}, longest {max(held, default=0):.1f}, over {NOTED_MS}: {len(held)}, "
          f"together {sum(held):.1f}")


@pytest.mark.skipif("BUSY_SECONDS" not in os.environ, reason="`make busy` runs it: it needs the machine to itself")
@pytest.mark.parametrize("who", USERS)
def test_beside_hogs(who):
    """They take turns, so that other work of the machine meets them all."""
    user = USERS[who]
    if not FLOOR.exists():
        pytest.skip(f"{FLOOR} is not built")
    if user and os.geteuid():
        pytest.skip("only root can become another user")
    held, counts = {name: [] for name in HOLDERS}, dict.fromkeys(HOLDERS, 0)
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(ljspy.directory_of(user))
        target = stack.enter_context(Gaps(directory, limit=int(6 * TURNS * SECONDS) + 60, calm=True, user=user))
        stack.enter_context(hogs(HOGS))
        for _ in range(TURNS):
            for name, hold in HOLDERS.items():
                target.take()
                counts[name] += hold(target, user, directory)
                held[name] += target.take_all()
    print(f"{who}, {HOGS} hogs on {len(CPUS)} CPUs, held as the target counts:")
    for name in HOLDERS:
        tell(name, held[name], counts[name])
    assert counts["floor"] and counts["ljspy"]
    assert sum(held["ljspy"]) <= 1.2 * (sum(held["floor"]) + sum(held["nobody"])) + NOTED_MS
