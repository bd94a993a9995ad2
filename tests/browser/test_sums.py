# SPDX-License-Identifier: MIT
"""Whether the page adds up the samples of a recording as they are added up here, stack by stack: what frames, lists, cards
and searches tell, of the whole recording, of chosen samples, of each side of a comparison.

The recording is of chance, the same in each run: few functions in many stacks, with recursion, unequal weights of some ns,
several samples of one stack, samples in the root and in callees that were left out.
"""

import collections
import decimal
import random
import re

import pytest

from test_address import open_made

STATES = {"n": "no Lua", "i": "interpreted", "j": "compiled", "c": "C", "g": "garbage collection", "e": "leaving a trace"}
FUNCTIONS = ["a x.lua:1", "all", "b x.lua:5", "c y.lua:1", "d y.lua:9", "print [builtin]"]     # all: the root
LINES = [(0, "a x.lua:2"), (0, "a x.lua:3"), (1, "all"), (2, "b x.lua:6"), (3, "c y.lua:2"), (3, "c y.lua:4"), (4, "d y.lua:9"),
         (5, "print [builtin]")]
ROOT = 2
THREADS = [("7", "7", "one", "access"), ("7", "7", "one", "log"), ("7", "8", "two", ""), ("9", "9", "other", "access")]
UNTIL_US = 3000000

Sample = collections.namedtuple("Sample", "lines left_out state weight thread time")


def samples_of_chance(seed, count=60):
    """Few branches, so that frames are wide enough for a text."""
    chance = random.Random(seed)
    stacks = [(), (0,)]
    while len(stacks) < 14:
        stacks.append(chance.choice(stacks) + (chance.choice([0, 1, 3, 4, 5, 6, 7]),))
    times = sorted(chance.sample(range(1, UNTIL_US), count))
    return [Sample(stack := chance.choice(stacks) if k else (0,), bool(stack) and chance.random() < 0.1, chance.choice(list(STATES)),
                   chance.randint(1, 9), chance.randrange(len(THREADS)), times[k]) for k in range(count)]


class Written:
    """The sections of a page."""

    def __init__(self, samples):
        self.numbers, self.rows = {}, []
        below = collections.defaultdict(list)
        for sample in samples:
            for depth in range(len(sample.lines) + 1):
                if sample.lines[:depth] not in below[sample.lines[:max(depth - 1, 0)]]:
                    below[sample.lines[:max(depth - 1, 0)]].append(sample.lines[:depth])
        self.add((), below, samples)
        self.moments, before = [f"0 {UNTIL_US}"], 0
        for sample in samples:
            self.moments.append(f"{sample.time - before} {'-' if sample.left_out else ''}{self.numbers[sample.lines]} {sample.state} "
                                f"{sample.weight}" + (f" {sample.thread}" if sample.thread else ""))
            before = sample.time

    def add(self, lines, below, samples):
        self.numbers[lines] = len(self.rows)
        own = [sample for sample in samples if sample.lines == lines]
        states = collections.Counter()
        for sample in own:
            states[sample.state] += 0 if sample.left_out else sample.weight
        left_out = sum(sample.weight for sample in own if sample.left_out)
        fields = [f"{state}{weight}" for state, weight in states.items() if weight]
        self.rows.append(f"{len(lines)} {lines[-1] if lines else ROOT} {1 if lines and lines[-1] % 2 else 0} "
                         f"{sum(not sample.left_out for sample in own)} {left_out} {' '.join(fields)}".rstrip())
        for callee in below[lines]:
            if callee != lines:
                self.add(callee, below, samples)


def sections(samples, **more):
    letters = ["a" if name == "all" else "b" if "builtin" in name else "l" for name in FUNCTIONS]
    written = Written(samples)
    return {"functions": [f"{letter} " + name.replace(" ", "\t", 1) for letter, name in zip(letters, FUNCTIONS)],
            "lines": [f"{function} " + name.replace(" ", "\t", 1) for function, name in LINES], "frames": written.rows, **more}


