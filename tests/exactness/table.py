# SPDX-License-Identifier: MIT
"""make exactness: for every program, build and setting of the JIT compiler, print how
many stacks were judged, how many were lost and for which reasons, how many lacked a
line, and how many were wrong. Fails if one was wrong, or if too many lacked a line.

    table.py EXACTNESS SAMPLES [DOCUMENT]

DOCUMENT has a table to write.
"""

import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS), str(TESTS / "layouts")]
import ljspy
import packages
import test_exactness as exactness
import written

BUILDS = {
    "bookworm, GC64": ljspy.luajit("luajit"),
    "bookworm, OpenResty's": ljspy.luajit("luajit2"),
    "bullseye, GC32": packages.tree("bullseye", "luajit") / "usr/bin/luajit",
}


def main():
    exactness.EXACTNESS, samples = sys.argv[1:3]
    document = pathlib.Path(sys.argv[3]) if sys.argv[3:] else None
    judged = wrong = no_line = 0
    summary = []
    for build, luajit in BUILDS.items():
        for setting, parameters in {"off": None, **exactness.SETTINGS}.items():
            print(f"{build}, {'jit off' if parameters is None else setting}", flush=True)
            cells = {}
            for program in exactness.PROGRAMS:
                jit = "off" if parameters is None else "on"
                done = exactness.run("sample", luajit, program, jit, samples, parameters or ())
                row = exactness.ROW.match(done.stdout)
                if not row:
                    sys.exit(f"{program}: {done.stderr}")
                print(f"  {done.stdout}", end="", flush=True)
                cells[program] = [int(number) for number in row.groups()]
            judged += sum(cell[0] for cell in cells.values())
            wrong += sum(cell[1] for cell in cells.values())
            no_line += sum(cell[2] for cell in cells.values())
            most = max(cells, key=lambda program: cells[program][3] / cells[program][0])
            totals = [sum(column) for column in zip(*cells.values())]
            summary.append(
                f"| {build} | {'off' if parameters is None else setting} | {totals[0]:,} | {totals[1]} | {totals[2]} "
                f"| {100 * totals[3] / totals[0]:.2f} % | {100 * cells[most][3] / cells[most][0]:.2f} % ({most}) |")
    table = "\n".join([
        "| build | compiler | stacks | wrong | no line | lost | most lost of one program |", "|---|---|---|---|---|---|---|",
        *summary])
    print(table)
    written.write(document, "exactness", table)
    print(f"{judged} stacks, {wrong} wrong, {no_line} without a line")
    sys.exit(wrong > 0 or no_line * 100 > judged * exactness.NO_LINE_PERCENT)


main()
