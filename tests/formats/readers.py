# SPDX-License-Identifier: MIT
"""The programs that ljspy's formats are for, and what they understand of a file.

Each returns a file's totals: by function name, its own time and the time of all samples
that contain it, in nanoseconds.
"""

import base64
import json
import os
import re
import shutil
import subprocess
import time
import xml.etree.ElementTree
from collections import defaultdict

import pytest

SVG = "{http://www.w3.org/2000/svg}"
FLAMEGRAPH = "{http://github.com/jonhoo/inferno}"
# Of one program, and of a test, which may run several: beside others, a browser takes minutes.
LIMIT_SECONDS, TEST_SECONDS = 120, 900


def run(*argv, **options):
    """Run a program, which must succeed, and return its output."""
    result = subprocess.run([str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                            timeout=LIMIT_SECONDS, **options)
    assert result.returncode == 0, result.stderr.decode(errors="replace")[-2000:]
    return result.stdout.decode()


def totals_of_stacks(stacks):
    """Totals of stacks, each a list of names, root first, and a weight."""
    own, total = defaultdict(int), defaultdict(int)
    for names, weight in stacks:
        if names:
            own[names[-1]] += weight
        for name in set(names):
            total[name] += weight
    return {name: (own[name], total[name]) for name in total}


def parse_folded(text):
    """Stacks, as totals_of_stacks() takes them."""
    stacks = []
    for line in text.splitlines():
        stack, weight = line.rsplit(" ", 1)
        stacks.append((stack.split(";"), int(weight)))
    return stacks


class Json:
    """A script that reads the JSON format."""

    def __init__(self, path):
        self.document = json.loads(path.read_text(encoding="utf-8"))
        self.functions = self.document["functions"]

    def names(self, stack):
        frames = (self.document["frames"][i] for i in self.document["stacks"][stack])
        return [self.functions[frame["function"]]["name"] for frame in frames]

    def totals(self, weight="cpu_ns"):
        return totals_of_stacks((self.names(s["stack"]), s[weight]) for s in self.document["samples"])


class Inferno:
    """inferno, tools for flame graphs."""

    def __init__(self, directory):
        self.programs = directory / "bin"

    def collapse(self, path, *options):
        """perf script's text as folded stacks; the first frame is the thread's name."""
        return parse_folded(run(self.programs / "inferno-collapse-perf", *options, path))

    def perf_totals(self, path):
        return totals_of_stacks((names[1:], weight) for names, weight in self.collapse(path))

    def boxes(self, path):
        """The boxes drawn for folded stacks: (level, left edge, width, name); the root's level is lowest."""
        svg = run(self.programs / "inferno-flamegraph", "--minwidth", "0", path)
        boxes = []
        for group in xml.etree.ElementTree.fromstring(svg).iter(SVG + "g"):
            title, rect = group.find(SVG + "title"), group.find(SVG + "rect")
            if title is not None and rect is not None:
                name = re.fullmatch(r"(.*) \([\d,]+ samples, [\d.]+%\)", title.text, re.DOTALL)[1]
                boxes.append((-float(rect.get("y")), int(rect.get(FLAMEGRAPH + "x")),
                              int(rect.get(FLAMEGRAPH + "w")), name))
        return boxes

    def folded_totals(self, path):
        """Totals of the stacks that the boxes show: own time is the width under no box."""
        stacks, names, own = [], [], []

        def pop():
            stacks.append((names[1:], own.pop() * 1000))
            names.pop()

        levels = sorted({box[0] for box in self.boxes(path)})
        for y, x, width, name in sorted(self.boxes(path), key=lambda box: (box[1], box[0])):
            while len(names) > levels.index(y):
                pop()
            if own:
                own[-1] -= width
            names.append(name)
            own.append(width)
        while names:
            pop()
        return totals_of_stacks(stacks)


def dotted(name):
    """How pprof's format spells a name: see output/formats/pprof_name.h."""
    if re.match(r"\[(lost|vm|alloc): ", name):
        return name
    if found := re.fullmatch(r"(.*) \[(builtin|vm|jit)\]", name, re.DOTALL):
        return found[1] if found[2] == "builtin" else name
    if found := re.fullmatch(r"(.*) \[([^.]*)(\..*)?\]", name, re.DOTALL):
        return f"{found[1]} [{found[2]}]"
    if found := re.fullmatch(r"function <(.*?)(\.lua)?(:\d+)?>", name, re.DOTALL):
        return f"{found[1]}.function{found[3] or ''}"
    if found := re.fullmatch(r"(main chunk|\S+) (.*?)(\.lua)?(:\d+)?", name, re.DOTALL):
        return f"{found[2]}.{found[1]}{found[4] or ''}"
    return name


class Pprof:
    """go tool pprof."""

    def __init__(self, directory):
        self.program = directory / "pprof"

    def ask(self, path, *options):
        return run(self.program, *options, path, env=os.environ | {"PPROF_TMPDIR": str(path.parent)})

    def top(self, path, *options, unit="ns"):
        """Own and total by name, in the unit of the options."""
        text = self.ask(path, "-top", "-nodecount=0", "-nodefraction=0", "-edgefraction=0", f"-unit={unit}", *options)
        rows = re.findall(rf"^ *([\d.]+)(?:{unit})? +[\d.]+% +[\d.]+% +([\d.]+)(?:{unit})? +[\d.]+%  (.*)$", text, re.MULTILINE)
        return {name: (float(own), float(total)) for own, total, name in rows}

    def totals(self, path):
        return self.top(path)


class Speedscope:
    """speedscope in a browser, which exports what it imported."""

    def __init__(self, page, driver, directory):
        self.page = page
        self.driver = driver
        self.directory = directory

    def imported(self, path):
        script = self.directory / "profile.js"
        name, content = json.dumps(path.name), base64.b64encode(path.read_bytes()).decode()
        script.write_text(f'speedscope.loadFileFromBase64({name}, "{content}")')
        self.driver.get("about:blank")
        self.driver.get(f"{self.page.as_uri()}#localProfilePath={script}")
        self.driver.set_script_timeout(LIMIT_SECONDS)
        exported = self.driver.execute_async_script("""
            const done = arguments[0], make = URL.createObjectURL;
            URL.createObjectURL = (blob) => {
                clearInterval(timer);
                blob.text().then(done);
                return make.call(URL, new Blob([]));
            };
            const timer = setInterval(() => {
                window.dispatchEvent(new KeyboardEvent("keydown", { key: "s", ctrlKey: true }));
            }, 50);""")
        assert not [entry for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]
        return json.loads(exported)

    @staticmethod
    def stacks(document, profile):
        """The stacks of an evented profile: names and weight."""
        names, before = [], 0
        for event in profile["events"]:
            yield list(names), event["at"] - before
            before = event["at"]
            if event["type"] == "O":
                names.append(document["shared"]["frames"][event["frame"]]["name"])
            else:
                names.pop()

    def totals(self, path):
        """Totals of the merged profile, and of all threads together."""
        document = self.imported(path)
        merged, *threads = document["profiles"]
        return (totals_of_stacks(self.stacks(document, merged)),
                totals_of_stacks(stack for thread in threads for stack in self.stacks(document, thread)))


class Firefox:
    """The Firefox Profiler's own code, in its command line tool."""

    SESSION = "test"

    def __init__(self, directory, work):
        self.program = directory / "dist/profiler-cli.js"
        self.work = work
        self.environment = os.environ | {"PROFILER_CLI_SESSION_DIR": str(work)}
        self.server = None

    def ask(self, *arguments):
        return json.loads(run("node", self.program, *arguments, "--session", self.SESSION, "--json",
                              env=self.environment))

    def open(self, path):
        """Do what its command "load" does, but wait longer than its half second. The
        server ignores requests until it says that it is ready."""
        self.close()
        self.server = subprocess.Popen(["node", self.program, "--daemon", path, "--session", self.SESSION],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.environment)
        log = self.work / f"{self.SESSION}.log"
        deadline = time.monotonic() + LIMIT_SECONDS
        while not (log.exists() and "Profile loaded successfully" in log.read_text()):
            assert self.server.poll() is None and time.monotonic() < deadline, log.exists() and log.read_text()
            time.sleep(0.05)

    def close(self):
        if self.server:
            self.server.kill()
            self.server.wait()
            self.server = None

    def threads(self):
        return self.ask("thread", "list", "--limit", "0")["threads"]

    def functions(self, thread):
        return self.ask("thread", "functions", "--thread", thread["threadHandle"], "--limit", "0",
                        "--include-idle")["functions"]

    def markers(self, thread):
        """For each name: how many there are, and their durations in ms."""
        return self.ask("thread", "markers", "--thread", thread["threadHandle"], "--limit", "0")["byType"]

    def totals(self):
        own, total = defaultdict(float), defaultdict(float)
        for thread in self.threads():
            for function in self.functions(thread):
                own[function["name"]] += function["selfSamples"] * 1e6
                total[function["name"]] += function["totalSamples"] * 1e6
        return {name: (own[name], total[name]) for name in total}


class Callgrind:
    """callgrind_annotate."""

    def __init__(self):
        if not shutil.which("callgrind_annotate"):
            pytest.skip("valgrind is not installed")

    def ask(self, path, *options):
        return run("callgrind_annotate", "--threshold=100", *options, path, cwd=path.parent)

    def costs(self, path, *options):
        """Nanoseconds of each "file:function [object]"."""
        text = self.ask(path, "--auto=no", *options)
        rows = re.findall(r"^ *([\d,]+|\.)(?: \( *[\d.]+%\))? +(?:[\d,]+|\.)(?: \( *[\d.]+%\))? +([^ ]*:.*)$", text,
                          re.MULTILINE)
        return {name: 0 if cost == "." else int(cost.replace(",", "")) for cost, name in rows}

    def totals(self, path, functions):
        own, total = self.costs(path), self.costs(path, "--inclusive=yes")
        named = {}
        for function in functions:
            text = f"{function.get('file', '???')}:{function['name']}"
            text += f" [{function['module']}]" if "module" in function else ""
            named[function["name"]] = (own.get(text, 0), total.get(text, 0))
        return named
