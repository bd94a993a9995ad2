# SPDX-License-Identifier: MIT
"""make mutants: put one fault after another into the code, and see whether a unit test
that runs the line fails, or else an end-to-end test of the room.

    mutants.py BUILD DIRECTORY MAKE SECONDS EACH SAMPLE ENDS DOCUMENT COMMITS ROOM...

BUILD is made with VARIANT=coverage: it tells which tests run a line. Faults go into a copy of
the tree in DIRECTORY. Of each room EACH faults are tried, or as many as
come in SECONDS; with COMMITS, a range of git's, only in lines that these have changed. A
fault that leaves the machine code as it was is none. A unit test that takes too long, twice, has
noticed, unless it also takes so long without the fault: then the machine is busy. Of the faults
that no unit test notices, ENDS of each group of rooms are shown to the end-to-end tests of ends.txt.
DOCUMENT has the tables to write, and what they have of rooms that are not tried now; or it is empty.

The sample of a room is the same in each run, for the same code and the same SAMPLE, a number: tests
that were written with one in sight are judged by another.

The faults are made by this program, not by a general tool: those work on text, without
C's comments, strings and constants, and most of what they make does not compile.
"""

import collections
import concurrent.futures
import contextlib
import itertools
import os
import pathlib
import queue
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time

import faulty
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
OPTIMISED = ("-O1", "-g", "-w")  # some tests read their own debug info; faults are compared without
TESTS_MAX = 10          # of those that run a line; see best_tests()
SLOW_SECONDS = 20       # a test that takes so much longer than without a fault has noticed
WORKERS = os.cpu_count()
ENDS_SECONDS = 90       # for the end-to-end tests of one fault; what they say later is not waited for
RUNS = itertools.count()
GROUPS = ["memory", "luajit-layouts", "unwind", "src/linux", "src/allocations", "src/sampler", "output"]


def best_tests(path, tests):
    """
    Of tests that run a line of this source, with how often, those that are most likely to notice a fault: they are
    named after the source, or else run the line least often, and so are about little else. Those that are about the
    source try many cases, and so run its lines often.
    """
    name = pathlib.Path(path).stem
    return [test for _, test in sorted(tests, key=lambda of: (name not in of[1], of))[:TESTS_MAX]]


class Tree:
    """A copy of the tree, built. Programs with a fault are linked beside those without one."""

    def __init__(self, directory, make):
        self.root = faulty.copy_tree(directory / "tree")
        self.make = make
        self.known = {}
        self.codes = {}
        self.seconds = {}
        self.one_at_a_time = threading.Lock()

    def run_make(self, *arguments):
        return subprocess.run([self.make, "--no-print-directory", *arguments, f"CFLAGS={' '.join(OPTIMISED)}"],
                              cwd=self.root, env=os.environ | {"MAKEFLAGS": ""}, capture_output=True, text=True,
                              check=False)

    def prepare(self, *targets):
        """Build all tests, so that each fault needs one source only."""
        done = self.run_make("-s", f"-j{WORKERS}", *targets)
        if done.returncode:
            sys.exit(f"the tests do not build: {done.stderr[-2000:]}")

    def command(self, target):
        """What makes a target, which is its last command."""
        if target not in self.known:
            told = self.run_make("--dry-run", "--always-make", target).stdout.replace("\\\n", " ")
            self.known[target] = shlex.split(told.strip().splitlines()[-1])
        return self.known[target]

    def seconds_of(self, test):
        """How long a test takes without a fault, under another name, as with one; None if it does not pass."""
        with self.one_at_a_time:
            if test not in self.seconds:
                whole = self.root / "build/release/tests/unit" / test
                other = whole.with_name(f"{test}.without")
                shutil.copy(whole, other)
                begin = time.monotonic()
                passes = subprocess.run([other], cwd=self.root, capture_output=True, check=False).returncode == 0
                self.seconds[test] = time.monotonic() - begin if passes else None
                other.unlink()
                if not passes:
                    print(f"{test} fails without a fault", flush=True)
        return self.seconds[test]

    def compile(self, path, source, result):
        """The object of a source, which stands for the one at path. None if it does not compile."""
        command = self.command("build/release/" + path.removesuffix(".c") + ".o")
        command = [word for word in command if word not in ("-MMD", "-MP")]
        command[command.index("-o"):] = ["-g0", "-o", str(result), str(source)]
        done = subprocess.run(command, cwd=self.root, env=os.environ | {"CCACHE_DISABLE": "1"}, capture_output=True,
                              check=False)
        return result.read_bytes() if done.returncode == 0 else None

    def link(self, target, path, thing, result):
        """A program in which this object is in the place of that of the source at path."""
        whole = "build/release/" + path.removesuffix(".c") + ".o"
        command = [str(thing) if word == whole else word for word in self.command(target)]
        command[command.index("-o") + 1] = str(result)
        return subprocess.run(command, cwd=self.root, capture_output=True, check=False).returncode == 0


