# SPDX-License-Identifier: MIT
"""make mutants: put one fault after another into the code, and see whether a unit test
that runs the line fails.

    mutants.py BUILD DIRECTORY MAKE SECONDS EACH DOCUMENT COMMITS ROOM...

BUILD is made with VARIANT=coverage: it tells which tests run a line. Faults go into a copy of
the tree in DIRECTORY. Of each room EACH faults are tried, or as many as
come in SECONDS; with COMMITS, a range of git's, only in lines that these have changed. A
fault that leaves the machine code as it was is none. A test that takes too long has
noticed. DOCUMENT has a table to write, or is empty.

The faults are made by this program, not by a general tool: those work on text, without
C's comments, strings and constants, and most of what they make does not compile.
"""

import collections
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

import gcov

sys.path.insert(0, str(gcov.ROOT / "tests"))
import written

# What a token becomes. Each is a fault that one writes by mistake.
SWAPS = {
    "==": ["!="], "!=": ["=="], "<": ["<=", ">="], "<=": ["<", ">"], ">": [">=", "<="], ">=": [">", "<"],
    "&&": ["||"], "||": ["&&"], "+": ["-"], "-": ["+"], "/": ["*"], "%": ["/"], "<<": [">>"], ">>": ["<<"],
    "+=": ["-="], "-=": ["+="], "++": ["--"], "--": ["++"], "true": ["false"], "false": ["true"], "!": [""],
    "break": [""], "continue": [""], "&=": ["|="], "|=": ["&="],
}
TOKEN = re.compile(r"""/\*.*?\*/ | //[^\n]* | ^[ \t]*\#(?:\\\n|[^\n])* | "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*'
                       | [A-Za-z_]\w* | 0[xX][0-9a-fA-F]+\w* | \d[\w.]* | <<= | >>= | -> | [-+*/%&|<>=!^]=
                       | \+\+ | -- | << | >> | && | \|\| | \s+ | .""", re.VERBOSE | re.DOTALL | re.MULTILINE)
CALL = re.compile(r"^\t+[a-z_]\w*\([^;{}]*\);$")      # a statement of one line that only calls
OPTIMISED = ("-O1", "-g0", "-w")
TESTS_MAX = 6           # of those that run a line
SLOW_SECONDS = 20       # a test that takes longer has noticed

Mutant = collections.namedtuple("Mutant", "path line text what")


def mutants_of(path, text, lines):
    """All faults in those lines."""
    at, line, last = 0, 1, ""
    for token in TOKEN.findall(text):
        for new in replacements(token, last, text[at + len(token):]):
            if line in lines:
                yield Mutant(path, line, text[:at] + new + text[at + len(token):], f"{token} -> {new or 'nothing'}")
        if not token.isspace():
            last = token
        at += len(token)
        line += token.count("\n")
    rows = text.split("\n")
    for number, row in enumerate(rows, 1):
        if number in lines and CALL.match(row):
            yield Mutant(path, number, "\n".join([*rows[:number - 1], "\t;", *rows[number:]]), f"without {row.strip()}")


def replacements(token, last, rest):
    """What else could stand there. A sign, a pointer's star and an address stay as they are."""
    if token in "+-" and not re.match(r"[\w)\]]", last[-1:]):
        return []
    if re.fullmatch(r"\d+", token) and last != ".":
        return [str(int(token) + 1)]
    if token == "!" and rest.startswith("="):
        return []
    return SWAPS.get(token, [])


class Tree:
    """A copy of the tree in which one file at a time is changed."""

    def __init__(self, directory, make):
        self.root = directory / "tree"
        self.make = make
        self.root.mkdir(parents=True, exist_ok=True)
        for name in subprocess.run(["git", "ls-files", "-z"], cwd=gcov.ROOT, capture_output=True, text=True,
                                   check=True).stdout.split("\0"):
            old, new = gcov.ROOT / name, self.root / name
            if name and old.is_file() and (not new.exists() or old.read_bytes() != new.read_bytes()):
                new.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(old, new)
                shutil.copymode(old, new)
        (self.root / "build").mkdir(exist_ok=True)
        for name in ("packages", "apt"):
            link = self.root / "build" / name
            if not link.exists():
                link.symlink_to(gcov.ROOT / "build" / name)

    def build(self, *targets, **variables):
        return subprocess.run([self.make, "-s", *(f"{name}={value}" for name, value in variables.items()), *targets],
                              cwd=self.root, capture_output=True, text=True, check=False).returncode == 0

    def prepare(self):
        """Build all tests, so that each fault needs one source only."""
        if not self.build("-j2", "unit-programs", CFLAGS=" ".join(OPTIMISED)):
            sys.exit("the tests do not build")

    def machine_code(self, path):
        """The object of a source; None if it does not compile."""
        target = "build/release/" + path.removesuffix(".c") + ".o"
        return (self.root / target).read_bytes() if self.build(target, CFLAGS=" ".join(OPTIMISED)) else None

    def notices(self, test):
        """Does the test fail with the tree as it is? None if it cannot be linked."""
        program = f"build/release/tests/unit/{test}"
        if not self.build(program, CFLAGS=" ".join(OPTIMISED)):
            return None
        try:
            return subprocess.run([self.root / program], cwd=self.root, capture_output=True, timeout=SLOW_SECONDS,
                                  check=False).returncode != 0
        except subprocess.TimeoutExpired:
            return True


