"""The phase of the request that a worker's Lua works for."""

import collections
import os
import pathlib
import re
import tempfile

import pytest

import ljspy
import nginx_server
import stacks

pytestmark = [
    pytest.mark.usefixtures("built"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the master must be root for its worker to be nobody"),
]

TEMPLATE = nginx_server.template("phases.conf.in")

# Units of work in each phase, by location.
WORK = {
    "/phases": {
        "rewrite": 1,
        "access": 2,
        "content": 3,
        "header_filter": 4,
        "body_filter": 5,
        "log": 6,
        "timer": 7,
    },
    "/files": {"rewrite": 1, "content": 2, "log": 3},
    "/balanced": {"balancer": 2, "content": 1},
}

FILES = {"rewrite.lua": "work(1)", "content.lua": "ngx.sleep(0.001) work(2) ngx.print('done')", "log.lua": "work(3)"}


@pytest.fixture
def files():
    """A directory of Lua files that a worker which is nobody may read."""
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        directory.chmod(0o755)
        for file, source in FILES.items():
            (directory / file).write_text(source)
        yield directory


@pytest.fixture
def nginx(tmp_path, files, jit):
    with nginx_server.Nginx(tmp_path / "nginx", TEMPLATE, JIT=jit, FILES=files) as server:
        server.wait_answers(*WORK)
        yield server


@pytest.fixture
def report():
    """Folded stacks of a recording, by phase."""
    if "report" not in ljspy.run("--help").stdout:
        pytest.skip("this ljspy has no report")

    def run(recording):
        result = ljspy.run("report", recording, "--by", "phase", "-f", "folded", "-o", "-")
        assert result.returncode == ljspy.OK, result.stderr
        return result.stdout

    return run


def record_under_load(nginx, path, recording, seconds, options=()):
    with nginx.load(path, seconds + 4) as load:
        busy = ljspy.cpu_ns(nginx.worker)
        assert ljspy.wait_until(lambda: ljspy.cpu_ns(nginx.worker) > busy + 1e8)
        result = ljspy.run("record", "-p", nginx.worker, "-d", f"{seconds}s", "-r", ljspy.HIGH_RATE, "-o", recording, *options)
        assert result.returncode == ljspy.OK, result.stderr
        output = load.stdout.read()
    assert "Non-2xx" not in output and "Socket errors" not in output, output
    return recording


@pytest.mark.slow
@pytest.mark.parametrize("path", WORK)
def test_each_phase_has_its_share(nginx, report, path, tmp_path):
    weights = collections.Counter()
    for line in report(record_under_load(nginx, path, tmp_path / "phases.ljspy", seconds=10)).splitlines():
        stack, _, weight = line.rpartition(" ")
        if "work" in stack:
            weights[stack.split(";")[0]] += int(weight)
    units = sum(WORK[path].values())
    shares = {phase: weight / sum(weights.values()) for phase, weight in weights.items()}
    for phase, work in WORK[path].items():
        assert shares.pop(phase, 0) == pytest.approx(work / units, abs=0.06, rel=0.2), (phase, weights)
    assert sum(shares.values()) < 0.01, shares


def line_of(tag):
    """A line of the block of /threads, as its chunk counts them."""
    first = next(n for n, line in enumerate(TEMPLATE.splitlines()) if line.endswith("-- @threads"))
    return next(n for n, line in enumerate(TEMPLATE.splitlines()[first:], 1) if line.endswith(f"-- @{tag}"))


def block_lines(sample):
    """The lines at which a stack is in the block of /threads, root first."""
    found = (re.fullmatch(r".*content_by_lua\(nginx.conf:\d+\):(\d+)", frame) for frame in sample.frames)
    return [int(match[1]) for match in found if match]


def test_threads_of_a_request_are_above_what_they_run_for(nginx, tmp_path):
    """What a light thread or coroutine runs for is not on the C stack: it has
    yielded to nginx, and waits on the line that is shown below."""
    folded = record_under_load(nginx, "/threads", tmp_path / "threads.folded", seconds=5, options=["--lines"])
    samples = stacks.parse_folded(folded.read_text())
    expected = {
        line_of("in_thread"): [line_of("waits"), line_of("in_thread")],
        line_of("in_coroutine"): [line_of("wrapped"), line_of("in_coroutine")],
    }
    for own, lines in expected.items():
        inside = [sample for sample in samples if own in block_lines(sample)]
        total = ljspy.weight_of(inside)
        assert total > 0.05 * ljspy.weight_of(samples)
        right = ljspy.weight_of(inside, lambda sample, lines=lines: block_lines(sample) == lines)
        assert right > 0.98 * total, [sample.frames for sample in inside if block_lines(sample) != lines]
    # None of them was called by what is below.
    for line in folded.read_text().splitlines():
        if ";work init_by_lua(" in line:
            assert ";child coroutine [lua-nginx-module];" in line
