# SPDX-License-Identifier: MIT
"""make request-truth: do samples name the right request?

Records an nginx under load, with and without compiled code, and those of other releases: the CPU time, and all
requests in flight. Prints what
its samples name beside what their stacks, nginx's log and the CPU time that Lua measures say. Fails if more than a
thousandth is wrong, if too few name a request, or if times are not those of nginx beyond the noise of samples.

    measure_requests.py REQUESTS [DOCUMENT]

REQUESTS in each run. DOCUMENT has a table to write.
"""

import pathlib
import sys
import tempfile
import time

import request_judge
import request_load
from request_load import ljspy

import written

CPU_RATE, REQUESTS_RATE = 999, 499
WRONG_MAX, UNKNOWN_MAX = 0.001, 0.01
TIME_SHARE = 0.03  # besides the noise
NOISE_MAX = 0.15  # of all routes together: more than that tells nothing
UPSTREAMS, UPSTREAM_SECONDS = 4, 6
RUNS = [("JIT on", "on", None), ("JIT off", "off", None),
        *((release, "on", release) for release in request_load.nginx_server.OTHER_RELEASES)]


def record(server, output, rate, options, requests):
    """A recording of so many requests, all of which begin and end in it."""
    until = request_load.lines_of(server) + requests
    with request_load.Recording(server, output, rate, options), request_load.Clients(server):
        assert ljspy.wait_until(lambda: request_load.lines_of(server) >= until, seconds=250, pause=0.2)
    return request_judge.read(output, server)


def cpu(server, directory, requests):
    samples = record(server, directory / "cpu.ljspy", CPU_RATE, (), requests)
    log, sums = request_load.logged(server), request_load.cpu_sums(server)
    return request_judge.judge(samples, log), request_judge.cpu_by_route(samples, sums), len(log)


def wall(server, directory, requests):
    before = request_load.logged(server)
    samples = record(server, directory / "wall.ljspy", REQUESTS_RATE, ("--requests",), requests)
    log = {key: request for key, request in request_load.logged(server).items() if key not in before}
    return request_judge.judge(samples, log, of_client=True), request_judge.wall_by_route(samples, log), len(log)


def upstreams(server, directory):
    """Some clients that wait for an upstream all the time."""
    before = request_load.logged(server)
    with request_load.Recording(server, directory / "waits.ljspy", REQUESTS_RATE, ("--requests",)):
        with server.load("/waits/1", UPSTREAM_SECONDS, UPSTREAMS, ["-H", "Host: shop1.example.com"]) as load:
            load.wait()
        request_load.wait_quiet(server)
    log = {key: request for key, request in request_load.logged(server).items() if key not in before}
    return request_judge.wall_by_route(request_judge.read(directory / "waits.ljspy", server), log)["waits"]


def show(title, verdict, times, asked):
    """Print a run. Returns the row of the table, and whether all is right."""
    print(f"{title}: {asked} requests, {verdict}")
    for what, sample in verdict.wrong[:5]:
        print(f"    {what}: {sample}")
    for route, spent in times.items():
        print(f"    {route:10} {spent.seen / 1e6:9.1f} ms of {spent.truth / 1e6:9.1f}: {spent.ratio:.3f}, "
              f"noise {spent.noise / spent.truth:.3f}, {spent.sigmas:.1f} sigmas")  # fmt: skip
    whole = request_judge.total(times)
    time = f"{whole.ratio:.3f} ± {whole.noise / whole.truth:.3f}"
    sigmas = f"{max(spent.sigmas for spent in times.values()):.1f}"
    if whole.noise > NOISE_MAX * whole.truth:
        print("    too few looks to judge times: is the machine busy?")
        time, sigmas = "too few looks", "-"
    row = [title, f"{asked:,}", f"{verdict.samples:,}", f"{verdict.named:,}", f"{verdict.right:,}", str(len(verdict.wrong)),
           f"{verdict.unknown:,}", f"{verdict.others:,}", time, sigmas]  # fmt: skip
    is_right = (len(verdict.wrong) <= WRONG_MAX * verdict.named and verdict.unknown <= UNKNOWN_MAX * verdict.truths
                and verdict.named > 0.2 * verdict.samples and all(spent.is_right(TIME_SHARE) for spent in times.values()))
    return row, is_right


def main():
    requests = int(sys.argv[1])
    document = pathlib.Path(sys.argv[2]) if sys.argv[2:] else None
    lines = [["recorded", "requests", "samples", "name one", "right", "wrong", "unknown", "others",
              "time", "sigmas at most"], ["---"] * 10]  # fmt: skip
    all_right = True
    with tempfile.TemporaryDirectory(prefix="ljspy-") as path:
        pathlib.Path(path).chmod(0o755)
        for title, jit, release in RUNS:
            directory = pathlib.Path(path) / title.replace(" ", "-")
            with request_load.serve(directory, jit, release) as server:
                for what, measure in (("CPU time", cpu), ("`--requests`", wall)):
                    row, is_right = show(f"{what}, {title}", *measure(server, directory, requests))
                    lines.append(row)
                    all_right &= is_right
                if title == "JIT on":
                    spent = upstreams(server, directory)
        share = 100 * abs(spent.ratio - 1)
        print(f"{UPSTREAMS} clients of proxy_pass, 50 ms: {spent.seen / 1e9:.2f} s of {spent.truth / 1e9:.2f}")
        all_right &= share < 100 * TIME_SHARE
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    written.write(document, "request-truth", f"{table}\n\n{UPSTREAMS} clients that wait for an upstream's 50 ms, for "
                  f"{UPSTREAM_SECONDS} s: {spent.seen / 1e9:.2f} s, and {spent.truth / 1e9:.2f} s by nginx's log.")
    return 0 if all_right else 1


if __name__ == "__main__":
    began = time.monotonic()
    status = main()
    print(f"{time.monotonic() - began:.0f} s")
    sys.exit(status)
