# SPDX-License-Identifier: MIT
"""Pictures of what a benchmark measured, drawn by gnuplot: holds beside the floor, and how cost grows."""

import re
import statistics
import subprocess

SETTINGS = """
set terminal svg size 900,{height} dynamic font 'sans-serif,12' background '#ffffff'
set border 3 lc rgb '#666666'
set tics nomirror
set grid ytics lc rgb '#dddddd'
set key outside right top
"""
HOLDS = """
set ylabel 'pause, microseconds'
set logscale y
set style data histogram
set style histogram clustered gap 1
set style fill solid
set boxwidth 0.9
set xtics rotate by 35 right
plot $data using 2:xtic(1) title 'ljspy' lc rgb '#c44e30', '' using 3 title 'floor' lc rgb '#8899aa'
"""
GROWTH = """
set logscale xy
set xlabel 'how many'
set ylabel 'CPU time for a sample, microseconds'
plot {curves}
"""


def draw(path, height, script):
    settings = SETTINGS.format(height=height)
    done = subprocess.run(["gnuplot"], input=settings + script, capture_output=True, text=True, check=True)
    path.write_text(done.stdout)


def block(name, lines):
    return "\n".join([f"${name} << END", *lines, "END", ""])


def holds(rows, path):
    lines = []
    for row in rows:
        where = row.what.removeprefix("pause, ")
        ljspy, floor = statistics.median(row.values), statistics.median(row.bases["floor"])
        lines.append(f'"{where}" {ljspy} {floor}')
    draw(path, 480, block("data", lines) + HOLDS)


def growth(rows, path):
    curves = {}
    for row in rows:
        if found := re.fullmatch(r"CPU time for a sample: (\d+) (.*)", row.what):
            curves.setdefault(found[2], []).append(f"{found[1]} {statistics.median(row.values)}")
    data = "".join(block(f"curve{i}", lines) for i, lines in enumerate(curves.values()))
    plots = ", ".join(f"$curve{i} with linespoints lw 2 title '{name}'" for i, name in enumerate(curves))
    draw(path, 380, data + GROWTH.format(curves=plots))


# The part of the benchmark, the name of its picture, and what draws it.
PICTURES = {"pause": ("bench-pauses.svg", holds), "scale": ("bench-growth.svg", growth)}


def write(document, part, rows):
    """Put the picture of a part, if it has one, beside the document; whoever has no document gives None."""
    if document is not None and part in PICTURES:
        name, picture = PICTURES[part]
        picture(rows, document.parent / name)