@pytest.fixture
def open_chance(open_made):
    """Opens the recording of chance."""
    def open_chance(samples, address=""):
        made = sections(samples, moments=Written(samples).moments,
                        threads=[f"{pid} {tid} nginx\t{thread}\t{phase}" for pid, tid, thread, phase in THREADS])
        return open_made("worker", "#list=1&cpu=0&" + address, width=2560, **made)
    return open_chance


def labels_of(sample, by_line):
    """The frames of a sample, the root first."""
    names = [LINES[line][1] if by_line else FUNCTIONS[LINES[line][0]] for line in (ROOT, *sample.lines)]
    return [*names, "[left out]"] if sample.left_out else names


def rounded(number, digits):
    """As JavaScript's toFixed() does: of two equally near ones the larger."""
    return str(decimal.Decimal(number).quantize(decimal.Decimal(10) ** -digits, decimal.ROUND_HALF_UP))


def percent(part, whole):
    return rounded(100 * part / whole if whole else 0, 2) + " %"


def short_percent(part, whole):
    share = 100 * part / whole
    return "0" if not part else "< 0.1 %" if share < 0.1 else rounded(share, 1 if share < 10 else 0) + " %"


def frames_of(samples, by_line=False, inverted=False, focus=None):
    """For each path of labels from the root: the samples that pass through it, and those that end there."""
    total, own = collections.defaultdict(list), collections.defaultdict(list)
    for sample in samples:
        names = labels_of(sample, by_line)
        if focus and focus not in names:
            continue
        path = ["all", *(names[names.index(focus):] if focus else names[1:])] if not inverted else ["all", *reversed(names[1:])]
        for depth in range(1, len(path) + 1):
            total[tuple(path[:depth])].append(sample)
        own[tuple(path)].append(sample)
    return total, own


def weight(samples):
    return sum(sample.weight for sample in samples)


def told_of_frames(page):
    """Of each frame with a text: left, right, top, label and share, card."""
    return page.script("""
        const told = [];
        for (const group of document.querySelectorAll("[data-frame]")) {
            const box = group.querySelector("rect").getBoundingClientRect();
            const at = { clientX: box.x + box.width / 2, clientY: box.y + 8, bubbles: true };
            document.querySelector(".frames").dispatchEvent(new PointerEvent("pointermove", at));
            told.push([box.x, box.x + box.width, box.y, group.getAttribute("aria-label"), document.querySelector(".card").innerText]);
        }
        return told;""")


def by_path(found, up=-1):
    """What is told of frames by their path from the root; up is -1 if it is at the bottom."""
    paths = {}
    for left, right, y, label, card in found:
        middle = (left + right) / 2
        path = sorted((up * other[2], other[3].rsplit(", ", 1)[0]) for other in found if other[0] <= middle <= other[1] and up * (other[2] - y) <= 0)
        paths[tuple(name for _, name in path)] = label.rsplit(", ", 1)[1].replace("\u00a0", " "), " ".join(card.split())
    return paths


def states_text(samples):
    sums = collections.Counter()
    for sample in samples:
        sums[STATES[sample.state]] += sample.weight
    order = sorted(sums.items(), key=lambda pair: (-pair[1], [*STATES.values()].index(pair[0])))
    return ", ".join(f"{name} {percent(part, weight(samples))}" for name, part in order[:4]) + (", …" if len(order) > 4 else "")


def go(page, address):
    page.browser.execute_async_script("""const [address, done] = arguments;
        window.addEventListener("popstate", () => setTimeout(done), { once: true });
        location.hash = address;""", address)


