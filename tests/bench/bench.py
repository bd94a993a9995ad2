"""What ljspy costs, as ratios of things measured in turn in one run.

Machines differ and are noisy, so no figure here is an absolute time: each is
the median over PAIRS of a ratio between two neighbouring measurements, with
the raw numbers beside it in the JSON file.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import ljspy  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
# Amounts of work that take a second or two.
WORK = {"interpreted": 150000, "compiled": 30000, "in_c": 12000}


def work(kind, amount):
    return [ljspy.luajit("luajit"), HERE / "work.lua", kind, amount]


def recorder(pid, seconds, rate, stats):
    return [ljspy.LJSPY, "record", "-p", pid, "-d", f"{seconds}s", "-r", rate, "-f", "folded", "-o", "/dev/null", "--stats", stats]


def strings(command):
    return [str(word) for word in command]


def floor(program, pid, rate, seconds):
    command = strings([program, pid, int(rate * seconds), rate])
    p50, p99 = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return {"p50": float(p50), "p99": float(p99)}


def pause(pid, rate, seconds, directory):
    stats = directory / "stats.json"
    subprocess.run(strings(recorder(pid, seconds, rate, stats)), stderr=subprocess.DEVNULL, check=True)
    return json.loads(stats.read_text())["pause_us"]


def measure_pause(options, rate):
    """How long a thread is held, against the floor on the same target."""
    pairs = []
    with ljspy.Target(work("interpreted", 10**9), limit=600) as target:
        time.sleep(0.2)
        for _ in range(options.pairs):
            pairs.append(
                {
                    "floor": floor(options.floor, target.pid, rate, options.seconds),
                    "ljspy": pause(target.pid, rate, options.seconds, options.directory),
                }
            )
    ratios = {p: [pair["ljspy"][p] / pair["floor"][p] for pair in pairs] for p in ("p50", "p99")}
    return [
        {"what": f"pause, {p}, {rate} Hz", "unit": "x floor", "ratios": ratios[p], "raw": pairs}
        for p in ("p50", "p99")
    ]


def cpu_seconds(command, watch):
    """CPU time of a command from start to end, with ljspy beside it or not."""
    process = subprocess.Popen(strings(command), stdout=subprocess.DEVNULL)
    sampler = watch(process.pid) if watch else None
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if sampler:
        sampler.wait()
    return usage.ru_utime + usage.ru_stime


def measure_slowdown(options, kind, rate):
    """CPU time of a fixed amount of work with ljspy, against that without."""
    stats = options.directory / "stats.json"

    def watch(pid):
        command = strings(recorder(pid, 600, rate, stats))
        return subprocess.Popen(command, stderr=subprocess.DEVNULL)

    pairs = []
    for _ in range(options.pairs):
        command = work(kind, WORK[kind])
        pairs.append({"without": cpu_seconds(command, None), "with": cpu_seconds(command, watch)})
    ratios = [pair["with"] / pair["without"] for pair in pairs]
    return [{"what": f"CPU time of {kind} work, {rate} Hz", "unit": "x alone", "ratios": ratios, "raw": pairs}]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=2, help="of each look at a pause")
    parser.add_argument("--floor", type=pathlib.Path, required=True, help="the compiled floor.c")
    parser.add_argument("--directory", type=pathlib.Path, required=True, help="for the results")
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)

    rows = measure_pause(options, 99) + measure_pause(options, 999)
    for kind in WORK:
        for rate in (99, 999):
            rows += measure_slowdown(options, kind, rate)
    print(f"{'':44} {'median':>8} {'min':>8} {'max':>8}")
    for row in rows:
        ratios = row["ratios"]
        print(
            f"{row['what']:44} {statistics.median(ratios):8.3f} {min(ratios):8.3f} {max(ratios):8.3f}  {row['unit']}"
        )
    (options.directory / "bench.json").write_text(json.dumps(rows, indent=1))
    print(f"Raw figures: {options.directory / 'bench.json'}")


if __name__ == "__main__":
    main()
