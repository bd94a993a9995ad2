#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Frames in compiled code of arm64, judged as tests/jit-truth does, on Debian's kernel in an emulated machine.

jit_truth.py BUILD SYSROOT [DOCUMENT [RELEASE...]]

BUILD has tests/jit-truth/sample, built for arm64. DOCUMENT ("-" for none) has a table to write.
"""

import pathlib
import shutil
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/jit-truth")]

import emulator  # noqa: E402, pylint: disable=wrong-import-position
import judge  # noqa: E402, pylint: disable=wrong-import-position
import machine  # noqa: E402, pylint: disable=wrong-import-position
import run  # noqa: E402, pylint: disable=wrong-import-position
import written  # noqa: E402, pylint: disable=wrong-import-position

BUILDS = {"2025": "trixie", "2022": "bookworm", "2017": "bullseye"}
SYSROOT = machine.WORK / "sysroot"
CROSS = "HOST_CC=gcc", "CROSS=aarch64-linux-gnu-", "TARGET_SYS=Linux", f"TARGET_FLAGS=--sysroot={SYSROOT}"
SECONDS, RATE = 2, 200  # of the emulated machine's time
COMMANDS = f"{machine.SENDING} cat"


def luajit(release):
    return run.build(ROOT / "build/jit-truth", f"{release}, arm64", BUILDS[release], "", CROSS)


def lay(root, build, sysroot, releases, programs):
    """What the commands need."""
    needed = [build / "tests/jit-truth/sample", *(luajit(release) for release in releases)]
    machine.lay_libraries(root, sysroot, needed)
    shutil.copy(needed[0], root / "bin")
    shutil.copytree(ROOT / "tests/jit-truth/programs", root / "jit-truth")
    for release, program in zip(releases, needed[1:]):
        shutil.copy(program, root / "bin" / f"truth-{release}")
    return commands(releases, programs)


def commands(releases, programs):
    yield "cd /jit-truth"
    for release in releases:
        for program in programs:
            yield "rm -f /tmp/truth; touch /tmp/truth"
            yield f"LUAJIT_TRUTH=/tmp/truth truth-{release} {program}.lua 1000 >/tmp/said 2>&1 &"
            yield "target=$!; tries=0"
            yield "until test -s /tmp/truth || test $tries = 100; do sleep 0.1; tries=$((tries + 1)); done"
            yield f"sample $target {SECONDS} {RATE} /tmp/truth >/tmp/samples; kill -9 $target; cat /tmp/said"
            for name in ("truth", "samples"):
                yield machine.send(f"/tmp/{name}", f"{release} {program} {name}")


def tallies(said):
    """For each release and program: judge.tally()."""
    sent = {}
    for title, content in machine.sent(said).items():
        if (words := title.split())[:1] and words[0] in BUILDS:
            sent.setdefault(tuple(words[:2]), {})[words[2]] = content
    for key, files in sent.items():
        with tempfile.TemporaryDirectory() as work:
            for name, content in files.items():
                (pathlib.Path(work) / name).write_bytes(content)
            yield key, judge.tally(f"{work}/truth", f"{work}/samples", "arm64")


def judge_all(said, releases, programs):
    """Print a table; yield what is wrong, and put what to write of it into CELLS."""
    print(f"{'release':9}{'program':12}{'samples':>8}" + "".join(f"{c:>{len(c) + 3}}" for c in judge.COLUMNS))
    judged = dict(tallies(said))
    for key in ((release, program) for release in releases for program in programs):
        count, counts, misses = judged.get(key, (0, {}, {}))
        share = {column: 100 * counts[column] / count if count else 0 for column in judge.COLUMNS}
        print(f"{key[0]:9}{key[1]:12}{count:8}" + "".join(f"{s:{len(c) + 3}.1f}" for c, s in share.items()))
        if misses and "-v" in sys.argv:
            print("\n".join(f"    {times} {miss}" for miss, times in misses.most_common(12)))
        if not count or counts["wrong caller said exact"] or share["wrong leaf said exact"] > run.WRONG_LEAVES_MAX:
            yield f"{key}: {count} samples, {dict(counts)}"
        CELLS[key] = share


CELLS = {}


def table():
    """For a document: percent, rounded down, by program and release."""
    names = list(dict.fromkeys(name for name, _ in CELLS))
    lines = [["program", *names], ["---"] * (len(names) + 1)]
    for program in dict.fromkeys(program for _, program in CELLS):
        shares = (CELLS[name, program] for name in names)
        lines.append([run.PROGRAMS[program], *(" / ".join(str(int(share[column])) for column in run.SHOWN) for share in shares)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main():
    words = [word for word in sys.argv[1:] if word != "-v"]
    build, sysroot = (pathlib.Path(word).resolve() for word in words[:2])
    document, releases = words[2:3], words[3:] or list(BUILDS)
    root = ROOT / "build/arm64/jit-truth-root"
    machine.lay_base(root, [], sysroot, COMMANDS)
    emulator.lay_commands(root, lay(root, build, sysroot, releases, run.PROGRAMS))
    said = machine.boot(root)
    (root.parent / "jit-truth-said").write_text(said, encoding="utf-8")
    faults = list(judge_all(said, releases, run.PROGRAMS))
    if "all done" not in said:
        faults.append(f"The emulated machine did not come to its end: {said[-2000:]}")
    if CELLS and document and document[0] != "-":
        written.write(pathlib.Path(document[0]), "jit-truth-arm64", table())
    print("\n".join(faults))
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