def check_frames(page, samples, is_counted=True, **how):
    """Of what is left out, there is only the weight where the file has no samples."""
    total, own = frames_of(samples, **how)
    whole = weight(total["all",])
    shown = by_path(told_of_frames(page))
    assert len(shown) > 2 and set(shown) - set(total) == set()
    assert {path for path, passing in total.items() if weight(passing) > 0.02 * whole} - set(shown) == set()
    for path, (share, card) in shown.items():
        passing, ending = total[path], own[path]
        counted = [sample for sample in passing if is_counted or not sample.left_out]
        count = "1 sample" if len(counted) == 1 else f"{len(counted)} samples"
        assert (path, share) == (path, percent(weight(passing), whole))
        assert f"total {share} of all {weight(passing)} ns {count}" in card
        assert not counted or f"VM {states_text(counted)}" in card
        if set(how) <= {"by_line"} and ".lua" in path[-1]:
            compiled = [sample for sample in passing if sample.lines[len(path) - 2] % 2]
            assert f"compiled {percent(weight(compiled), weight(passing))} of its time" in card
        if not how.get("inverted"):
            ends = f"{percent(weight(ending), whole)} of all {weight(ending)} ns" if weight(ending) else "none"
            assert f" own {ends}" in card


def legend_of(samples):
    """The own shares of kinds of frames; the root has none."""
    sums = collections.Counter()
    for sample in samples:
        if sample.left_out or sample.lines:
            is_lua = not sample.left_out and ".lua" in LINES[sample.lines[-1]][1]
            kind = "left out" if sample.left_out else "builtin" if not is_lua else "Lua, compiled" if sample.lines[-1] % 2 else "Lua, interpreted"
            sums[kind] += sample.weight
    return {kind + " " + short_percent(part, sum(sums.values())) for kind, part in sums.items()}


CHOICES = {
    "": lambda sample: True,
    "process=7": lambda sample: sample.thread < 3,
    "thread=8": lambda sample: sample.thread == 2,
    "phase=access": lambda sample: sample.thread in (0, 3),
    "phase=no+phase": lambda sample: sample.thread == 2,
    "process=7&phase=access": lambda sample: sample.thread == 0,
    "from=1000000&to=2000000": lambda sample: 1000000 <= sample.time < 2000000,
    "to=1500000&process=7": lambda sample: sample.time < 1500000 and sample.thread < 3,
}


TREES = {"": {}, "lines=1": {"by_line": True}, "inverted=1": {"inverted": True}, "focus=2": {"focus": "b x.lua:5"}, "focus=0": {"focus": "a x.lua:1"}}


@pytest.mark.parametrize("address", TREES)
def test_frames_have_the_samples_that_pass_through_them(open_chance, address):
    """In each view and choice, whatever was shown before."""
    samples = samples_of_chance(1)
    page = open_chance(samples, address)
    check_frames(page, samples, **TREES[address])
    for choice, is_chosen in [*CHOICES.items(), ("", lambda sample: True)]:
        go(page, f"list=1&{choice}&{address}")
        check_frames(page, [sample for sample in samples if is_chosen(sample)], **TREES[address])


@pytest.mark.parametrize("focus", [3, 4])
def test_sandwich_has_the_ways_to_a_function_and_on(open_chance, focus):
    """Of recursion, the outermost call counts."""
    samples = [sample for sample in samples_of_chance(2) if FUNCTIONS[focus] in labels_of(sample, False)]
    page = open_chance(samples_of_chance(2), f"sandwich=1&focus={focus}")
    found = told_of_frames(page)
    [middle] = [y for _, _, y, label, _ in found if label.endswith(", 100.00\u00a0%") and label.startswith(FUNCTIONS[focus])][:1]
    callers, callees, ends = collections.defaultdict(list), collections.defaultdict(list), collections.Counter()
    for sample in samples:
        names = labels_of(sample, False)
        at = names.index(FUNCTIONS[focus])
        for depth in range(at, 0, -1):
            callers[tuple(reversed(names[depth:at + 1]))].append(sample)
        for depth in range(at + 1, len(names) + 1):
            callees[tuple(names[at:depth])].append(sample)
        ends[tuple(names[at:])] += sample.weight
    assert len(callers) > 1 and len(callees) > 2
    for paths, up, told in ((callers, -1, [one for one in found if one[2] <= middle]), (callees, 1, [one for one in found if one[2] >= middle])):
        shown = by_path(told, up)
        assert {path for path, passing in paths.items() if weight(passing) > 0.02 * weight(samples)} - set(shown) == set() == set(shown) - set(paths)
        for path, (share, card) in shown.items():
            passing = paths[path]
            assert (path, share) == (path, percent(weight(passing), weight(samples)))
            assert f"total {share} of all {weight(passing)} ns {len(passing)} sample" in card
            if paths is callers and len(path) > 1:
                assert f"total time of {FUNCTIONS[focus]} called this way" in card
            else:
                assert " own " + (f"{percent(ends[path], weight(samples))} of all {ends[path]} ns" if ends[path] else "none") in card


