# SPDX-License-Identifier: MIT
"""What requests wait for is seen whatever other coroutines there are: ended ones, many, those of other VMs."""

import collections
import contextlib
import json
import os
import socket

import pytest

import ljspy
import nginx_server

pytestmark = [
    pytest.mark.usefixtures("built"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the master must be root for its worker to be nobody"),
]

TEMPLATE = nginx_server.template("coroutines.conf.in")


@contextlib.contextmanager
def started(directory, cache="on"):
    with nginx_server.Nginx(directory / "nginx", TEMPLATE, CACHE=cache) as server:
        server.wait_answers("/answers")
        yield server


@contextlib.contextmanager
def asked(server, *paths):
    """Ask for these, and wait until nginx works on all."""
    with contextlib.ExitStack() as stack:
        for path in paths:
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: a.example\r\n\r\n".encode())
        assert ljspy.wait_until(lambda: len(requests_of(server)) == len(paths)), requests_of(server)
        yield


def requests_of(server):
    (process,) = json.loads(ljspy.run("requests", "-p", server.worker, "--json").stdout)["processes"]
    return process["requests"]


def waits_of(server):
    """By route, what the coroutines of each request wait for."""
    return {r["route"]: sorted(lua["wait"] for lua in r["lua"]) for r in requests_of(server)}


def recorded_waits(server, directory):
    """By route, the names of waits that a recording has."""
    recording = directory / "waits.ljspy"
    ljspy.run("record", "--requests", "-p", server.worker, "-d", "1s", "-o", recording)
    document = json.loads(ljspy.run("report", recording, "-f", "json", "-o", "-").stdout)
    waits = collections.defaultdict(set)
    for sample in document["samples"]:
        leaf = document["frames"][document["stacks"][sample["stack"]][-1]]
        waits[sample["request"]["route"]].add(document["functions"][leaf["function"]]["name"].removesuffix(" [nginx]"))
    return dict(waits)


def test_beside_coroutines_that_were_collected(tmp_path):
    with started(tmp_path) as server, asked(server, "/sleeps", "/collected"):
        assert waits_of(server) == {"/sleeps": ["sleep"], "/collected": ["sleep"]}
        assert recorded_waits(server, tmp_path) == {"/sleeps": {"sleep"}, "/collected": {"sleep"}}


def test_beside_coroutines_that_have_ended(tmp_path):
    with started(tmp_path) as server, asked(server, "/ended"):
        assert waits_of(server) == {"/ended": ["light thread", "sleep"]}
        assert "more coroutines" not in ljspy.run("requests", "-p", server.worker).stdout
        assert recorded_waits(server, tmp_path) == {"/ended": {"sleep"}}


def test_more_than_are_shown_are_counted(tmp_path):
    with started(tmp_path) as server, asked(server, "/many"):
        (request,) = requests_of(server)
        assert len(request["lua"]) + request["more_coroutines"] == 81
        assert f"and {request['more_coroutines']} more coroutines" in ljspy.run("requests", "-p", server.worker).stdout


def test_a_light_thread_that_goes_on_when_the_first_coroutine_has_ended(tmp_path):
    with started(tmp_path) as server, asked(server, "/leaves"):
        assert waits_of(server) == {"/leaves": ["sleep"]}
        for _ in range(3):  # the module makes the coroutine that has ended another request's first one
            server.get("/answers")
        assert waits_of(server) == {"/leaves": ["sleep"]}
        assert recorded_waits(server, tmp_path) == {"/leaves": {"sleep"}}


@pytest.mark.skipif(nginx_server.IS_OLD, reason="lua-nginx-module 0.10.13 has no ngx.run_worker_thread")
def test_beside_the_vm_of_a_thread_pool(tmp_path):
    with started(tmp_path) as server:
        assert {server.get("/elsewhere") for _ in range(2)} == {b"ELSEWHERE"}
        with asked(server, "/sleeps", "/many"):
            assert recorded_waits(server, tmp_path) == {"/sleeps": {"sleep"}, "/many": {"sleep"}}


def test_requests_with_vms_of_their_own(tmp_path):
    with started(tmp_path, cache="off") as server, asked(server, "/sleeps", "/many", "/sleeps", "/ended"):
        assert [set(waits) for waits in waits_of(server).values()] == [{"sleep"}, {"sleep"}, {"light thread", "sleep"}]
        assert recorded_waits(server, tmp_path) == {"/sleeps": {"sleep"}, "/many": {"sleep"}, "/ended": {"sleep"}}
