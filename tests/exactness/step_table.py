# SPDX-License-Identifier: MIT
"""make exactness-builds: step through every program on every build of LuaJIT in the
tests, with the JIT compiler off and on. Prints how many stacks were judged, how many
said that a part is lost, how many lacked a line, and how many were wrong. Fails if one
was wrong, if too many lacked a line, or if a build had none to judge.

    step_table.py EXACTNESS STEPS [DOCUMENT]

DOCUMENT has a sentence to write.
"""

import concurrent.futures
import os
import pathlib
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS), str(TESTS / "layouts")]
import builds
import packages
import test_exactness as exactness
import written

WITH_FFI = [name for name in exactness.PROGRAMS
            if 'require("ffi")' in (exactness.HERE / f"programs/{name}.lua").read_text()]


def has_ffi(build):
    """Whether the build can call the C library by FFI: a static one finds no function there."""
    return "DISABLE_FFI" not in str(build) and "-static" not in str(build)


def luajits():
    """Builds that are programs and run scripts."""
    for build in (*builds.PROGRAMS, *builds.SOURCES, builds.LUAJIT_20):
        if isinstance(build, builds.Source) and not build.shared:
            yield build
        elif isinstance(build, builds.Lupa) or (isinstance(build, builds.Program) and build.path.endswith("/luajit")):
            yield build


def step(luajit, name, jit, steps):
    """How many stacks were judged, wrong, without a line and lost."""
    done = exactness.run("step", luajit, name, jit, steps)
    row = exactness.ROW.match(done.stdout)
    if not row:
        raise RuntimeError(f"{luajit} {name}: {done.stderr}")
    if int(row[2]):
        print(f"{luajit}: {done.stdout}{done.stderr[:2000]}", file=sys.stderr, flush=True)
    return [int(number) for number in row.groups()]


def cells(totals):
    judged, wrong, no_line, lost = totals
    return f"{judged:,} | {wrong} | {no_line} | {100 * lost / judged:.2f} %"


def main():
    exactness.EXACTNESS, steps = sys.argv[1:3]
    document = pathlib.Path(sys.argv[3]) if sys.argv[3:] else None
    judged = wrong = no_line = lost = count = 0
    most = 0.0
    print("| build | off: stacks | wrong | no line | lost | on: stacks | wrong | no line | lost |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as directory, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for number, build in enumerate(luajits()):
            try:
                run = build.prepare()
            except packages.Unavailable as reason:
                print(f"{build}: not to be had: {reason}", file=sys.stderr)
                continue
            luajit = run.program(pathlib.Path(directory) / str(number))
            names = [name for name in exactness.PROGRAMS if name not in WITH_FFI or has_ffi(build)]
            row = []
            for jit in ("off", "on") if run.jit else ("off",):
                counts = pool.map(lambda name: step(luajit, name, jit, steps), names)
                row.append([sum(column) for column in zip(*counts)])
            judged += sum(totals[0] for totals in row)
            wrong += sum(totals[1] for totals in row)
            no_line += sum(totals[2] for totals in row)
            lost += sum(totals[3] for totals in row)
            most = max([most, *(totals[3] / totals[0] for totals in row)])
            count += 1
            print(f"| {build} | {' | '.join(map(cells, row))}{'' if run.jit else ' | | | |'} |", flush=True)
    print(f"{judged:,} stacks, {wrong} wrong, {no_line} without a line")
    if judged:
        written.write(document, "exactness-builds", (
            f"Of {judged:,} stacks on {count} builds, {wrong} were wrong, and {100 * lost / judged:.2f} % said that a part was\n"
            f"lost: at most {100 * most:.1f} % on one build."))
    sys.exit(judged == 0 or wrong > 0 or no_line * 100 > judged * exactness.NO_LINE_PERCENT)


main()