class Worker:
    """Tries one fault at a time, in a folder of its own."""

    def __init__(self, tree, number):
        self.tree = tree
        self.number = number
        self.directory = tree.root / "build" / f"worker-{number}"
        self.directory.mkdir(exist_ok=True)

    def machine_code(self, mutant):
        """None if it does not compile; False if nothing has changed."""
        source, thing = self.directory / "fault.c", self.directory / "fault.o"
        source.write_text(mutant.text, encoding="utf-8")
        code = self.tree.compile(mutant.path, source, thing)
        if mutant.path not in self.tree.codes:
            source.write_text((self.tree.root / mutant.path).read_text(encoding="utf-8"), encoding="utf-8")
            self.tree.codes[mutant.path] = self.tree.compile(mutant.path, source, self.directory / "whole.o")
        return code != self.tree.codes[mutant.path] and code

    def notices(self, test, path):
        """Does the test fail? It may look for programs beside itself, so it lies beside the others."""
        program = self.tree.root / f"build/release/tests/unit/{test}.worker-{self.number}"
        without = program.with_name(f"{program.name}.without")
        if not self.tree.link(f"build/release/tests/unit/{test}", path, self.directory / "fault.o", program):
            raise RuntimeError(f"{test} cannot be linked")
        shutil.copy(program.with_name(test), without)
        try:
            return because_of_fault(program, without, SLOW_SECONDS + 3 * self.tree.seconds_of(test), self.tree.root)
        finally:
            program.unlink()
            without.unlink()

    def judge(self, mutant, tests):
        """ "killed", "survived", "same" (machine code) or "invalid"."""
        code = self.machine_code(mutant)
        if not code:
            return "invalid" if code is None else "same"
        best = [test for test in best_tests(mutant.path, tests) if self.tree.seconds_of(test) is not None]
        best.sort(key=self.tree.seconds_of)
        return "killed" if any(self.notices(test, mutant.path) for test in best) else "survived"

    def ends_notice(self, mutant, ends):
        """Does an end-to-end test fail? None if there are none of the room."""
        if not ends or not self.machine_code(mutant):
            return None
        place = self.directory / "release"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self.tree.root / "build/release/tests", place / "tests",
                        ignore=shutil.ignore_patterns("*.o", "*.d", "unit"))
        for name in ("ljspy", "tests/exactness/exactness", "tests/heap/show_heap"):
            (place / name).unlink(missing_ok=True)
            if not self.tree.link(f"build/release/{name}", mutant.path, self.directory / "fault.o", place / name):
                return None
        return ends_fail(self.tree.root, place / "ljspy", ends)


def marked(mark):
    """The processes that were started with this in their environment, and what they have started."""
    for environ in pathlib.Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark in environ.read_bytes():
                yield int(environ.parent.name)


def fails(command, seconds, env=os.environ, **options):
    """
    Does it? None if it takes longer. It has a process group of its own, as a fault may kill that, and so may what
    it has started: nothing of it may stay, as it may spin for ever.
    """
    name, value = "FAULT_OF", f"{os.getpid()}.{next(RUNS)}"
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          start_new_session=True, env=env | {name: value}, **options) as process:
        try:
            return process.wait(timeout=seconds) != 0
        except subprocess.TimeoutExpired:
            return None
        finally:
            while left := list(marked(f"{name}={value}\0".encode())):
                for pid in left:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                process.poll()    # so that it is no zombie


