# SPDX-License-Identifier: MIT
"""Native code that switches to another stack: C coroutines, a signal's alternate stack.
Its callers are on the thread's own stack, with one lost frame between."""

import collections
import itertools
import os
import pathlib
import re
import subprocess

import pytest

import ljspy
import stacks

pytestmark = pytest.mark.usefixtures("built")

HERE = pathlib.Path(__file__).parent
LIBRARIES = {
    "gc64": ljspy.PACKAGES / "libluajit-5.1-2/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2",
    "gc32": ljspy.PACKAGES / "bullseye/libluajit-5.1-2/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2",
}
SECONDS = max(2, int(os.environ.get("BUSY_SECONDS", 0)))

# Where each kind spends its time, root first.
WORK = {
    "context": "run context on_context LOST burn",
    "fiber": "run fiber on_fiber LOST burn",
    "calling": "run calling on_calling LOST called( work)?",
    "nested": "run nested inner on_nested LOST called( work)?",
    "alarm": "run alarm on_alarm handle burn",
}
NAMES = set(" ".join(WORK.values()).replace("( work)?", " work").split())

# Share of the time. The way there and back makes system calls, and samples hit those more
# often than their share.
TOLD_SHARE = 0.8
# Share of the stacks at work that are in the middle of a switch.
LOST_SHARE = 0.01
KIND_SHARE_SEEN = 0.3


@pytest.fixture(scope="module")
def switched(tmp_path_factory):
    program = tmp_path_factory.mktemp("switched") / "switched"
    include = ljspy.PACKAGES / "libluajit-5.1-dev/usr/include/luajit-2.1"
    subprocess.run(["gcc", "-O2", "-D_GNU_SOURCE", "-pthread", f"-I{include}", HERE / "switched.c", "-o", program,
                    LIBRARIES["gc64"]], check=True)
    return program


def names(frames):
    """Names of the program's functions, each once: those that Lua calls have a native frame, too."""
    found = []
    for frame in frames:
        name = re.match(r"(\w+) (?:switched\.lua:|\[switched)", frame)
        if stacks.is_lost(frame):
            found.append("LOST")
        elif unnamed := re.match(r"function <switched\.lua:(6|10)>", frame):  # called by C and by a coroutine
            found.append({"6": "called", "10": "inner"}[unnamed[1]])
        elif name and name[1] in NAMES:
            found.append(name[1])
    return " ".join(name for name, _ in itertools.groupby(found))


@pytest.mark.parametrize("thread, library", [("main", "gc64"), ("thread", "gc32")])
def test_callers_are_on_the_other_stack(thread, library, jit, switched, tmp_path, note_lost, request):
    path = LIBRARIES[library]
    if not path.exists():
        pytest.skip(f"{path} is not to be had")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(path.parent)}
    with ljspy.Target([switched, thread, jit, SECONDS + 1], env=environment).wait_ready() as target:
        recorded = ljspy.record_native(tmp_path, "-p", target.pid, seconds=SECONDS, options=["--native", "all"])
        said = target.read_until(b"done\n", seconds=ljspy.READY_SECONDS)
    spent = {kind: int(ms) for kind, ms in re.findall(r"(\w+) (\d+) ms", said)}
    seen, not_told, total = collections.Counter(), collections.Counter(), 0
    for frames, weight in recorded:
        text = names(frames)
        kind = next((kind for kind, legal in WORK.items() if re.fullmatch(legal, text)), None)
        seen[kind] += weight if kind else 0
        total += weight
        if not kind and re.search("burn|called|work", text):
            not_told[";".join(frames)] += weight
    told, lost = sum(seen.values()), sum(not_told.values())
    note_lost(request.node.name, len(recorded), collections.Counter(lost=lost, whole=told, short=total - told - lost))
    assert lost <= LOST_SHARE * total, not_told.most_common(5)
    assert told >= TOLD_SHARE * total
    print({kind: (round(ms / sum(spent.values()), 3), round(seen[kind] / told, 3)) for kind, ms in spent.items()},
          f"lost {lost / total:.4f}")
    for kind, ms in spent.items():
        assert seen[kind] / told >= KIND_SHARE_SEEN * ms / sum(spent.values()), (kind, seen, spent)
