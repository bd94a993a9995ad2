# SPDX-License-Identifier: MIT
"""make jit-truth: how right are frames in compiled code?

For each build of LuaJIT (from Debian's source packages, instrumented by lj_truth.h) and
each program, prints how many samples in compiled code have the right callers, leaf
function and line, and how many are marked as approximate. Fails if a caller is wrong
but not marked, or if more than a few such leaves are.

    run.py SAMPLER DIRECTORY [DOCUMENT]

DOCUMENT has a table to write.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "layouts")]

import judge
import packages
import written

INSTRUMENTS = "instrument.sh", "lj_truth.h", "lj_truth.c"
SECONDS, RATE = 3, 500  # of CPU time
SLOWEST = 20  # at most this many times as long by the wall clock
WRONG_LEAVES_MAX = 3.0  # percent; nbody has 0.1 to 2.0, depending on its traces
PROGRAMS = {"nbody": "nbody", "bank": "objects", "json": "JSON decoder", "heapsort": "heap sort", "mandelbrot": "mandelbrot",
            "strings": "string builder"}
SHOWN = "callers", "function", "line", "marked"
# Since March 2021, snapshots say where their code begins.
BUILDS = {
    "2022, GC64": ("bookworm", ""),
    "2022, GC32": ("bookworm", "-DLUAJIT_DISABLE_GC64"),
    "2017, GC64": ("bullseye", "-DLUAJIT_ENABLE_GC64"),
    "2017, GC32": ("bullseye", ""),
}


def build(directory, name, suite, flags, variables=()):
    """Build an instrumented LuaJIT, unless one made by the same instruments exists."""
    digest = hashlib.sha256(b"".join((HERE / part).read_bytes() for part in INSTRUMENTS)).hexdigest()[:12]
    tree = directory / f"{name.replace(', ', '-')}-{digest}"
    if tree.exists():
        return tree / "src/luajit"
    work = directory / f".{tree.name}"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(packages.source(suite, "luajit"), work)
    subprocess.run([HERE / "instrument.sh", work], check=True)
    subprocess.run(["make", "-s", "-C", work / "src", f"XCFLAGS={flags}", *variables, "luajit"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    work.rename(tree)
    return tree / "src/luajit"


def wait_for_trace(truth, target):
    """Wait for the first trace: then the program is loaded and runs."""
    while not truth.exists() and target.poll() is None:
        time.sleep(0.01)


def sample(luajit, program, sampler, directory):
    truth, samples = directory / "truth", directory / "samples"
    truth.unlink(missing_ok=True)
    target = subprocess.Popen([luajit, HERE / f"programs/{program}.lua", str(SECONDS)],
                              env={**os.environ, "LUAJIT_TRUTH": str(truth)})  # fmt: skip
    try:
        wait_for_trace(truth, target)
        with open(samples, "w") as out:
            subprocess.run([sampler, str(target.pid), str(SLOWEST * SECONDS), str(RATE), truth], stdout=out,
                           check=True, timeout=SLOWEST * SECONDS + 30)  # fmt: skip
    finally:
        target.kill()
        target.wait()
    return judge.tally(truth, samples)


def table(cells):
    """For a document: percent, rounded down, by program and build."""
    names = list(dict.fromkeys(name for name, _ in cells))
    lines = [["program", *names], ["---"] * (len(names) + 1)]
    for program, title in PROGRAMS.items():
        lines.append([title, *(" / ".join(str(int(cells[name, program][column])) for column in SHOWN) for name in names)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main():
    sampler, directory = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    document = Path(sys.argv[3]) if sys.argv[3:] else None
    directory.mkdir(parents=True, exist_ok=True)
    failed, cells = False, {}
    print(f"{'build':12}{'program':12}{'samples':>8}" + "".join(f"{c:>{len(c) + 3}}" for c in judge.COLUMNS))
    for name in BUILDS:
        try:
            luajit = build(directory, name, *BUILDS[name])
        except packages.Unavailable as reason:
            print(f"{name:12}skipped: its source package is not to be had: {reason}")
            continue
        for program in PROGRAMS:
            count, counts, _ = sample(luajit, program, sampler, directory)
            cells[name, program] = share = {column: 100 * counts[column] / max(count, 1) for column in judge.COLUMNS}
            print(f"{name:12}{program:12}{count:8}" + "".join(f"{s:{len(c) + 3}.1f}" for c, s in share.items()))
            failed |= count == 0 or counts["wrong caller said exact"] > 0
            failed |= share["wrong leaf said exact"] > WRONG_LEAVES_MAX
    if cells:
        written.write(document, "jit-truth", table(cells))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
