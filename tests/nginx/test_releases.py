# SPDX-License-Identifier: MIT
"""nginx and its Lua module as several releases of Debian have them: requests, their labels and waits, timers,
dictionaries. LuaJIT of bullseye is LuaJIT's own, with 32-bit references and without exdata."""

import collections
import contextlib
import json
import os
import pathlib
import re
import socket

import pytest

import ljspy
import nginx_server

pytestmark = [
    pytest.mark.usefixtures("built"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the master must be root for its worker to be nobody"),
]

MIB = 1 << 20

# As resty.lock of lua-resty-lock works: it tries, and sleeps.
LOCK = """
local _M = {}
function _M.new(_, name)
	return setmetatable({ dict = ngx.shared[name], step = 0.1 }, { __index = _M })
end
function _M.lock(self, key)
	while not self.dict:add(key, true) do
		ngx.sleep(self.step)
	end
	return 0
end
return _M
"""

WAITING = {  # by route: the waits
    "/sleeps/*": {"sleep"},
    "/asks/*": {"socket receive"},
    "/threads/*": {"sleep", "socket receive"},
    "/coroutines/*": {"sleep"},
    "/proxied/*": {"upstream first byte"},
    "/locks/*": {"lock"},
}


@pytest.fixture(scope="module", params=[None, *nginx_server.OTHER_RELEASES], ids=lambda release: release or "own")
def release(request):
    if request.param:
        try:
            nginx_server.packages.nginx(request.param)
        except nginx_server.packages.Unavailable as reason:
            pytest.skip(f"nginx of {request.param} is not to be had: {reason}")
    return request.param


@pytest.fixture(name="server")
def fixture_server(release):
    with nginx_server.directory_for_workers() as parent, socket.create_server(("127.0.0.1", 0)) as silent:
        directory = parent / "nginx"
        (directory / "resty").mkdir(parents=True)
        (directory / "resty/lock.lua").write_text(LOCK)
        settings = {"release": release, "SILENT": silent.getsockname()[1]}
        with nginx_server.Nginx(directory, nginx_server.template("releases.conf.in"), **settings) as server:
            server.silent, server.release = settings["SILENT"], release
            server.wait_answers("/answers", "/fill")
            yield server


def ask(server, stack, path):
    connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: shop.example.com\r\n\r\n".encode())


@contextlib.contextmanager
def asked(server, routes):
    with contextlib.ExitStack() as stack:
        for route in routes:
            ask(server, stack, route.replace("*", "17"))
        assert ljspy.wait_until(lambda: routes_of(server) == sorted(routes)), \
            (routes_of(server), server.error_log.read_text())
        yield


def requests_of(server, *options):
    (process,) = json.loads(ljspy.run("requests", "-p", server.worker, "--json", *options).stdout)["processes"]
    return process["requests"]


def routes_of(server):
    return sorted(request["route"] for request in requests_of(server))


def recorded(server, output):
    """Wall time by route and wait, and the time of the looks."""
    done = ljspy.run("record", "--requests", "-p", server.worker, "-d", "2s", "-r", "49", "-o", output)
    assert done.returncode == ljspy.OK, done.stderr
    document = json.loads(ljspy.run("report", output, "-f", "json", "-o", "-").stdout)
    times = collections.defaultdict(collections.Counter)
    for sample in document["samples"]:
        frame = document["frames"][document["stacks"][sample["stack"]][-1]]
        if document["functions"][document["stacks"][sample["stack"]] and frame["function"]].get("module") != "nginx":
            frame = document["frames"][document["stacks"][sample["stack"]][0]]
        name = document["functions"][frame["function"]]["name"].removesuffix(" [nginx]")
        times[sample["request"]["route"]][name] += sample["wall_ns"]
    return times


def test_requests_and_what_they_wait_for(server, tmp_path):
    with asked(server, WAITING):
        found = {r["route"]: r for r in requests_of(server)}
        for route, waits in WAITING.items():
            assert found[route]["host"] == "shop.example.com" and found[route]["age_ms"] < 60_000
            if route == "/proxied/*":
                assert found[route]["upstream"]["state"] == "waiting"
                continue
            seen = {coroutine["wait"].split(":")[0] for coroutine in found[route]["lua"] if coroutine["wait"]}
            assert seen >= waits, found[route]
            assert found[route]["phase"] == ("access" if route == "/sleeps/*" else "content")
        assert f"socket receive: 127.0.0.1:{server.silent}" in str(found["/asks/*"]["lua"])
        assert "lock: dogs" in str(found["/locks/*"]["lua"]) and "secret" not in str(found)
        assert 'lock: dogs "secret"' in str(requests_of(server, "--detail"))
        assert "(lock: dogs)" in ljspy.run("requests", "-p", server.worker).stdout
        timers = ljspy.run("timers", "-p", server.worker).stdout
        assert re.search(r"^ +3  ngx\.timer ", timers, re.MULTILINE), timers
        assert re.search(r"^ +\d  coroutine .*/sleeps/\*", timers, re.MULTILINE), timers
        times = recorded(server, tmp_path / "x.ljspy")
    assert set(times) == set(WAITING)
    whole = max(times["/sleeps/*"].values())
    for route, waits in WAITING.items():
        by_kind = collections.Counter()
        for name, ns in times[route].items():
            by_kind[name.split(":")[0]] += ns
        kinds = {kind for kind, ns in by_kind.items() if ns > 0.2 * whole}
        assert kinds == waits, times[route]
        # Light threads share the time of their request.
        assert 0.98 * whole < sum(by_kind.values()) < 1.02 * whole, times
    # A request that runs when its worker is looked at has its stack: what it does there is no lock.
    assert {name for name in times["/locks/*"] if name.startswith("lock")} == {"lock: dogs"}, times["/locks/*"]


def test_requests_that_wait_neither_for_lua_nor_for_their_client(server, tmp_path):
    """One whose answer is sent waits until nginx has mirrored it, one for another that fills the cache."""
    with asked(server, ["/cached/*", "/cached/*", "/mirrored/*"]):
        times = recorded(server, tmp_path / "x.ljspy")
    whole = sum(times["/mirrored/*"].values())
    upstream = f"upstream first byte: 127.0.0.1:{server.silent}"
    assert whole and times["/mirrored/*"][upstream] > 0.9 * whole, times
    for wait in ("cache lock", upstream):
        assert times["/cached/*"][wait] > 0.9 * whole, times


def test_a_worker_beside_processes_that_look_after_a_cache(server, tmp_path):
    """They have connections, too, and ljspy does not know their LuaJIT at once."""
    with asked(server, ["/sleeps/*"]):
        done = ljspy.run("record", "--requests", "--tree", server.master.pid, "-d", "1s", "-o", tmp_path / "x.ljspy")
    assert done.returncode == ljspy.OK and "killed" not in done.stderr, done.stderr
    document = json.loads(ljspy.run("report", tmp_path / "x.ljspy", "-f", "json", "-o", "-").stdout)
    assert {sample["request"]["route"] for sample in document["samples"]} == {"/sleeps/*"}


def test_dictionaries(server):
    (process,) = json.loads(ljspy.run("shdict", "-p", server.worker, "--json").stdout)["processes"]
    zones = {zone["name"]: zone for zone in process["zones"]}
    assert zones["dogs"]["size_bytes"] == 5 * MIB and zones["dogs"]["keys"] == 21


def pools_of(server, *options):
    (process,) = json.loads(ljspy.run("requests", "-p", server.worker, "--json", *options).stdout)["processes"]
    return [(pool["used"], pool["idle"], pool["size"], pool["name"]) for pool in process["pools"]]


def test_pools_of_connections(server):
    assert pools_of(server) == [] and server.get("/keeps") == b"kept"
    size = None if (server.release or nginx_server.RELEASE) == "bullseye" else 7
    peer = f"127.0.0.1:{server.silent}"
    assert {(0, 1, size, peer), (0, 1, size, None)} == set(pools_of(server))
    assert {name for _, _, _, name in pools_of(server, "--detail")} == {peer, "password"}
    with asked(server, ["/asks/*"]):
        assert {(1, 0, size, peer), (0, 1, size, None)} == set(pools_of(server))
        shown = ljspy.run("requests", "-p", server.worker).stdout
    assert re.search(rf"^ +1 +0 +{size or '-'}  {peer}$", shown, re.MULTILINE) and "password" not in shown, shown


def test_cpu_time_by_route(server, tmp_path):
    with server.load("/busy/4711", 20, connections=3, options=["-H", "Host: shop.example.com"]):
        done = ljspy.run("record", "-p", server.worker, "-d", "4s", "-r", "299", "-o", tmp_path / "x.ljspy")
    assert done.returncode == ljspy.OK, done.stderr
    document = json.loads(ljspy.run("report", tmp_path / "x.ljspy", "-f", "json", "-o", "-").stdout)
    named = [sample for sample in document["samples"] if "request" in sample]
    assert len(named) > 8 and len(named) > 0.8 * len(document["samples"])
    # nginx begins a request before it has read the route, and knows that before the Host header: such samples are
    # few, and none is of Lua.
    known, unknown = ([s for s in named if (s["request"]["host"] is None) == missing] for missing in (False, True))
    route, no_route = ("/busy/*", "GET"), ("[unknown request]", None)
    assert {s["request"]["host"] for s in known} == {"shop.example.com"}
    assert {(s["request"]["route"], s["request"]["method"]) for s in known} == {route}
    assert {(s["request"]["route"], s["request"]["method"]) for s in unknown} <= {route, no_route}
    assert {s["vm_state"] for s in unknown} <= {"none"} and len(unknown) < 0.02 * len(document["samples"])
    assert {s["request"].get("status") for s in named} == {None, 202}
    # nginx's own code, before and after Lua, has a request and no phase of Lua.
    assert {s["phase"] for s in named if s["vm_state"] != "none"} == {"content", "log"}
    assert {s["phase"] for s in named if s["vm_state"] == "none"} <= {None}


def test_a_worker_that_waits_for_the_lock_of_a_dictionary(server, tmp_path):
    """The test writes the lock's word, as a process that holds it has done."""
    maps = pathlib.Path(f"/proc/{server.worker}/maps").read_text()
    ranges = [tuple(int(part, 16) for part in found) for found in re.findall(r"^(\w+)-(\w+) rw-s", maps, re.MULTILINE)]
    (begin,) = [begin for begin, end in ranges if end - begin == MIB]
    with asked(server, ["/sleeps/*"]), contextlib.ExitStack() as stack:
        with open(f"/proc/{server.worker}/mem", "r+b", buffering=0) as memory:
            memory.seek(begin)
            memory.write(os.getpid().to_bytes(8, "little"))
        ask(server, stack, "/reads/1")
        assert ljspy.wait_until(lambda: len(requests_of(server)) == 2)
        times = recorded(server, tmp_path / "x.ljspy")
    assert max(times["/reads/*"], key=times["/reads/*"].get) == "lock: cats", times
    assert max(times["/sleeps/*"], key=times["/sleeps/*"].get) == "sleep", times
