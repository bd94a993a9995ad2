# SPDX-License-Identifier: MIT
"""nginx reuses the memory of requests. A coroutine that outlives its request, or has not
begun yet, has no phase; every other one has its own request's."""

import collections
import json
import os
import time

import pytest

import ljspy
import nginx_server

pytestmark = [
    pytest.mark.usefixtures("built"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the master must be root for its worker to be nobody"),
]

TEMPLATE = nginx_server.template("churn.conf.in")
WAITS = {f"waits_in_{phase}": phase for phase in ("rewrite", "access", "content", "timer")}
FUNCTIONS = (*WAITS, "begins_late", "left_behind")
DUMPS_MIN, DUMPS_MAX = 5, 25


@pytest.fixture
def nginx(tmp_path):
    with nginx_server.Nginx(tmp_path / "nginx", TEMPLATE) as server:
        server.wait_answers("/short", "/long")
        yield server


def firstline_of(function):
    """The function's first line, counted from the beginning of the init_by_lua block."""
    lines = TEMPLATE.splitlines()
    block = next(n for n, line in enumerate(lines) if "init_by_lua_block" in line)
    return next(n for n, line in enumerate(lines[block:], 1) if line.strip().startswith(f"function {function}("))


def phases_seen(pid):
    """How many coroutines are in which (function, phase), over several dumps."""
    names = {firstline_of(name): name for name in FUNCTIONS}
    seen = collections.Counter()
    for done in range(DUMPS_MAX):
        if done >= DUMPS_MIN and {name for name, _ in seen}.issuperset(FUNCTIONS):
            break
        dumped = json.loads(ljspy.run("dump", "-p", pid, "--json").stdout)
        for group in dumped["processes"][0]["vms"][0]["groups"]:
            inside = [names.get(frame["firstline"]) for frame in group["frames"]
                      if (frame["file"] or "").startswith("init_by_lua")]
            function = next(filter(None, inside), None)
            seen[function, group["phase"]] += group["count"]
        time.sleep(0.2)
    return seen


def test_no_coroutine_has_the_phase_of_another_request(nginx):
    with nginx.load("/short", 60, connections=8) as short, nginx.load("/long", 60, connections=16) as long:
        time.sleep(1)
        seen = phases_seen(nginx.worker)
        short.stop()
        long.stop()
    assert nginx.error_log.read_text() == ""
    print(seen)
    for function, phase in WAITS.items():
        phases = {shown: count for (name, shown), count in seen.items() if name == function}
        assert set(phases) == {phase}, (function, phases)
    late = {shown: count for (name, shown), count in seen.items() if name == "begins_late"}
    assert set(late) == {None} and late[None] > 100, late
    left = {shown for name, shown in seen if name == "left_behind"}
    # lua-nginx-module 0.10.13 ends a request's coroutines with it: they are dead, without frames.
    outlive = set() if nginx_server.IS_OLD else {None}
    assert left and outlive <= left <= {"content", None}, left
