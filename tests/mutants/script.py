# SPDX-License-Identifier: MIT
"""make mutants-script: put faults into the flame graph's script, and see whether a test in the browser notices.

    script.py DIRECTORY SECONDS EACH DOCUMENT

Of each file of the script, the first EACH faults of an order of chance, the same in each run, are tried, or as
many as come in SECONDS. DIRECTORY keeps what was found, so that a further run continues: tests that have not
changed do not run again without a fault, and faults that went unnoticed are tried again once tests have
changed. DOCUMENT has a table to write, or is empty.

All runs share one pytest and one browser, and faults go into the pages, so that nothing is built. Each test runs
once without a fault, while the browser counts which code of the script runs. A fault is shown only to tests that
run its code, first to those that noticed others, to quick ones, and to those that run most of the file's code: all
tests run what draws the page, few of them look at it. It counts as noticed if a test fails with it,
passes without it, and fails with it again: a test that fails on a busy machine decides nothing. test_access.py is
left out: it takes longest and judges elements, not what the script computes.
"""

import collections
import functools
import hashlib
import itertools
import json
import os
import pathlib
import random
import re
import signal
import sys
import time
import urllib.parse

import _pytest.runner
import pytest
import selenium.common.exceptions
import urllib3.exceptions

import faulty

sys.path.insert(0, str(faulty.ROOT / "tests"))
import written

FOLDER = "output/flamegraph"
PATIENCE_SECONDS = 40   # for one order to the browser: a fault may be a loop without an end
FAULT_SECONDS = 60      # for the tests of one fault; what they have not noticed by then counts as not noticed
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
SCRIPT = re.compile(r"<script><!\[CDATA\[(.*)\]\]></script>", re.DOTALL)


class Fault:
    """A part of the script as it is and with a fault; key is the same for the same fault of the same text."""

    def __init__(self, mutant, clean):
        self.path, self.clean, self.faulty = mutant.path, clean, mutant.text
        self.name = f"{mutant.path}:{mutant.line}: {mutant.what}"
        self.key = digest(str(mutant.path), mutant.text)
        at = len(os.path.commonprefix([clean, mutant.text]))
        self.offset = at + len(clean[at:]) - len(clean[at:].lstrip())

    def put_into(self, page):
        assert page.count(self.clean) == 1, f"the page does not have {self.path} as it is now: run make"
        return page.replace(self.clean, self.faulty)


