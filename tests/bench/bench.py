# SPDX-License-Identifier: MIT
"""Measure what ljspy costs: one table, and all raw figures as JSON.

Parts: pause, slowdown, idle, own, start, warming, scale, allocating, peers; see their files.
"""

import argparse
import importlib
import json
import os
import pathlib
import platform
import sys
import time

import measure
import plot
import written

PARTS = ("pause", "slowdown", "idle", "own", "start", "warming", "scale", "allocating", "peers")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS), help="with commas between")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=1, help="of each look")
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="where the compiled programs are")
    parser.add_argument("--directory", type=pathlib.Path, required=True, help="for the results")
    parser.add_argument("--document", type=pathlib.Path, help="whose tables and pictures of these parts to write")
    arguments = parser.parse_args()
    unknown = set(arguments.parts.split(",")) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    directory = arguments.directory.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    options = measure.Options(arguments.pairs, arguments.seconds, directory, arguments.programs.resolve())

    rows, begin = [], time.monotonic()
    where = f"{platform.machine()} with {os.cpu_count()} CPUs, Linux {platform.release()}"
    for part in arguments.parts.split(","):
        of_part = []
        for row in importlib.import_module(part).rows(options):
            of_part.append(row)
            print(" ".join(row.cells()), file=sys.stderr, flush=True)
        written.write(arguments.document, f"bench {part}",
                      f"{measure.table(of_part, padded=False)}\n\nOf one run with {options.pairs} pairs on {where}.")
        plot.write(arguments.document, part, of_part)
        rows += of_part
    machine = f"{where}, {options.pairs} pairs, {time.monotonic() - begin:.0f} s"
    print(measure.table(rows))
    print(f"\n{machine}. Raw figures: {directory / 'bench.json'}")
    (directory / "bench.json").write_text(
        json.dumps({"machine": machine, "rows": [row.as_json() for row in rows]}, indent=1)
    )


if __name__ == "__main__":
    main()