def because_of_fault(program, without, seconds, root):
    """
    Does this test fail, or take too long, because of the fault in it? A busy machine does that to tests, too: the
    same test without the fault has to pass in that time, and the one with it to fail again, or take too long again.
    """
    if fails([program], seconds, cwd=root) is False or fails([without], seconds, cwd=root) is not False:
        return False
    return fails([program], seconds, cwd=root) is not False


def ends_fail(root, program, ends):
    """Does one of these fail with this ljspy? They have a bounded time."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *shlex.split(ends)]
    environment = os.environ | {"LJSPY": str(program), "PYTHONDONTWRITEBYTECODE": "1"}
    return bool(fails(command, ENDS_SECONDS, cwd=root, env=environment))


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
    for path, lines in sorted(files.items()):
        wanted = set(lines) if changed is None else set(lines) & changed.get(path, set())
        every += faulty.mutants_of(path, (root / path).read_text(encoding="utf-8"), wanted, TOKEN, SWAPS, CALL)
    chance.shuffle(every)
    return every


def try_room(workers, room, files, every, each, seconds):
    """The first faults of the list, each with what became of it."""
    tried, end = [], time.monotonic() + seconds

    def one(mutant):
        if time.monotonic() > end:
            return None
        worker = workers.get()
        try:
            return worker.judge(mutant, files[mutant.path][mutant.line])
        finally:
            workers.put(worker)

    left = iter(every)
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        while missing := each - sum(verdict in ("killed", "survived", "not run") for _, verdict in tried):
            batch = list(itertools.islice(left, missing))
            verdicts = list(pool.map(one, batch))
            for mutant, verdict in zip(batch, verdicts):
                if verdict == "survived" and not files[mutant.path][mutant.line]:
                    verdict = "not run"
                if verdict in ("survived", "not run"):
                    print(f"{mutant.path}:{mutant.line}: {mutant.what}: {verdict}", flush=True)
                if verdict:
                    tried.append((mutant, verdict))
            if not batch or None in verdicts:
                break
    return tried


def read_ends():
    """{room or group: arguments of pytest}."""
    rows = (pathlib.Path(__file__).parent / "ends.txt").read_text(encoding="utf-8").splitlines()
    return dict(row.split(None, 1) for row in rows if row and not row.startswith("#"))


def try_ends(tree, worker, survivors, ends_of, count, kept):
    """Show some of a group's survivors to end-to-end tests: [tried, noticed]."""
    works = {}
    for room, mutant in survivors:
        ends = ends_of.get(gcov.room_of(mutant.path, list(ends_of)))
        if kept["ends_tried"] >= count:
            break
        if ends not in works:
            works[ends] = not ends_fail(tree.root, tree.root / "build/release/ljspy", ends)
            if not works[ends]:
                print(f"they fail without a fault, too: {ends}", flush=True)
        noticed = worker.ends_notice(mutant, ends) if works[ends] else None
        if noticed is not None:
            kept["ends_tried"] += 1
            kept["ends_noticed"] += noticed
            print(f"{mutant.path}:{mutant.line}: {mutant.what}: {'' if noticed else 'not '}noticed by {ends}",
                  flush=True)


def percent(part, whole):
    return f"{100 * part / whole:.0f} %" if whole else ""


def row_of(name, room):
    judged = room["killed"] + room["survived"] + room["not run"]
    return (f"| {name} | {room['faults']:,} | {judged} | {room['killed']} | {room['survived']} | {room['not run']} "
            f"| {room['invalid']} | {percent(room['killed'], judged)} |")


def share(rooms):
    """What part of all faults of these rooms is noticed, by their samples: each counts by the faults it has."""
    whole = part = 0
    for room in rooms:
        judged = room["killed"] + room["survived"] + room["not run"]
        if judged:
            whole += room["faults"]
            part += room["faults"] * room["killed"] / judged
    return part / whole if whole else 0


def rows_of(document):
    """The rows of the tables that a document has, each a list of what its cells say."""
    found = re.search(r"(?ms)^<!-- mutants: written by .*?^<!-- end of mutants -->$", document)
    return [[cell.strip(" `").replace(",", "") for cell in row.strip("|").split("|")]
            for row in (found[0] if found else "").splitlines() if row.startswith("| `")]


