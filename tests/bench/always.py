# SPDX-License-Identifier: MIT
"""What it costs to leave ljspy on: `record` without an end over the workers of an nginx
under load. Rows of a table, and how the memory went."""

import argparse
import os
import pathlib
import platform
import signal
import subprocess
import sys
import time

import measure
import written

import ljspy
import nginx_server

RATE = 19
LOOKS = 10  # at the memory
DAY_S = 86400
WAYS = {
    "every": ("--every", "1m"),
    # Conditions that are judged all the time and never hold.
    "when": ("--when", "cpu>100% for 10s", "--when", "rss>100G", "--when", "heap+900%/10m", "--when", "latency>1m"),
}


def resident_kb(pids):
    """What the processes hold: a page that they share counts once."""
    rollups = [pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in pids]
    return sum(int(line.split()[1]) for text in rollups for line in text.splitlines() if line.startswith("Pss:"))


def failed(load):
    """How many requests failed, by wrk's report, and how many there were."""
    lines = load.splitlines()
    numbers = [int(word.rstrip(",")) for line in lines if "Non-2xx" in line or "Socket errors" in line
               for word in line.split() if word.rstrip(",").isdigit()]
    (requests,) = (int(line.split()[0]) for line in lines if "requests in" in line)
    return sum(numbers), requests


def watch(process, seconds):
    """Look at a running ljspy: the share of a core that it took, and its memory in kB, in time order."""
    pids = measure.processes(process.pid)
    sizes, begin, used = [], time.monotonic(), measure.cpu_with_children(process)
    for look in range(1, LOOKS + 1):
        time.sleep(max(0, begin + seconds * look / LOOKS - time.monotonic()))
        sizes.append(resident_kb(pids))
    return (measure.cpu_with_children(process) - used) / 1e9 / (time.monotonic() - begin), sizes


def record(server, way, seconds, directory):
    """Record under load. Returns what was found out, as text by name."""
    kept = directory / way
    argv = [ljspy.LJSPY, "record", "--tree", server.master.pid, "-r", RATE, *WAYS[way], "-o", kept]
    with server.load("/work", int(seconds * 1.2) + 120, connections=64, options=("--timeout", "60s")) as load:
        with subprocess.Popen([str(a) for a in argv], stderr=subprocess.PIPE, text=True) as process:
            try:
                ljspy.wait_until(lambda: all(ljspy.status_field(pid, "TracerPid") != "0" for pid in server.workers))
                time.sleep(min(60, seconds / 5))
                before = sum(map(ljspy.cpu_ns, server.workers))
                begin = time.monotonic()
                share, sizes = watch(process, seconds)
                elapsed = time.monotonic() - begin
                worked = (sum(map(ljspy.cpu_ns, server.workers)) - before) / 1e9
            finally:
                process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=600)[1]
        errors, requests = failed(load.stop())
    samples = next((int(line.split()[1]) for line in said.splitlines() if line.startswith("samples")), 0)
    files = list(kept.glob("*.ljspy"))
    size = sum(path.stat().st_size for path in files)
    return {
        "workers used, in cores": f"{worked / elapsed:.2f}",
        "samples": f"{samples:,}",
        "ljspy's CPU time, share of a core": f"{100 * share:.2f} %",
        "the same for each core that the workers used": f"{100 * share * elapsed / worked:.2f} %",
        "memory of all its processes, first to last look": f"{sizes[0] / 1024:.1f} to {sizes[-1] / 1024:.1f} MB",
        "the most": f"{max(sizes) / 1024:.1f} MB",
        "requests; of them failed": f"{requests:,}; {errors}",
        "recorded": f"{size / 1e6:.2f} MB" + (f" in {len(files)} files" if files else ""),
        "the same, in a day of a worker that is always busy":
            f"{size / samples * RATE * DAY_S / 1e6:.1f} MB" if samples and size else "–",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600, help="of each way")
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--ways", default=",".join(WAYS), help="with commas between")
    parser.add_argument("--directory", type=pathlib.Path, required=True, help="for the results")
    parser.add_argument("--document", type=pathlib.Path, help="whose table to write")
    arguments = parser.parse_args()
    directory = arguments.directory.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    ways = arguments.ways.split(",")
    config = (measure.HERE / "nginx.conf.in").read_text()
    config = config.replace("worker_processes 1;", f"worker_processes {arguments.workers};")
    config = config.replace("@PORT@;", "@PORT@ reuseport;")
    limit = int(len(ways) * (arguments.seconds * 1.2 + 300))
    with nginx_server.Nginx(directory / "nginx", config, limit=limit, PREPARE="") as server:
        server.wait_answers("/work")
        found = {way: record(server, way, arguments.seconds, directory) for way in ways}
    lines = ["| measured | " + " | ".join(f"`{' '.join(WAYS[way][:2])}`" for way in ways) + " |",
             "|---" * (len(ways) + 1) + "|"]
    lines += [f"| {what} | " + " | ".join(found[way][what] for way in ways) + " |" for what in found[ways[0]]]
    where = f"{platform.machine()} with {os.cpu_count()} CPUs"
    text = "\n".join(lines) + f"\n\nOf one run of {arguments.seconds:.0f} s each way, {arguments.workers} workers, {where}."
    print(text)
    written.write(arguments.document, "always-on", text)


if __name__ == "__main__":
    sys.exit(main())
