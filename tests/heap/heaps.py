# SPDX-License-Identifier: MIT
"""What show_heap prints of a heap, and how it differs from what the program tells of itself."""

import collections
import pathlib
import shutil
import subprocess
import sys
from typing import NamedTuple

import pytest

import ljspy

sys.path.append(str(ljspy.ROOT / "tests/layouts"))

import builds  # noqa: E402, pylint: disable=wrong-import-position

HERE = pathlib.Path(__file__).resolve().parent
SHOW_HEAP = ljspy.LJSPY.parent / "tests/heap/show_heap"
GRAPH = HERE / "graph.lua"

# What the graphs tell of; a thread's stack also holds what has no name.
TOLD = ("field", "index", "value", "key", "metatable", "upvalue", "local")

BUILDS = [*(builds.Program(suite, "luajit", "usr/bin/luajit") for suite in builds.packages.SUITES),
          builds.Program("bookworm", "luajit2", "usr/bin/luajit"), builds.LUAJIT_20]

# LuaJIT in other programs, which have objects of their own.
OTHER_BUILDS = [build for build in builds.PROGRAMS
                if isinstance(build, builds.Program) and build.package in ("tarantool", "texlive-binaries")]


class Heap(NamedTuple):
    total: int
    sum: int
    state: str
    attempts: int
    method: str
    uncertain: int
    holds: int
    longest_us: int
    held_bytes: int
    changed_pages: int
    changed_objects: int
    kinds: dict  # by address
    bytes: dict
    edges: dict  # by address: a Counter of (how, name, weak, to)


def parse(text):
    heap, kinds, sizes, edges = None, {}, {}, collections.defaultdict(list)
    for line in text.split("\n"):
        what, *words = line.split("\t")
        if what == "heap":
            heap = words
        elif what == "node":
            kinds[words[0]], sizes[words[0]] = words[1], int(words[2])
        elif what == "edge":
            edges[words[0]].append((words[1], words[2], words[3], words[4]))
    if not heap:
        return None
    total, summed, state, attempts, method, *counts = heap
    return Heap(int(total), int(summed), state, int(attempts), method, *map(int, counts), kinds, sizes, edges)


def run_show_heap(*target):
    done = subprocess.run([SHOW_HEAP, *map(str, target)], capture_output=True, text=True, errors="replace", timeout=60, check=True)
    return done.stdout


def show(*target):
    """The heap; None if it would have to be held for too long."""
    return parse(run_show_heap(*target))


def account(pid, max_pause_us=0):
    """The same without the objects."""
    return show("account", pid, max_pause_us)


def accounts(pid):
    """The same of each VM."""
    return [parse(line) for line in run_show_heap("account", pid, 0).splitlines()]


def gcore(directory, pid):
    if not shutil.which("gcore"):
        pytest.skip("gdb's gcore is not installed")
    subprocess.run(["gcore", "-o", directory / "core", str(pid)], capture_output=True, timeout=60, check=True)


def seen_references(heap, address):
    """An upvalue is between a function and its value; the tables of names are in the list of the program."""
    found = []
    for how, name, weak, to in heap.edges.get(address, []):
        if how == "upvalue" and heap.kinds[to] == "upvalue":
            found += [(how, name, weak, value) for closed, _, _, value in heap.edges.get(to, []) if closed == "closed"]
        elif how in TOLD:
            found.append((how, name, weak, to))
    return collections.Counter(found)


def seen_bytes(heap, address):
    closed = [to for how, _, _, to in heap.edges.get(address, []) if how == "upvalue" and heap.kinds[to] == "upvalue"]
    return heap.bytes[address] + sum(heap.bytes[upvalue] for upvalue in closed)


def object_at(heap, address, kind):
    """The object at an address as tostring() writes it: of userdata and cdata, that of their contents."""
    headers = {"userdata": (24, 48), "cdata": (8, 16)}.get(kind, (0,))
    candidates = [f"{int(address, 16) - header:x}" for header in headers]
    return next((found for found in candidates if heap.kinds.get(found) == kind), address)


def wrong(heap, told):
    """What differs from what the program has told, in words."""
    objects, references = {}, collections.defaultdict(list)
    for line in told.splitlines():
        what, address, *words = line.split("\t")
        if what == "object":
            objects[address] = words
        else:
            references[address].append(tuple(words))
    places = {address: object_at(heap, address, kind) for address, (kind, _) in objects.items()}
    objects = {places[address]: words for address, words in objects.items()}
    references = {places[address]: [(*words, places.get(to, to)) for *words, to in found]
                  for address, found in references.items()}
    faults = []
    for address, (kind, size) in objects.items():
        if heap.kinds.get(address) != kind:
            faults.append(f"{address} is a {kind}, not {heap.kinds.get(address)}")
            continue
        if int(size) >= 0 and seen_bytes(heap, address) != int(size):
            faults.append(f"{kind} {address} has {size} bytes, not {seen_bytes(heap, address)}")
        seen, wanted = seen_references(heap, address), collections.Counter(references.get(address, []))
        if seen != wanted:
            faults.append(f"{kind} {address}: lacks {dict(wanted - seen)}, has {dict(seen - wanted)}")
    return faults


def run_graph(run, directory, seed, count, jit, state):
    """The heap of a program with a random graph, and what it tells of itself."""
    path = directory / "graph"
    path.unlink(missing_ok=True)
    with ljspy.Target([*run.command, *jit, GRAPH, seed, count, path, state]) as target:
        target.wait_ready()
        ljspy.wait_until(lambda: ljspy.sleeps(target.pid))
        return show(target.pid), path.read_text(encoding="latin-1")