class Judge:
    """A plugin of pytest that runs the collected tests as often as faults need it."""

    def __init__(self, faults, store, seconds):
        self.faults, self.store, self.seconds = faults, store, seconds
        self.fault = None           # the one that pages have
        self.counting = False       # whether the browser counts what runs
        self.browser = None
        self.hung = False
        self.pages = 0
        self.reached = set()        # keys of the faults whose code has run

    # -- The browser --

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef):
        outcome = yield
        if fixturedef.argname == "browser":
            self.watch(outcome.get_result())

    def watch(self, browser):
        """Have pages get the fault, and orders that take too long fail."""
        self.browser, self.hung = browser, False
        browser.command_executor.set_timeout(PATIENCE_SECONDS)
        browser.set_page_load_timeout(PATIENCE_SECONDS / 2)
        browser.set_script_timeout(PATIENCE_SECONDS / 2)
        get, refresh, execute = browser.get, browser.refresh, browser.execute
        browser.get = lambda address: (self.count(), get(self.changed_page(address)))
        browser.refresh = lambda: (self.count(), refresh())
        browser.execute = functools.partial(self.execute, execute)
        if self.counting:
            self.start_counting()

    def execute(self, execute, *arguments, **named):
        try:
            return execute(*arguments, **named)
        except (urllib3.exceptions.HTTPError, selenium.common.exceptions.TimeoutException):
            if not self.hung:
                self.hung = True
                self.end_chromium()
            raise

    def end_chromium(self):
        """A page that hangs would keep each further order waiting."""
        driver = self.browser.service.process.pid
        for task in pathlib.Path(f"/proc/{driver}/task").iterdir():
            for child in (task / "children").read_text().split():
                os.kill(int(child), signal.SIGKILL)

    def changed_page(self, address):
        """The address of a copy with the fault; to be counted in detail, each script must differ from those before it."""
        parts = urllib.parse.urlsplit(address)
        path = pathlib.Path(urllib.parse.unquote(parts.path))
        page = path.read_text(encoding="utf-8") if parts.scheme == "file" and (self.fault or self.counting) else ""
        if not SCRIPT.search(page):
            return address
        self.pages += 1
        copy = path.with_name("changed-" + path.name)
        copy.write_text(self.fault.put_into(page) if self.fault else page.replace("]]></script>", f"/* {self.pages} */]]></script>"),
                        encoding="utf-8")
        return urllib.parse.urlunsplit(parts._replace(path=urllib.parse.quote(str(copy))))

    # -- What runs --

    def start_counting(self):
        self.browser.execute_cdp_cmd("Profiler.enable", {})
        self.browser.execute_cdp_cmd("Profiler.startPreciseCoverage", {"callCount": True, "detailed": True})

    def count(self):
        """Note the faults whose code has run since the last count."""
        if not self.counting or not self.browser:
            return
        for script in self.browser.execute_cdp_cmd("Profiler.takePreciseCoverage", {})["result"]:
            path = pathlib.Path(urllib.parse.unquote(urllib.parse.urlsplit(script["url"]).path))
            ranges = [part for function in script["functions"] for part in function["ranges"]]
            if script["url"].startswith("file:") and path.exists() and any(part["count"] for part in ranges):
                self.reached |= self.run_by(path, ranges)
        # Counting keeps the scripts of all pages, until it ends.
        self.browser.execute_cdp_cmd("Profiler.stopPreciseCoverage", {})
        self.start_counting()

    def run_by(self, path, ranges):
        """The faults whose code has run: where the smallest range around it has a count."""
        text = SCRIPT.search(path.read_text(encoding="utf-8"))[1]
        runs = [0] * len(text)
        for part in sorted(ranges, key=lambda part: part["startOffset"] - part["endOffset"]):
            runs[part["startOffset"]:part["endOffset"]] = [part["count"]] * (part["endOffset"] - part["startOffset"])
        begins = {path: text.index(clean) for path, clean in {fault.path: fault.clean for fault in self.faults}.items()}
        return {fault.key for fault in self.faults if runs[begins[fault.path] + fault.offset]}

    # -- Runs --

    def fails(self, item, fault):
        """Does the test fail with this fault? The fixtures of the session stay."""
        self.fault = fault
        try:
            reports = _pytest.runner.runtestprotocol(item, log=False, nextitem=item.session)
        finally:
            self.fault = None
        if self.hung:
            item.session._setupstate.teardown_exact(None)
            self.browser, self.hung = None, False
        return any(report.failed for report in reports)

    def notices(self, item, fault):
        return self.fails(item, fault) and not self.fails(item, None) and self.fails(item, fault)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        if session.testsfailed:
            raise session.Interrupted("the tests cannot be collected")
        todo = [fault for fault in self.faults if self.store.is_open(fault)]
        if todo:
            self.judge(todo, self.run_clean(session))
            session._setupstate.teardown_exact(None)
        return True

    def run_clean(self, session):
        """The tests that pass without a fault, each with its seconds and the faults whose code it runs."""
        passed = []
        self.counting = True
        for item in session.items:
            run = self.store.run_of(item)
            if not run:
                self.reached = set()
                begin = time.monotonic()
                failed = self.fails(item, None)
                seconds = time.monotonic() - begin
                self.count()
                run = self.store.add_run(item, seconds, self.reached, failed and self.fails(item, None))
            if run["fails"]:
                print(f"fails without a fault: {item.nodeid}", flush=True)
            else:
                passed.append((item, run["seconds"], run["reached"]))
        if self.counting and self.browser:
            self.browser.execute_cdp_cmd("Profiler.stopPreciseCoverage", {})
        self.counting = False
        print(f"{len(passed)} tests take {sum(seconds for _, seconds, _ in passed):.0f} s without a fault", flush=True)
        return passed

    def judge(self, todo, passed):
        if not self.browser:
            self.fails(passed[-1][0], None)
        noticed = collections.Counter()     # by part of the script and test
        broken = {fault.key for fault in todo if self.is_broken(fault)}
        files = collections.defaultdict(set)    # the keys of all faults of each
        for fault in self.faults:
            files[fault.path].add(fault.key)
        end = time.monotonic() + self.seconds
        for fault in todo:
            if time.monotonic() > end:
                break
            begin = time.monotonic()
            tests = sorted(((seconds / (1 + noticed[fault.path, item.nodeid]) / len(files[fault.path].intersection(reached)) ** 2,
                             item.nodeid, item)
                            for item, seconds, reached in passed if fault.key in reached), key=lambda test: test[:2])
            outcome, by = "survived" if tests else "not run", None
            if fault.key in broken:
                outcome = "invalid"
            else:
                shown = itertools.takewhile(lambda _, begin=begin: time.monotonic() - begin < FAULT_SECONDS, tests)
                by = next((item.nodeid for _, _, item in shown if self.notices(item, fault)), None)
            if by:
                noticed[fault.path, by] += 1
                outcome = "killed"
            self.store.add(fault, outcome, by)
            print(f"{fault.name}: {outcome}{' by ' + by if by else ''}, {time.monotonic() - begin:.0f} s", flush=True)

    def is_broken(self, fault):
        """Does the script no longer parse?"""
        return self.browser.execute_script("try { new Function('\"use strict\";' + arguments[0]); return false; } catch (e) { return true; }",
                                           fault.faulty)