def map_lines(measured, rooms):
    """{room: {path: {line: tests that run it}}}, and None for the tests of lines that none runs."""
    found = {}
    for test, files in measured.items():
        for path, (lines, _) in files.items():
            room = gcov.room_of(path, rooms)
            for line, count in lines.items() if room and path.endswith(".c") else ():
                tests = found.setdefault(room, {}).setdefault(path, {}).setdefault(line, [])
                if count:
                    tests.append((count, test))
    return found


def changed_lines(commits):
    """The lines that a range of commits has changed, as they are now: {path: lines}."""
    changed, path = collections.defaultdict(set), ""
    for row in subprocess.run(["git", "diff", "-U0", commits], cwd=gcov.ROOT, capture_output=True, text=True,
                              check=True).stdout.splitlines():
        if row.startswith("+++ b/"):
            path = row[6:]
        elif hunk := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", row):
            changed[path].update(range(int(hunk[1]), int(hunk[1]) + int(hunk[2] or 1)))
    return changed


def choose(root, files, changed, chance):
    """All faults of a room, in an order of chance."""
    every = []
    for path, lines in files.items():
        wanted = set(lines) if changed is None else set(lines) & changed.get(path, set())
        every += mutants_of(path, (root / path).read_text(encoding="utf-8"), wanted)
    chance.shuffle(every)
    return every


def judge(tree, mutant, tests, whole):
    """ "killed", "survived", "same" (machine code) or "invalid"."""
    source = tree.root / mutant.path
    before = source.read_text(encoding="utf-8")
    try:
        source.write_text(mutant.text, encoding="utf-8")
        code = tree.machine_code(mutant.path)
        if code is None:
            return "invalid"
        if code == whole:
            return "same"
        # First those that run the line least often: they are about little else.
        for _, test in sorted(tests)[:TESTS_MAX]:
            if tree.notices(test):
                return "killed"
        return "survived"
    finally:
        source.write_text(before, encoding="utf-8")
        tree.machine_code(mutant.path)


def try_room(tree, room, files, changed, each, seconds):
    """How many faults were killed, and how many survived in lines that tests run, or do not run."""
    counts, end = collections.Counter(), time.monotonic() + seconds
    codes = {}
    for mutant in choose(tree.root, files, changed, random.Random(room)):
        if sum(counts.values()) >= each or time.monotonic() > end:
            break
        tests = files[mutant.path][mutant.line]
        if mutant.path not in codes:
            codes[mutant.path] = tree.machine_code(mutant.path)
        verdict = judge(tree, mutant, tests, codes[mutant.path])
        if verdict in ("invalid", "same"):
            continue
        if verdict == "survived":
            verdict = "survived" if tests else "not run"
            print(f"{mutant.path}:{mutant.line}: {mutant.what}: {verdict}", flush=True)
        counts[verdict] += 1
    return counts


def row_of(name, counts):
    tried = sum(counts.values())
    reached = counts["killed"] + counts["survived"]
    return (f"| {name} | {tried} | {100 * counts['killed'] / tried:.0f} % "
            f"| {f'''{100 * counts['killed'] / reached:.0f} %''' if reached else ''} |")


def main():
    build, directory, make, seconds, each, document, commits, *rooms = sys.argv[1:]
    tree = Tree(pathlib.Path(directory).resolve(), make)
    tree.prepare()
    found = map_lines(gcov.measure(build, pathlib.Path(directory) / "counts"), rooms)
    changed = changed_lines(commits) if commits else None
    rows, all_counts = [], collections.Counter()
    for room in [room for room in rooms if room in found]:
        counts = try_room(tree, room, found[room], changed, int(each), float(seconds))
        if counts:
            rows.append(row_of(f"`{room}/`", counts))
            print(rows[-1], flush=True)
        all_counts += counts
    if not all_counts:
        sys.exit("no fault was tried")
    table = "\n".join(["| room | faults | noticed | of those in lines that a unit test runs |", "|---|---|---|---|", *rows,
                       row_of("all", all_counts)])
    print(table)
    written.write(pathlib.Path(document) if document else None, "mutants", table)


main()
