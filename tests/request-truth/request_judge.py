# SPDX-License-Identifier: MIT
"""Judge what a recording says of requests: by the functions in each stack, by nginx's log, and by the CPU time
that Lua has measured."""

import collections
import dataclasses
import json
import math
import statistics

import request_load
from request_load import ALSO, HOSTS, ROUTES, ljspy

GONE = 499  # in the log, when the client has given up
# nginx notes the time once a turn; a turn is long where a machine is busy.
LATE_SECONDS_MAX = 2


def truth_of(functions, lines):
    """The route and host of a stack by its functions, "timer", or None. LINES: see functions_by_line()."""
    found = {lines[function["firstline"]] for function in functions
             if function.get("file", "").endswith("/routes.lua") and function.get("firstline") in lines}
    assert len(found) <= 1, ("a stack of two requests", functions)
    return found.pop() if found else None


def read(recording, server):
    """The samples of a recording, with the truth: what the functions in their stacks are of."""
    document = json.loads(ljspy.run("report", recording, "-f", "json", "-o", "-").stdout)
    lines = request_load.functions_by_line(server)
    truths = [truth_of([document["functions"][document["frames"][frame]["function"]] for frame in stack], lines)
              for stack in document["stacks"]]
    begin_ns = document["session"]["start_unix_ns"]
    for sample in document["samples"]:
        sample["truth"] = truths[sample["stack"]]
        sample["unix"] = (begin_ns + sample["time_ns"]) / 1e9
    return document["samples"]


def label(request):
    """The route and host that ljspy names."""
    return request["route"].strip("/").split("/")[0], (request["host"] or "").removesuffix(".example.com")


@dataclasses.dataclass
class Verdict:
    samples: int = 0
    right: int = 0
    unknown: int = 0  # the stack names a request, ljspy none
    others: int = 0  # of neither: nginx's own work, timers, the backend
    wrong: list = dataclasses.field(default_factory=list)  # (what is wrong, sample)

    @property
    def named(self):
        return self.right + len(self.wrong)

    @property
    def truths(self):
        return self.named + self.unknown

    def __str__(self):
        counts = collections.Counter(what for what, _ in self.wrong)
        return (f"{self.samples} samples, {self.named} name a request: {self.right} right, {len(self.wrong)} wrong "
                f"{dict(counts) or ''}; {self.unknown} unknown, {self.others} of others")


def fault(sample, log, of_client):
    """What is wrong with a sample that names a request; None if nothing is. OF_CLIENT: it names the client's request,
    not the subrequest that works for it."""
    request = sample["request"]
    named, known = label(request), log.get((request["connection"], request["number"]))
    if sample["truth"] == "timer":
        return "a timer has no request"
    legal = {None, named, (ALSO.get(named[0]), named[1]) if of_client else named}
    if sample["truth"] not in legal:
        return "not the stack's route or host"
    if not known:
        return "not in the log"
    if named[1] != known.host or named[0] not in (known.route, ALSO.get(known.route)):
        return "not the log's route or host"
    if request["method"] != "GET" or request.get("status") not in (None, 200, known.status) and known.status != GONE:
        return "not the log's method or status"
    if request["subrequest"] and named[0] != "inner":
        return "no subrequest"
    begin = known.ended - known.seconds
    if not begin - LATE_SECONDS_MAX <= sample["unix"] <= known.ended + LATE_SECONDS_MAX:
        return "not at that time"
    return None


def is_asked(request):
    """Not a request of the backend, or for the sums."""
    return request is not None and label(request)[1] in HOSTS


def judge(samples, log, of_client=False):
    verdict = Verdict(len(samples))
    for sample in samples:
        request = sample.get("request")
        if is_asked(request) or (request and sample["truth"]):
            what = fault(sample, log, of_client)
            if what:
                verdict.wrong.append((what, sample))
            else:
                verdict.right += 1
        elif sample["truth"] not in (None, "timer"):
            verdict.unknown += 1
        else:
            verdict.others += 1
    return verdict


@dataclasses.dataclass
class Sum:
    """Time that ljspy saw, and that was; with the noise to expect. In ns."""

    seen: float
    truth: float
    noise: float

    @property
    def ratio(self):
        return self.seen / self.truth

    @property
    def sigmas(self):
        return abs(self.seen - self.truth) / self.noise

    def is_right(self, share):
        return abs(self.seen - self.truth) <= 4 * self.noise + share * self.truth


def noise_of(ns, weights):
    """Of so much time, if samples with such weights find it at random."""
    return math.sqrt(ns * sum(weight**2 for weight in weights) / sum(weights))


def total(times):
    """Of routes, each of which was seen by itself."""
    return Sum(sum(time.seen for time in times.values()), sum(time.truth for time in times.values()),
               math.sqrt(sum(time.noise**2 for time in times.values())))


def cpu_by_route(samples, sums):
    """Time of samples in the functions that measure themselves, by the route that ljspy names."""
    seen, truth = collections.Counter(), collections.Counter()
    for sample in samples:
        if "request" in sample and sample["truth"] not in (None, "timer"):
            route, _ = label(sample["request"])
            seen[route] += sample["cpu_ns"]
    for (route, _), ns in sums.items():
        truth[route] += ns
    weights = [sample["cpu_ns"] for sample in samples]
    return {route: Sum(seen[route], truth[route], noise_of(truth[route], weights)) for route in ROUTES}


def wall_by_route(samples, log):
    """Time of requests. A route has those that end as another one, too: the log does not tell when they changed."""
    groups = {also: route for route, also in ALSO.items() if route != "captures"}
    looks, weights, truth = collections.defaultdict(collections.Counter), {}, collections.Counter()
    for sample in samples:
        weights[sample["time_ns"]] = sample["wall_ns"]
        if is_asked(sample.get("request")):
            route, _ = label(sample["request"])
            looks[groups.get(route, route)][sample["time_ns"]] += sample["wall_ns"]
    for request in log.values():
        truth[groups.get(request.route, request.route)] += request.seconds * 1e9

    def sum_of(route):
        # Requests of a route may come together. One look tells nothing of that.
        several = len(weights) > 1
        spread = statistics.stdev(looks[route][moment] for moment in weights) if several else math.inf
        together = spread * math.sqrt(len(weights))
        return Sum(looks[route].total(), truth[route], max(together, noise_of(truth[route], weights.values())))

    return {route: sum_of(route) for route in truth if truth[route]}