def digest(*texts):
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:24]


class Store:
    """What was found, in a file: of faults, and of the tests without a fault, as long as they and the script are the same."""

    def __init__(self, path, faults):
        self.path = path
        self.found, self.runs = json.loads(path.read_text()) if path.exists() else ({}, {})
        folder = faulty.ROOT / "tests/browser"
        self.texts = {file.name: file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.[pc]*"))}
        self.tests = digest(*self.texts.values())
        self.faults = digest(*(fault.key for fault in faults), *sorted({fault.clean for fault in faults}))

    def outcome(self, fault):
        """None if it is not known."""
        return self.found.get(fault.key, {}).get("outcome")

    def is_open(self, fault):
        found = self.found.get(fault.key)
        return not found or found["outcome"] in ("survived", "not run") and found["tests"] != self.tests

    def add(self, fault, outcome, by):
        self.found[fault.key] = {"name": fault.name, "outcome": outcome, "by": by, "tests": self.tests}
        self.write()

    def state(self, item):
        return digest(self.texts[item.path.name], self.texts["conftest.py"], self.texts["make_flamegraph.c"], self.faults)

    def run_of(self, item):
        run = self.runs.get(item.nodeid)
        return run if run and run["state"] == self.state(item) else None

    def add_run(self, item, seconds, reached, fails):
        self.runs[item.nodeid] = {"state": self.state(item), "seconds": seconds, "reached": sorted(reached), "fails": fails}
        self.write()
        return self.runs[item.nodeid]

    def write(self):
        self.path.write_text(json.dumps([self.found, self.runs], indent=1))


def table(every, chosen, store):
    rows = ["| file | possible faults | tried | noticed | not | not run by a test | noticed |", "|---|---|---|---|---|---|---|"]
    sums = collections.Counter()

    def row(name, counts):
        tried = counts["killed"] + counts["survived"] + counts["not run"]
        share = f"{100 * counts['killed'] / tried:.0f} %" if tried else ""
        rows.append(f"| {name} | {counts['possible']:,} | {tried} | {counts['killed']} | {counts['survived']} | {counts['not run']} "
                    f"| {share} |")

    for path, faults in every.items():
        counts = collections.Counter(store.outcome(fault) for fault in faults[:chosen])
        counts["possible"] = len(faults)
        row(f"`{path}`", counts)
        sums += counts
    row("all", sums)
    return "\n".join(rows)


def main():
    directory, seconds, each, document = sys.argv[1:]
    pathlib.Path(directory).mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("LJSPY", str(faulty.ROOT / "build/release/ljspy"))
    every = {}
    for path in sorted((faulty.ROOT / FOLDER).glob("*.js")):
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(faulty.ROOT)
        every[name] = [Fault(mutant, text) for mutant in
                       faulty.mutants_of(name, text, range(1, text.count("\n") + 2), TOKEN, SWAPS, CALL)]
        random.Random(FOLDER).shuffle(every[name])
    # The first ones of all files, then the second ones, so that each file has its share when the time is over.
    rounds = itertools.zip_longest(*(faults[:int(each)] for faults in every.values()))
    faults = [fault for faults in rounds for fault in faults if fault]
    store = Store(pathlib.Path(directory) / "script.json", faults)
    judge = Judge(faults, store, float(seconds))
    status = pytest.main(["-q", "-s", "-k", "not firefox", f"--ignore={faulty.ROOT}/tests/browser/test_access.py", str(faulty.ROOT / "tests/browser")], plugins=[judge])
    if status:
        sys.exit(f"pytest ended with {status!r}")
    found = table(every, int(each), store)
    print(found)
    written.write(pathlib.Path(document) if document else None, "mutants-script", found)


if __name__ == "__main__":
    main()
