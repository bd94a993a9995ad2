# SPDX-License-Identifier: MIT
"""Which lines block an event loop, and at which lines requests wait."""

import json
import os
import pathlib
import re
import socket
import threading
import time

import pytest

import ljspy
import nginx_server
import stacks

pytestmark = pytest.mark.usefixtures("built")

PROGRAM = pathlib.Path(__file__).resolve().parent / "turns.lua"
BLOCKED_MS = 500


def record(directory, *arguments):
    """Record with --blocked. Returns the run, the figures on long turns, and the recorded stacks."""
    arguments = ["-o", directory / "blocked.folded", "--stats", directory / "stats.json", *arguments]
    result = ljspy.run("record", "--blocked", *arguments)
    assert result.returncode == ljspy.OK, result.stderr
    found = json.loads((directory / "stats.json").read_text())["blocked"]
    return result, found, stacks.parse_folded((directory / "blocked.folded").read_text())


def assert_found_first(found, samples, line):
    """The blocking line comes first of all lines, with its time."""
    first = found["lines"][0]
    assert first["line"] == line and first["doing"].startswith("os.execute")
    assert first["turns"] >= 1
    assert found["turn_ms"]["max"] + found["slack_ms"] >= BLOCKED_MS
    assert sum(step["turns"] for step in found["histogram"]) == found["long_turns"]
    assert ljspy.weight_of(samples) / 1000 == pytest.approx(found["long_ms"], abs=0.1)
    assert any("os.execute" in frame for sample in samples for frame in sample.frames)


def test_blocking_line_of_a_loop_is_found_first(tmp_path):
    result, found, samples = record(tmp_path, "--", ljspy.luajit("luajit"), PROGRAM, 3)
    line = int(result.stdout)
    assert_found_first(found, samples, line)
    assert f"turns.lua:{line}: os.execute" in result.stderr


CONFIG = """
daemon off;
pid @DIRECTORY@/nginx.pid;
error_log @DIRECTORY@/error.log info;
load_module @PACKAGES@/libnginx-mod-http-ndk/usr/lib/nginx/modules/ndk_http_module.so;
load_module @PACKAGES@/libnginx-mod-http-lua/usr/lib/nginx/modules/ngx_http_lua_module.so;
user nobody nogroup;
events { worker_connections 64; }
http {
	access_log off;
	client_body_temp_path body;
	proxy_temp_path proxy;
	fastcgi_temp_path fastcgi;
	uwsgi_temp_path uwsgi;
	scgi_temp_path scgi;
	lua_package_path "@PACKAGES@/lua-resty-core/usr/share/lua/5.1/?.lua;@PACKAGES@/lua-resty-lrucache/usr/share/lua/5.1/?.lua;;";
	server {
		listen 127.0.0.1:@PORT@;
		location /quick { content_by_lua_block {
			ngx.sleep(0.002)
			ngx.print(#tostring(ngx.var.args))
		} }
		location /blocks { content_by_lua_block {
			local begin = 0
			os.execute("sleep 0.5")
			ngx.print("done")
		} }
		location /waits {
			content_by_lua_block {
				local upstream = ngx.socket.tcp()
				assert(upstream:connect("127.0.0.1", @UPSTREAM@))
				ngx.print((upstream:receive()))
			}
		}
	}
}
"""


as_master = pytest.mark.skipif(os.geteuid() != 0, reason="the master must be root for its worker to be nobody")


@as_master
def test_blocking_line_of_nginx_is_found_first(tmp_path):
    with nginx_server.Nginx(tmp_path / "nginx", CONFIG, UPSTREAM=1) as server:
        server.wait_answers("/quick", "/blocks")
        asked, over = [], threading.Event()

        def ask():
            while not over.is_set():
                server.get("/quick")
                server.get("/blocks")
                asked.append(1)

        client = threading.Thread(target=ask)
        client.start()
        try:
            _, found, samples = record(tmp_path, "-p", server.worker, "-d", "3s")
        finally:
            over.set()
            client.join()
    assert_found_first(found, samples, 3)
    assert found["lines"][0]["phase"] == "content"
    assert found["lines"][0]["turns"] <= len(asked) + 1    # nginx's clock distinguishes its turns


def answer_slowly(listener):
    """A slow upstream server; ends when its socket is closed."""
    try:
        while True:
            connection, _ = listener.accept()
            with connection:
                time.sleep(0.25)
                connection.sendall(b"done\n")
    except OSError:
        pass


@as_master
def test_requests_wait_at_a_line_of_their_phase(tmp_path):
    recording = tmp_path / "waits.ljspy"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        upstream = threading.Thread(target=answer_slowly, args=[listener])
        upstream.start()
        with nginx_server.Nginx(tmp_path / "nginx", CONFIG, UPSTREAM=listener.getsockname()[1]) as server:
            server.wait_answers("/waits")
            with server.load("/waits", 4, connections=2):
                result = ljspy.run("record", "--coroutines", "-d", "3s", "-o", recording, "-p", server.worker)
        listener.shutdown(socket.SHUT_RDWR)
    upstream.join()
    assert result.returncode == ljspy.OK, result.stderr
    result = ljspy.run("report", recording, "-f", "folded", "--by", "phase")
    waits = [line for line in result.stdout.splitlines() if "receive [" in line]
    assert waits and all(re.match(r"content;(main chunk |function <)content_by_lua\(nginx.conf:\d+\)", wait) for wait in waits), result.stdout
