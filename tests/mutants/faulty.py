# SPDX-License-Identifier: MIT
"""Faults in a source, and a copy of the tree to put them into."""

import collections
import pathlib
import re
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Memory that is not freed is found by the sanitizers, which tests of faults do without.
FREES = re.compile(r"\s*(\w+_)?free\(")

Mutant = collections.namedtuple("Mutant", "path line text what")


def mutants_of(path, text, lines, token_of, swaps, call):
    """All faults in those lines: other tokens by a table, larger numbers, and lines that only call left out."""
    at, line, last = 0, 1, ""
    for token in token_of.findall(text):
        for new in replacements(token, last, text[at + len(token):], swaps):
            if line in lines:
                yield Mutant(path, line, text[:at] + new + text[at + len(token):], f"{token} -> {new or 'nothing'}")
        if not token.isspace():
            last = token
        at += len(token)
        line += token.count("\n")
    rows = text.split("\n")
    for number, row in enumerate(rows, 1):
        if number in lines and call.match(row) and not FREES.match(row):
            yield Mutant(path, number, "\n".join([*rows[:number - 1], "\t;", *rows[number:]]), f"without {row.strip()}")


def replacements(token, last, rest, swaps):
    """What else could stand there. A sign, a pointer's star and an address stay as they are."""
    if token in "+-" and not re.match(r"[\w)\]]", last[-1:]):
        return []
    if re.fullmatch(r"\d+", token) and last != ".":
        return [str(int(token) + 1)]
    if token == "!" and rest.startswith("="):
        return []
    return swaps.get(token, [])


def copy_tree(root):
    """Copy what git knows to a folder; packages and the like are those of the tree."""
    root.mkdir(parents=True, exist_ok=True)
    for name in subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True,
                               check=True).stdout.split("\0"):
        old, new = ROOT / name, root / name
        if name and old.is_file() and (not new.exists() or old.read_bytes() != new.read_bytes()):
            new.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(old, new)
            shutil.copymode(old, new)
    (root / "build").mkdir(exist_ok=True)
    for name in ("packages", "apt", "consumers"):
        link = root / "build" / name
        if not link.exists() and not link.is_symlink():
            link.symlink_to(ROOT / "build" / name)
    return root
