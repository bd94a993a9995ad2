# SPDX-License-Identifier: MIT
"""A target's waits in system calls end as they would without ljspy.

SAFETY_SECONDS says how long the naps take in all (`make safety`)."""

import collections
import json
import math
import os
import subprocess

import pytest

import ljspy
from busy.surroundings import spinners

pytestmark = pytest.mark.usefixtures("built")

SAFETY = ljspy.ROOT / "tests/safety"
# For each process.
SECONDS = int(os.environ.get("SAFETY_SECONDS", 8)) / 4
# Samples should hit short naps as often as long ones.
RATE = 99 if "SAFETY_SECONDS" in os.environ else 999
# So many kinds that bear a stop take turns in a process.
TOGETHER = 8
# Processes at a time.
AT_ONCE = 16
# A kind whose limit is in kernel ticks naps some 80 times a second when alone.
LEAST_NAPS_PER_SECOND = 1
# For each second of CPU time. Threads that wait for a CPU, and may be in a call, cause missed ticks; their
# number depends on the machine's other work.
LEAST_SAMPLED = 10
SURE = 4  # standard errors
# Where others take all CPUs, hardly a tick finds a target that runs: 4 samples of 22,371 naps were seen beside compilers.
ROUNDS_MAX = 3
# One nap of these kinds may come back short before ljspy has seen the thread asleep in one
# (doc/WHAT_THE_TARGET_NOTICES.md, "What is left"): on a busy machine the terminal may not be full for a while, nor the
# network, and who is to read may not get a CPU.
SHORT_AT_FIRST = ("terminal", "TCP")


@pytest.fixture(scope="module")
def naps(tmp_path_factory):
    """The library, and a dict of its kinds: name to whether the kind is fragile."""
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
    """The kinds for each process: each fragile kind alone, so that ljspy does not learn of one by another."""
    steady = [name for name, fragile in kinds.items() if not fragile]
    return [[name] for name, fragile in kinds.items() if fragile] + [
        steady[i : i + TOGETHER] for i in range(0, len(steady), TOGETHER)
    ]


Sampled = collections.namedtuple("Sampled", ["samples", "cpu_s"])
# Of a process that had hardly a CPU: no tick has met it.
NEVER = Sampled(0, 0)


def sampled(recording):
    """For each process, how many samples have a stack, and its CPU time. Each has slept until it was traced."""
    out = json.loads(ljspy.run("report", recording, "-f", "json", "-o", "-").stdout)
    functions, frames, stacks, threads = (out[key] for key in ("functions", "frames", "stacks", "threads"))
    seen, cpu_ns = collections.Counter(), collections.Counter()
    for sample in out["samples"]:
        pid = threads[sample["thread"]]["pid"]
        stack = stacks[sample["stack"]]
        seen[pid] += any(functions[frames[frame]["function"]]["kind"] != "lost" for frame in stack)
        cpu_ns[pid] += sample["cpu_ns"]
    return {pid: Sampled(seen[pid], cpu_ns[pid] / 1e9) for pid in cpu_ns}


def is_sampled(samples, cpu_s):
    least = LEAST_SAMPLED * cpu_s
    return samples >= least - SURE * math.sqrt(least)


def nap(library, batch, directory, outcome):
    """Run naps of these kinds under ljspy; add to OUTCOME how those of each kind ended."""
    recording = directory / "naps.ljspy"
    targets = [
        ljspy.Target([ljspy.luajit("luajit"), SAFETY / "naps.lua", library, SECONDS, *kinds],
                     limit=ljspy.LIMIT_SECONDS + int(SECONDS))
        for kinds in batch
    ]
    try:
        for target in targets:
            target.wait_ready()
        pids = ",".join(str(target.pid) for target in targets)
        arguments = ["record", "-p", pids, "-r", RATE, "-d", f"{SECONDS + ljspy.RECORDING_SECONDS}s", "-o", recording]
        with subprocess.Popen(list(map(str, [ljspy.LJSPY, *arguments])), stderr=subprocess.PIPE, text=True) as run:
            # On a busy machine those that do not wait for ljspy might end before it has found them.
            for target in targets:
                ljspy.wait_traced(target.pid)
                target.write("\n")
            _, errors = run.communicate(timeout=SECONDS + ljspy.RECORDING_SECONDS)
        assert run.returncode == ljspy.OK, errors
        samples = sampled(recording)
        for target in targets:
            while line := target.read_until(b"\n", at_end=""):
                name, *counts, words = line.rstrip("\n").split("\t")
                counts = dict(zip(("naps", "interrupted", "wrong", "early"), map(int, counts)))
                outcome[name] = counts | {"words": words, "process": target.pid, "sampled": samples.get(target.pid, NEVER)}
    finally:
        for target in targets:
            target.stop()


def check_ends(outcome, competitors):
    """Check how naps ended. Returns whether each process, and all together, were sampled enough to show it."""
    processes = {o["process"]: o["sampled"] for o in outcome.values()}
    samples = sum(sampled.samples for sampled in processes.values())
    print(f"{sum(o['naps'] for o in outcome.values())} naps, {samples} samples at {RATE} Hz beside {competitors} spinners")
    for name, o in outcome.items():
        print(f"{name:32}{o['naps']:8} naps, {o['interrupted']} interrupted, {o['wrong']} wrong, {o['early']} early, "
              f"{o['sampled'].samples} samples of {o['sampled'].cpu_s:.2f} s {o['words']}")
    assert outcome
    assert not [
        name for name, o in outcome.items()
        if o["interrupted"] or o["early"] or o["wrong"] > any(word in name for word in SHORT_AT_FIRST)
    ]
    assert not [name for name, o in outcome.items() if o["naps"] < LEAST_NAPS_PER_SECOND * SECONDS]
    return all(is_sampled(*sampled) for sampled in processes.values()) and is_sampled(
        samples, sum(sampled.cpu_s for sampled in processes.values())
    )


@pytest.mark.parametrize("competitors", [0, 2])
def test_calls_end_as_they_would(naps, competitors, tmp_path):
    """Naps with a known end in each call that a stop might change; alone, and where woken threads wait
    for their CPU."""
    library, kinds = naps
    batches = groups(kinds)
    cpu = min(os.sched_getaffinity(0))
    for _ in range(ROUNDS_MAX):
        outcome = {}
        with spinners(competitors, cpu, limit=int(SECONDS + 60) * len(batches)):
            for i in range(0, len(batches), AT_ONCE):
                nap(library, batches[i : i + AT_ONCE], tmp_path, outcome)
        if check_ends(outcome, competitors):
            break
    else:
        pytest.fail(f"too few samples in {ROUNDS_MAX} rounds")
