# SPDX-License-Identifier: MIT
"""A server that takes profiles in the ways of Pyroscope and Parca, or does not."""

import base64
import contextlib
import gzip
import http.server
import json
import ssl
import threading
import urllib.parse
from typing import NamedTuple

PUSH, INGEST, WRITE_RAW = "/push.v1.PusherService/Push", "/ingest", "/api/profiles/writeraw"


class Profile(NamedTuple):
    labels: dict
    bytes: bytes
    query: dict
    headers: dict
    body: bytes


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of each field of a protobuf message."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            assert key & 7 == 2, key
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        yield key >> 3, value


class Pprof:
    """What of a profile the tests judge."""

    def __init__(self, compressed):
        parts = list(fields(gzip.decompress(compressed)))
        self.strings = [value.decode() for number, value in parts if number == 6]
        one = {number: value for number, value in parts if number in (9, 10, 12)}
        self.time_ns, self.duration_ns, self.period = one[9], one.get(10, 0), one.get(12, 0)
        self.types = [tuple(self.strings[n] for _, n in fields(value)) for number, value in parts if number == 1]
        self.functions = {self.strings[dict(fields(value))[2]] for number, value in parts if number == 5}
        self.samples, self.labels = [], set()
        for value in (value for number, value in parts if number == 2):
            values = []
            for number, packed in fields(value):
                if number == 2:
                    at = 0
                    while at < len(packed):
                        item, at = varint(packed, at)
                        values.append(item)
                if number == 3:
                    self.labels.add(self.strings[dict(fields(packed))[1]])
            self.samples.append(values)

    @property
    def count(self):
        return sum(values[0] for values in self.samples)

    @property
    def cpu_ns(self):
        return sum(values[1] for values in self.samples)


def parse_name(name):
    """The labels in the name of Pyroscope's older protocol: service{key=value,...}."""
    service, _, rest = name.partition("{")
    assert rest.endswith("}")
    return {"service": service} | dict(pair.split("=") for pair in rest[:-1].split(","))


def decode(path, query, headers, body):
    if path == INGEST:
        labels = parse_name(query["name"])
        return Profile(labels, body, query, headers, body)
    series, = json.loads(body)["series"]
    labels = series["labels"] if path == PUSH else series["labels"]["labels"]
    sample, = series["samples"]
    names = [label["name"] for label in labels]
    assert len(names) == len(set(names))
    return Profile({label["name"]: label["value"] for label in labels},
                   base64.b64decode(sample["rawProfile"], validate=True), query, headers, body)


class Server:
    """Answers with .status, and not before .going_on is set; .profiles are those it took, .refused the
    others. It can go away and return."""

    def __init__(self, port=0, certificate=None):
        self.status, self.headers, self.message = 200, {}, b"{}"
        self.profiles, self.refused, self.certificate = [], [], certificate
        self.breaks_off = False  # its answers do, after the headers
        self.fails_with = lambda profile: False  # its answer to such a profile is 500
        self.needs = None  # what the header Authorization is to be
        self.waiting = 0
        self.going_on = threading.Event()
        self.going_on.set()
        self.port = port
        self.start()

    @property
    def url(self):
        return f"http{'s' if self.certificate else ''}://127.0.0.1:{self.port}"

    def start(self):
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                split = urllib.parse.urlsplit(self.path)
                body = self.rfile.read(int(self.headers["Content-Length"]))
                query = {key: value for key, (value,) in urllib.parse.parse_qs(split.query).items()}
                server.waiting += 1
                server.going_on.wait(60)
                server.waiting -= 1
                status = server.status
                if server.needs and self.headers["Authorization"] != server.needs:
                    status = 401
                if status == 200 and split.path not in (PUSH, INGEST, WRITE_RAW):
                    status = 404
                taken = decode(split.path, query, dict(self.headers), body) if status != 404 else body
                if status == 200 and server.fails_with(taken):
                    status = 500
                (server.profiles if status == 200 else server.refused).append(taken)
                self.send_response(status)
                for name, value in server.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(server.message) + server.breaks_off))
                self.close_connection |= server.breaks_off
                self.end_headers()
                self.wfile.write(server.message)

            def log_message(self, *_):
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.http = Quiet(("127.0.0.1", self.port), Handler)
        self.port = self.http.server_address[1]
        if self.certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate)
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def stop(self):
        self.going_on.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@contextlib.contextmanager
def serving(**options):
    server = Server(**options)
    try:
        yield server
    finally:
        server.stop()