def read_tables(document):
    """What the tables of a document say of rooms that there are still, and of groups, to be written again."""
    kept = {"rooms": {}, "ends": {}}
    for name, *cells in rows_of(document):
        name = name.rstrip("/")
        if len(cells) == 5 and name in GROUPS and cells[3]:
            found, tried = cells[3].split(" of ")
            kept["ends"][name] = {"ends_tried": int(tried), "ends_noticed": int(found)}
        elif len(cells) == 7 and (gcov.ROOT / name).is_dir():
            faults, _, killed, survived, not_run, invalid = map(int, cells[:6])
            kept["rooms"][name] = {"faults": faults, "killed": killed, "survived": survived, "not run": not_run,
                                   "invalid": invalid}
    return kept


def keep_room(kept, room, row):
    """The row of a room that was tried. What end-to-end tests have noticed in its group was of other samples."""
    kept["rooms"][room] = row
    kept["ends"].pop(gcov.room_of(room + "/", GROUPS), None)


def tables(kept):
    rows, groups = [], []
    for group in GROUPS:
        names = [room for room in kept["rooms"] if gcov.room_of(room + "/", [group])]
        rooms = [kept["rooms"][room] for room in names]
        rows += [row_of(f"`{room}/`", kept["rooms"][room]) for room in names]
        if rooms:
            whole = collections.Counter()
            for room in rooms:
                whole.update(room)
            noticed = share(rooms)
            ends = kept["ends"].get(group, {"ends_tried": 0, "ends_noticed": 0})
            tried, found = ends["ends_tried"], ends["ends_noticed"]
            judged = whole["killed"] + whole["survived"] + whole["not run"]
            both = f"{100 * (noticed + (1 - noticed) * found / tried):.0f} %" if tried else ""
            groups.append(f"| `{group}/` | {judged} | {percent(whole['killed'], judged)} | {100 * noticed:.0f} % "
                          f"| {f'{found} of {tried}' if tried else ''} | {both} |")
    return ("\n".join(["| rooms | faults tried | noticed by unit tests | of all faults there "
                       "| of the others, by end-to-end tests | by both, of all |",
                       "|---|---|---|---|---|---|", *groups]),
            "\n".join(["| room | possible faults | tried | noticed by unit tests | not, though one runs the line "
                       "| in lines that none runs | did not compile | noticed |",
                       "|---|---|---|---|---|---|---|---|", *rows]))


def write_tables(document, kept):
    """To the document, if there is one. They are returned as well."""
    table = "\n\n".join(tables(kept))
    written.write(document, "mutants", table)
    return table


def main():
    build, directory, make, seconds, each, sample, ends_count, document, commits, *rooms = sys.argv[1:]
    directory = pathlib.Path(directory).resolve()
    tree = Tree(directory, make)
    tree.prepare("unit-programs", *(["everything"] if int(ends_count) else []))
    found = map_lines(gcov.measure(build, directory / "counts"), rooms)
    changed = changed_lines(commits) if commits else None
    document = pathlib.Path(document) if document else None
    kept = read_tables(document.read_text(encoding="utf-8") if document else "")
    workers, survivors, any_tried = queue.Queue(), collections.defaultdict(list), False
    for number in range(WORKERS):
        workers.put(Worker(tree, number))
    for room in [room for room in rooms if room in found]:
        every = choose(tree.root, found[room], changed, random.Random(f"{room} {sample}"))
        tried = try_room(workers, room, found[room], every, int(each), float(seconds))
        counts = collections.Counter({"killed": 0, "survived": 0, "not run": 0, "same": 0, "invalid": 0})
        counts.update(verdict for _, verdict in tried)
        if tried:
            keep_room(kept, room, {"faults": len(every), **counts})
            print(row_of(f"`{room}/`", kept["rooms"][room]), flush=True)
            survivors[gcov.room_of(room + "/", GROUPS)] += [
                (room, mutant) for mutant, verdict in tried if verdict in ("survived", "not run")]
        any_tried |= bool(tried)
        write_tables(document, kept)
    if not any_tried:
        sys.exit("no fault was tried")
    for group, list_of in survivors.items():
        if group and int(ends_count):
            random.Random(f"{group} {sample}").shuffle(list_of)
            kept["ends"][group] = {"ends_tried": 0, "ends_noticed": 0}
            try_ends(tree, workers.queue[0], list_of, read_ends(), int(ends_count), kept["ends"][group])
    print(write_tables(document, kept))


if __name__ == "__main__":
    main()
