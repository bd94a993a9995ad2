"""The phase of the request that a worker's Lua works for."""

import collections
import os
import pathlib
import tempfile

import pytest

import ljspy
import nginx_server

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


def record_under_load(nginx, path, directory, seconds):
    recording = directory / "phases.ljspy"
    with nginx.load(path, seconds + 4) as load:
        busy = ljspy.cpu_ns(nginx.worker)
        assert ljspy.wait_until(lambda: ljspy.cpu_ns(nginx.worker) > busy + 1e8)
        result = ljspy.run("record", "-p", nginx.worker, "-d", f"{seconds}s", "-r", ljspy.HIGH_RATE, "-o", recording)
        assert result.returncode == ljspy.OK, result.stderr
        output = load.stdout.read()
    assert "Non-2xx" not in output and "Socket errors" not in output, output
    return recording


@pytest.mark.slow
@pytest.mark.parametrize("path", WORK)
def test_each_phase_has_its_share(nginx, report, path, tmp_path):
    weights = collections.Counter()
    for line in report(record_under_load(nginx, path, tmp_path, seconds=10)).splitlines():
        stack, _, weight = line.rpartition(" ")
        if "work" in stack:
            weights[stack.split(";")[0]] += int(weight)
    units = sum(WORK[path].values())
    shares = {phase: weight / sum(weights.values()) for phase, weight in weights.items()}
    for phase, work in WORK[path].items():
        assert shares.pop(phase, 0) == pytest.approx(work / units, abs=0.03, rel=0.15), (phase, weights)
    assert sum(shares.values()) < 0.01, shares
