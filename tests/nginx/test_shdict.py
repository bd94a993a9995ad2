# SPDX-License-Identifier: MIT
"""`ljspy shdict` shows the memory that nginx's workers share, against what the dictionaries say themselves."""

import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import time

import pytest

import ljspy
import nginx_server

pytestmark = [
    pytest.mark.usefixtures("built"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the master must be root for its worker to be nobody"),
]

PAGE, MIB = 4096, 1 << 20


@pytest.fixture
def nginx(tmp_path):
    with nginx_server.Nginx(tmp_path / "nginx", nginx_server.template("timers.conf.in"), SILENT=1) as server:
        server.wait_answers("/answers")
        yield server


def zones_of(server):
    done = ljspy.run("shdict", "-p", server.worker, "--json")
    assert done.returncode == ljspy.OK, done.stderr
    (process,) = json.loads(done.stdout)["processes"]
    return {zone["name"]: zone for zone in process["zones"]}


def space(server):
    """The free bytes of dogs and the number of its keys that have not expired, as it says."""
    return tuple(map(int, server.get("/space").split()))


@pytest.mark.skipif(nginx_server.IS_OLD, reason="lua-nginx-module 0.10.13 has no free_space() without lua-resty-core")
def test_keys_and_space_as_the_dictionary_says(nginx):
    for count, seconds in ((0, 0), (100, 1000), (700, 1000)):
        assert nginx.get(f"/fill?count={count}&seconds={seconds}") == b"filled"
        free, keys = space(nginx)
        zones = zones_of(nginx)
        assert {name: zone["size_bytes"] for name, zone in zones.items()} == {
            "dogs": 5 * MIB, "cats": 12 * MIB, "limits": 1 * MIB}
        dogs = zones["dogs"]
        assert keys == count and (dogs["keys"], dogs["expired"], dogs["exact"]) == (keys, 0, True)
        assert dogs["free_pages"] * PAGE == free and dogs["used_bytes"] == dogs["usable_bytes"] - free
        assert dogs["lock"] is None
    assert zones["limits"]["keys"] is None  # is no dictionary


def test_expired_keys_are_counted(nginx):
    nginx.get("/fill?count=300&seconds=1000")
    nginx.get("/fill?count=50&seconds=0.01")
    time.sleep(0.1)
    dogs = zones_of(nginx)["dogs"]
    assert (dogs["keys"], dogs["expired"]) == (300, 50)


def test_the_holder_of_a_lock(nginx):
    """The test writes the lock's word, as a worker that holds it has done."""
    maps = pathlib.Path(f"/proc/{nginx.worker}/maps").read_text()
    ranges = [tuple(int(part, 16) for part in found) for found in re.findall(r"^(\w+)-(\w+) rw-s", maps, re.MULTILINE)]
    (begin,) = [begin for begin, end in ranges if end - begin == 5 * MIB]
    with ljspy.Target(["sleep", "60"], limit=60) as gone:
        pid = gone.pid

    def hold(holder):
        with open(f"/proc/{nginx.worker}/mem", "r+b", buffering=0) as memory:
            memory.seek(begin)
            memory.write(holder.to_bytes(8, "little"))

    nginx.get("/fill?count=1&seconds=1000")
    for holder, alive, name in ((nginx.worker, True, nginx_server.COMM), (pid, False, None)):
        hold(holder)
        assert zones_of(nginx)["dogs"]["lock"] == {
            "holder": holder, "pid": holder if alive else None, "alive": alive, "name": name}
        shown = ljspy.run("shdict", "-p", nginx.worker).stdout
        assert f"locked by process {holder}" in shown and ("DEAD" in shown) == (not alive)
    hold(0)
    assert zones_of(nginx)["dogs"]["lock"] is None


def test_workers_that_come_later_are_shown(nginx, tmp_path):
    """A reload takes the workers away, one after the other, and begins others."""
    shown = tmp_path / "shown.json"

    def pids():
        return [int(pid) for pid in re.findall(r'"pid": (\d+)', shown.read_text())]

    with open(shown, "w") as out, subprocess.Popen(
            [ljspy.LJSPY, "shdict", "--tree", str(nginx.master.pid), "--watch", "--json"], stdout=out, text=True,
            stderr=subprocess.PIPE) as watching:
        for _ in range(2):
            old = nginx.worker
            assert ljspy.wait_until(lambda: old in pids()), (old, pids())
            os.kill(nginx.master.pid, signal.SIGHUP)
            assert ljspy.wait_until(lambda: nginx.workers and old not in nginx.workers)
        assert ljspy.wait_until(lambda: nginx.worker in pids()), (nginx.worker, pids())
        watching.send_signal(signal.SIGINT)
        errors = watching.communicate(timeout=20)[1]
    assert (watching.returncode, errors) == (ljspy.OK, "")


@pytest.mark.parametrize("term", ("xterm", "dumb", None))
def test_only_a_terminal_that_can_is_cleared(nginx, term):
    """Emacs and others show the bytes for it as text."""
    ours, theirs = pty.openpty()
    settings = {name: text for name, text in os.environ.items() if name != "TERM"} | ({"TERM": term} if term else {})
    with subprocess.Popen([ljspy.LJSPY, "shdict", "-p", str(nginx.worker), "--watch"], stdout=theirs, env=settings) as watching:
        os.close(theirs)
        shown = b""
        while shown.count(b"dogs") < 2 or not shown.endswith(b"\n"):
            shown += os.read(ours, 65536)
        watching.send_signal(signal.SIGINT)
        watching.wait(timeout=20)
    os.close(ours)
    assert (b"\33[H\33[J" in shown) == (term == "xterm"), shown
