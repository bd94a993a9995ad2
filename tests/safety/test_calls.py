"""What a target waits for in system calls ends as it would have ended.

SAFETY_SECONDS says how long the naps take, on the whole (`make safety`)."""

import json
import os
import re
import subprocess

import pytest

import ljspy
from busy.surroundings import spinners

pytestmark = pytest.mark.usefixtures("built")

SAFETY = ljspy.ROOT / "tests/safety"
# For each process.
SECONDS = int(os.environ.get("SAFETY_SECONDS", 8)) / 4
# Short naps are to be met as often as long ones.
RATE = 99 if "SAFETY_SECONDS" in os.environ else 999
# Of kinds that bear a stop, so many take turns in a process.
TOGETHER = 8
# Processes at a time.
AT_ONCE = 8
# A kind whose limit is of the kernel's ticks naps some 80 times a second, alone.
LEAST_NAPS_PER_SECOND = 1
# For each process, on average.
LEAST_SAMPLES = 3


@pytest.fixture(scope="module")
def naps(tmp_path_factory):
    """The library, and its kinds by name: whether each is fragile."""
    library = tmp_path_factory.mktemp("naps") / "naps.so"
    subprocess.run(
        ["gcc", "-std=c17", "-D_GNU_SOURCE", "-shared", "-fPIC", "-O1", "-o", library, SAFETY / "naps.c", "-lutil", "-lrt"],
        check=True,
    )
    argv = [ljspy.luajit("luajit"), SAFETY / "naps.lua", library, "0", "list"]
    listed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    kinds = dict(line.split("\t") for line in listed.splitlines())
    return library, {name: fragile == "fragile" for name, fragile in kinds.items()}


def groups(kinds):
    """What naps in one process: each fragile kind alone, lest ljspy knows of one by another."""
    steady = [name for name, fragile in kinds.items() if not fragile]
    return [[name] for name, fragile in kinds.items() if fragile] + [
        steady[i : i + TOGETHER] for i in range(0, len(steady), TOGETHER)
    ]


def sampled_pids(recording):
    out = ljspy.run("report", recording, "--by", "pid").stdout
    return {int(pid) for pid in re.findall(r"\(pid (\d+)\)$", out, re.MULTILINE)}


def nap(library, batch, directory, outcome):
    """Naps of these kinds under ljspy; adds to OUTCOME what became of those of each kind. Returns how
    many samples there were meanwhile."""
    recording, stats = directory / "naps.ljspy", directory / "stats.json"
    targets = [
        ljspy.Target([ljspy.luajit("luajit"), SAFETY / "naps.lua", library, SECONDS, *kinds], limit=int(SECONDS) + 60)
        for kinds in batch
    ]
    try:
        for target in targets:
            target.wait_ready()
        pids = ",".join(str(target.pid) for target in targets)
        run = ljspy.run(
            "record", "-p", pids, "-r", RATE, "-d", f"{SECONDS + 40}s", "-o", recording, "--stats", stats,
            timeout=SECONDS + 60,
        )
        assert run.returncode == ljspy.OK, run.stderr
        sampled = sampled_pids(recording)
        for target in targets:
            while line := target.read_until(b"\n", at_end=""):
                name, *counts, words = line.rstrip("\n").split("\t")
                counts = dict(zip(("naps", "interrupted", "wrong", "early"), map(int, counts)))
                outcome[name] = counts | {"words": words, "sampled": target.pid in sampled}
    finally:
        for target in targets:
            target.stop()
    figures = json.loads(stats.read_text())
    return figures["samples"] - figures["lost"]["target ended"]


@pytest.mark.parametrize("competitors", [0, 2])
def test_calls_end_as_they_would(naps, competitors, tmp_path):
    """In each call that a stop might change, naps of which it is known how they end; alone, and where
    woken threads wait for their CPU."""
    library, kinds = naps
    batches = groups(kinds)
    outcome, samples = {}, 0
    cpu = min(os.sched_getaffinity(0))
    with spinners(competitors, cpu, limit=int(SECONDS + 60) * len(batches)):
        for i in range(0, len(batches), AT_ONCE):
            samples += nap(library, batches[i : i + AT_ONCE], tmp_path, outcome)
    print(f"{sum(o['naps'] for o in outcome.values())} naps, {samples} samples at {RATE} Hz beside {competitors} spinners")
    for name, o in outcome.items():
        print(f"{name:32}{o['naps']:8} naps, {o['interrupted']} interrupted, {o['wrong']} wrong, {o['early']} early {o['words']}")
    assert samples >= LEAST_SAMPLES * len(batches)
    bad = [name for name, o in outcome.items() if o["interrupted"] or o["wrong"] or o["early"]]
    assert not bad
    assert not [name for name, o in outcome.items() if o["naps"] < LEAST_NAPS_PER_SECOND * SECONDS or not o["sampled"]]
