# SPDX-License-Identifier: MIT
"""Zones that nginx's processes share, against what shared dictionaries say of themselves."""

import json
import pathlib
import re
import shutil
import sys
import tempfile

import pytest

import ljspy

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "nginx"))
import nginx_server  # noqa: E402

pytestmark = pytest.mark.usefixtures("built")

KIB, MIB = 1 << 10, 1 << 20


@pytest.fixture
def server():
    """nginx with two workers. Every user can access its directory."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="ljspy-memory-"))
    path.chmod(0o777)
    with nginx_server.Nginx(path / "nginx", nginx_server.template("zones.conf.in"), WORKERS=2) as nginx:
        nginx.wait_answers("/space")
        assert ljspy.wait_until(lambda: len(nginx.workers) == 2)
        yield nginx
    shutil.rmtree(path)


def memory(*target):
    done = ljspy.run("memory", "--json", *target)
    assert done.returncode == ljspy.OK, done.stderr
    return json.loads(done.stdout)["processes"]


def space(server):
    """Capacity and free space by dictionary, as the dictionaries say."""
    lines = server.get("/space").decode().splitlines()
    return {name: (int(capacity), int(free)) for name, capacity, free in map(str.split, lines)}


def zones_of(process):
    return {zone["name"]: zone for zone in process["zones"]}


def judge(process, truth):
    zones = zones_of(process)
    assert set(zones) == {"dogs", "cats", "limits"}
    assert zones["limits"]["size_bytes"] == 1 * MIB
    for name, (capacity, free) in truth.items():
        assert zones[name]["size_bytes"] == capacity
        # A worker that has never touched a zone does not have its header in memory.
        assert zones[name]["free_bytes"] in (free, None)
    assert sum(row["rss_bytes"] for row in process["rows"]) == process["rss_bytes"]


def test_zones_as_they_fill(server):
    for count in (0, 100, 2000):
        assert server.get(f"/fill?count={count}") == b"filled\n"
        truth = space(server)
        processes = memory("--tree", server.master.pid)
        assert {process["pid"] for process in processes} == {server.master.pid, *server.workers}
        for process in processes:
            judge(process, truth)
        # The worker that has filled it knows, and the master, which has made it.
        for name in truth:
            assert [zones_of(process)[name]["free_bytes"] for process in processes].count(truth[name][1]) >= 1
        assert [zones_of(process)["dogs"]["free_bytes"] for process in processes].count(truth["dogs"][1]) >= 2
    # The pages of the values are in one worker or another.
    used = truth["dogs"][0] - truth["dogs"][1]
    assert used > 2 * MIB
    rows = [row for process in processes for row in process["rows"] if row["kind"] == "zone" and row["name"] == "dogs"]
    assert sum(row["rss_bytes"] for row in rows) > 2 * MIB
    # Pages that several processes have count once.
    assert sum(row["pss_bytes"] for row in rows) <= truth["dogs"][0]


def test_one_worker_as_text(server):
    server.get("/fill?count=500")
    truth = space(server)["dogs"]
    texts = [ljspy.run("memory", "-p", pid).stdout for pid in server.workers]
    expected = f"zone dogs: {truth[0] / KIB:.1f} KiB, "
    assert any(expected in text and f"{truth[1] / KIB:.1f} KiB free" in text for text in texts)
    for text in texts:
        assert f"zone dogs: {truth[0] / KIB:.1f} KiB" in text
        # The configuration's pool has the size that nginx asks for at least: 16 KiB.
        size = re.search(r"nginx's configuration: ([\d.]+) KiB in its pool", text)
        assert float(size[1]) >= 16
        assert "pools of connections and requests cannot be told apart" in text
        assert re.search(r"Lua heap, VM 0x", text)
