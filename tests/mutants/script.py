# SPDX-License-Identifier: MIT
"""make mutants-script: put faults into the flame graph's script, and see whether a test in the browser notices.

    script.py DIRECTORY MAKE SECONDS EACH DOCUMENT

Faults go into a copy of the tree in DIRECTORY, where tests/browser runs until a test fails. The first EACH
faults of an order of chance, the same in each run, are tried, or as many as come in SECONDS. What was found
is added to what DIRECTORY has, so that a further run continues. DOCUMENT has a table to write, or is empty.
"""

import collections
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import time

import faulty

sys.path.insert(0, str(faulty.ROOT / "tests"))
import written

FOLDER = "output/flamegraph"
LIMIT_SECONDS = 900     # for the tests with one fault
SWAPS = {
    "===": ["!=="], "!==": ["==="], "<": ["<=", ">="], "<=": ["<", ">"], ">": [">=", "<="], ">=": [">", "<"],
    "&&": ["||"], "||": ["&&"], "??": ["&&"], "+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "%": ["*"],
    "+=": ["-="], "-=": ["+="], "++": ["--"], "--": ["++"], "true": ["false"], "false": ["true"], "!": [""],
    "break": [""], "continue": [""], "min": ["max"], "max": ["min"], "floor": ["ceil"], "ceil": ["floor"],
}
TOKEN = re.compile(r"""/\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | `(?:\\.|[^`\\])*`
                       | (?<=[(,=:?!&|]\ )/(?:\\.|\[[^\]\n]*\]|[^/\\\n])+/[a-z]* | (?<=\()/(?:\\.|\[[^\]\n]*\]|[^/\\\n])+/[a-z]*
                       | [A-Za-z_$][\w$]* | 0[xX][0-9a-fA-F]+ | \d[\w.]* | =>
                       | === | !== | \?\? | \?\. | \.\.\. | [-+*/%&|<>=!^]= | \+\+ | -- | << | >>>? | && | \|\| | \s+ | .""",
                   re.VERBOSE | re.DOTALL)
CALL = re.compile(r"^\s+[A-Za-z_$][\w$.]*\([^;{}]*\);$")


def main():
    directory, make, seconds, each, document = sys.argv[1:]
    directory = pathlib.Path(directory).resolve()
    root = faulty.copy_tree(directory / "tree")
    store = directory / "script.json"
    found = json.loads(store.read_text()) if store.exists() else {}
    every = []
    for path in sorted((root / FOLDER).glob("*.js")):
        text = path.read_text(encoding="utf-8")
        every += faulty.mutants_of(path.relative_to(root), text, range(1, text.count("\n") + 2), TOKEN, SWAPS, CALL)
    random.Random(FOLDER).shuffle(every)
    if notices(root, make):
        sys.exit("the tests fail without a fault")
    end = time.monotonic() + float(seconds)
    for mutant in every[:int(each)]:
        name = f"{mutant.path}:{mutant.line}: {mutant.what}"
        if name in found:
            continue
        if time.monotonic() > end:
            break
        source = root / mutant.path
        before = source.read_text(encoding="utf-8")
        source.write_text(mutant.text, encoding="utf-8")
        try:
            found[name] = "invalid" if is_broken(source) else "killed" if notices(root, make) else "survived"
        finally:
            source.write_text(before, encoding="utf-8")
        print(f"{name}: {found[name]}", flush=True)
        store.write_text(json.dumps(found, indent=1))
    counts = collections.Counter(found.values())
    tried = counts["killed"] + counts["survived"]
    table = "\n".join(["| possible faults | tried | noticed | not | did not parse | noticed |", "|---|---|---|---|---|---|",
                       f"| {len(every):,} | {tried} | {counts['killed']} | {counts['survived']} | {counts['invalid']} "
                       f"| {100 * counts['killed'] / tried if tried else 0:.0f} % |"])
    print(table)
    written.write(pathlib.Path(document) if document else None, "mutants-script", table)


def is_broken(source):
    """Does the script no longer parse? Where there is no program to tell, the tests do."""
    try:
        return subprocess.run(["node", "--check", source], capture_output=True, check=False).returncode != 0
    except FileNotFoundError:
        return False


def notices(root, make):
    """Does a test fail with the script as it is?"""
    subprocess.run([make, "-s", f"-j{os.cpu_count()}", "make_flamegraph", "all"], cwd=root, env=os.environ | {"MAKEFLAGS": ""}, check=True,
                   stdout=subprocess.DEVNULL)
    try:
        return subprocess.run([sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "tests/browser"], cwd=root,
                              env=os.environ | {"LJSPY": str(root / "build/release/ljspy"), "PYTHONDONTWRITEBYTECODE": "1"},
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LIMIT_SECONDS,
                              check=False).returncode != 0
    except subprocess.TimeoutExpired:
        return True


if __name__ == "__main__":
    main()
