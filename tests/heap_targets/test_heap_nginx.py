# SPDX-License-Identifier: MIT
"""`ljspy heap` on Debian's nginx with lua-resty-core: idle, under load, and while it leaks."""

import json
import pathlib
import re
import shutil
import socket
import sys
import tempfile

import pytest

import ljspy

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / name) for name in ("heap", "nginx")]
import heaps as heap_truth  # noqa: E402
import nginx_server  # noqa: E402

pytestmark = pytest.mark.usefixtures("built")

LEAKY = HERE / "leaky.lua"
CONFIGURATION = (HERE / "heap.conf.in").read_text()
COUNT = 2000
SCREEN_LINES = 40


def line_of(text, mark):
    (number,) = [number for number, line in enumerate(text.splitlines(), 1) if line.rstrip().endswith(f"-- @{mark}")]
    return number


def place(mark):
    return f"leaky.lua:{line_of(LEAKY.read_text(), mark)}"


@pytest.fixture
def server():
    """Returns a function that starts nginx with as many workers. Every user can access its directory."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="ljspy-heap-"))
    path.chmod(0o777)
    files = path / "lua"
    files.mkdir()
    shutil.copy(LEAKY, files)
    started = []

    def start(workers):
        nginx = nginx_server.Nginx(path / "nginx", CONFIGURATION, WORKERS=workers, FILES=files)
        started.append(nginx)
        nginx.wait_answers("/work")
        assert ljspy.wait_until(lambda: len(nginx.workers) == workers)
        return nginx

    yield start
    for nginx in started:
        nginx.__exit__()
    shutil.rmtree(path)


def heaps(*target, statuses=(ljspy.OK,)):
    done = ljspy.run("heap", *target, "-f", "json", "-o", "-")
    assert done.returncode in statuses, done.stderr
    return json.loads(done.stdout)["processes"], done


def vm_of(process):
    (vm,) = process["vms"]
    return vm


def judge(process):
    """The sum is gc.total, or the difference is told; all paths are below what there is."""
    vm = vm_of(process)
    assert vm["difference"] == vm["gc_total"] - vm["sum"]
    assert vm["sum"] == sum(row["bytes"] for row in vm["objects"])
    assert all(0 < row["retained"] <= vm["sum"] for row in vm["paths"])
    return vm


def test_master_and_idle_workers(server):
    nginx = server(2)
    for pid in nginx.workers:
        ljspy.sleeps(pid)
    processes, _ = heaps("--tree", nginx.master.pid)
    assert {process["pid"] for process in processes} == {nginx.master.pid, *nginx.workers}
    for process in processes:
        vm = judge(process)
        assert vm["difference"] == 0 and vm["held"]["times"] == 0
        assert not any(vm["uncertain"].values())
        assert any(row["module"] == "resty/core/ctx" for row in vm["modules"])
        assert any(re.match(r'package\.loaded\["resty\.core', row["path"]) for row in vm["paths"])


def test_a_busy_worker(server):
    nginx = server(1)
    with nginx.load("/work", ljspy.WORK_SECONDS, connections=16):
        for _ in range(3):
            used = ljspy.cpu_ns(nginx.worker)
            assert ljspy.wait_until(lambda: ljspy.cpu_ns(nginx.worker) > used + 50e6)
            # A process on a full machine is held for as long as the kernel likes.
            (process,), done = heaps("-p", nginx.worker, "--max-pause", "10s", statuses=(ljspy.OK, ljspy.WITH_ERRORS))
            vm = judge(process)
            assert (done.returncode == ljspy.OK) == (vm["difference"] == 0)
    assert any("lrucache" in row["module"] for row in vm["modules"])


def test_requests_that_wait(server):
    nginx = server(1)
    waiting = [socket.create_connection(("127.0.0.1", nginx.port)) for _ in range(5)]
    for connection in waiting:
        connection.sendall(b"GET /parked HTTP/1.0\r\n\r\n")
    begins = line_of(CONFIGURATION, "parked")
    stands = f"main chunk content_by_lua(nginx.conf:{begins}):{line_of(CONFIGURATION, 'sleeps') - begins + 1}"

    def coroutines():
        ljspy.sleeps(nginx.worker)
        (process,), _ = heaps("-p", nginx.worker)
        vm = judge(process)
        assert vm["difference"] == 0
        return vm, [row for row in vm["coroutines"] if row["at"] == stands]

    assert ljspy.wait_until(lambda: sum(row["count"] for row in coroutines()[1]) == len(waiting))
    vm, (parked,) = coroutines()
    # Each keeps 200,000 bytes alive by a local; the context, of 100,000, belongs to its request.
    assert 5 * 200000 < parked["retained"] < 5 * 250000
    paths = {row["path"]: row for row in vm["paths"]}
    held = f'local "held" of {stands.rsplit(":", 1)[0]}'
    assert 5 * 200000 < paths[held]["retained"] < 5 * 210000
    contexts = [row for path, row in paths.items() if re.fullmatch(r"registry\.ngx_lua_ctx_tables\[\d+\]\.rows", path)]
    assert len(contexts) == 5 and all(100000 < row["retained"] < 110000 for row in contexts)
    for connection in waiting:
        connection.close()


def test_a_core_of_a_worker(server, tmp_path):
    nginx = server(1)
    nginx.get("/leak?count=500")
    ljspy.sleeps(nginx.worker)
    (live,), _ = heaps("-p", nginx.worker)
    heap_truth.gcore(tmp_path, nginx.worker)
    (core,), _ = heaps("--core", tmp_path / f"core.{nginx.worker}")
    of_core, of_live = judge(core), judge(live)
    assert of_core["difference"] == 0 and of_core["held"]["method"] == "core"
    for part in ("gc_total", "objects", "paths", "modules", "coroutines", "cdata"):
        assert of_core[part] == of_live[part], part


@pytest.fixture
def leaked(server, tmp_path):
    """Heaps of a worker before and after it leaks as much again."""
    nginx = server(1)
    for name in ("a.heap", "b.heap"):
        total = float(nginx.get(f"/leak?count={COUNT}"))
        ljspy.sleeps(nginx.worker)
        done = ljspy.run("heap", "-p", nginx.worker, "-o", tmp_path / name)
        assert done.returncode == ljspy.OK, done.stderr
    assert total > 2 * COUNT * 200
    return tmp_path


def first_screen(*arguments):
    done = ljspy.run(*arguments)
    assert done.returncode == ljspy.OK, done.stderr
    return "\n".join(done.stdout.splitlines()[:SCREEN_LINES])


def test_leaks_have_file_and_line_on_the_first_screen(leaked):
    report = first_screen("report", leaked / "b.heap")
    growth = first_screen("diff", leaked / "a.heap", leaked / "b.heap")
    for screen, count in ((report, f"{2 * COUNT:,}"), (growth, f"+{COUNT}")):
        for names in (('"cache" of function lookup', "leaky.lua:9"),
                      (f"{place('closure')}>",),
                      ('"waiting" of function accept', f"{place('serve')}>"),
                      ("cdata struct reading", "leaky.lua:")):
            found = [line for line in screen.splitlines() if all(name in line for name in names)]
            assert found, (names, screen)
            assert any(count in line for line in found), (names, found)
