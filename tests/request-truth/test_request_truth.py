# SPDX-License-Identifier: MIT
"""A short `make request-truth`: samples name the request that the functions in their stacks are of, and no other."""

import os

import pytest

import ljspy
import request_judge
import request_load

pytestmark = [
    pytest.mark.usefixtures("built"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the master must be root for its worker to be nobody"),
]

REQUESTS = 2000


@pytest.mark.parametrize("jit", ["on", pytest.param("off", marks=pytest.mark.long)])
def test_samples_name_the_request_of_their_stack(tmp_path, jit):
    with request_load.serve(tmp_path / "nginx", jit) as server:
        with request_load.Recording(server, tmp_path / "x.ljspy", ljspy.HIGH_RATE), request_load.Clients(server):
            assert ljspy.wait_until(lambda: request_load.lines_of(server) > REQUESTS, seconds=60, pause=0.1)
        log, sums = request_load.logged(server), request_load.cpu_sums(server)
        samples = request_judge.read(tmp_path / "x.ljspy", server)
    verdict = request_judge.judge(samples, log)
    print(verdict)
    assert len(verdict.wrong) <= 0.001 * verdict.named, verdict.wrong[:10]
    assert verdict.named > 300 and verdict.unknown <= 0.01 * verdict.truths, str(verdict)
    named = {request_judge.label(s["request"]) for s in samples if request_judge.is_asked(s.get("request"))}
    assert {route for route, _ in named} == set(request_load.ROUTES)
    assert {host for _, host in named} == set(request_load.HOSTS)
    assert any(s["request"]["subrequest"] for s in samples if "request" in s)
    timers = [s for s in samples if s["truth"] == "timer"]
    assert timers and "secret" not in str([s["request"] for s in samples if "request" in s])
    for route, time in request_judge.cpu_by_route(samples, sums).items():
        assert time.is_right(0.05), (route, time)