@pytest.mark.parametrize("choice", ["", "process=7", "from=1000000&to=2000000"])
def test_list_has_the_sums_of_functions(open_chance, choice):
    samples = [sample for sample in samples_of_chance(3) if CHOICES[choice](sample)]
    own, total = collections.Counter(), collections.Counter()
    for sample in samples:
        names = labels_of(sample, False)[1:]
        own.update({names[-1]: sample.weight} if names else {})
        total.update({name: sample.weight for name in set(names)})
    page = open_chance(samples_of_chance(3), choice)
    rows = [re.fullmatch(r"(0|[<\d. ]+%) (0|[<\d. ]+%) (.*)", " ".join(row.text.split())).groups()
            for row in page.all("[aria-label='Hottest functions'] tbody tr")]
    whole = sum(own.values())
    assert len(rows) > 4
    assert {name: (ends, passes) for ends, passes, name in rows} == {
        name: (short_percent(own[name], whole), short_percent(total[name], whole)) for name in total}
    assert [own[name] for _, _, name in rows] == sorted((own[name] for name in total), reverse=True)


def result_of(page, pattern):
    page.script("""const search = document.querySelector("input");
        search.value = arguments[0];
        search.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));""", pattern)
    page.wait(lambda: page.result() != "Searching …")
    return page.result().replace("\u00a0", " ")


@pytest.mark.parametrize("choice", ["", "thread=8", "from=1000000&to=2000000", "from=3000000&to=4000000"])
def test_search_tells_the_share_of_samples_with_a_match(open_chance, choice):
    CHOSEN = {"from=3000000&to=4000000": lambda sample: False, **CHOICES}[choice]
    samples = [sample for sample in samples_of_chance(4) if CHOSEN(sample)]
    for by_line in (False, True):
        page = open_chance(samples_of_chance(4), choice + ("&lines=1" if by_line else ""))
        for pattern in ("^all$", "^a x", "[cd] y", "builtin", "y.lua:4", "out"):
            matched = [sample for sample in samples if any(re.search(pattern, name) for name in labels_of(sample, by_line))]
            assert (pattern, result_of(page, pattern)) == (pattern, "Matched " + percent(weight(matched), weight(samples)))


@pytest.mark.parametrize("focus", [0, 3])
def test_search_in_a_sandwich_tells_the_share_of_its_samples(open_chance, focus):
    samples = [sample for sample in samples_of_chance(5) if FUNCTIONS[focus] in labels_of(sample, False)]
    page = open_chance(samples_of_chance(5), f"sandwich=1&focus={focus}")
    for pattern in ("^a x", "[cd] y", "builtin", "out"):
        matched = [sample for sample in samples if any(re.search(pattern, name) for name in labels_of(sample, False))]
        assert (pattern, result_of(page, pattern)) == (pattern, "Matched " + percent(weight(matched), weight(samples)))


@pytest.mark.parametrize("address, how", [("", {}), ("lines=1", {"by_line": True}), ("focus=0", {"focus": "a x.lua:1"})])
def test_each_side_of_a_comparison_has_its_own_samples(open_made, address, how):
    sides = [samples_of_chance(6), samples_of_chance(7, 40)]
    made = sections(sides[0], baseline=Written(sides[1]).rows)
    page = open_made("compare", "#colour=kind&" + address, width=2560, **made)
    for samples in sides:
        check_frames(page, samples, is_counted=False, **how)
        assert set(page.legend()) >= legend_of(samples)
        page.press("b")
