# SPDX-License-Identifier: MIT
"""Which stacks are legal: the list in each program, and its judge.

A program under programs/ lists, in comments, the only stacks it can be found in, one
expression per line:

    -- stack: main foo@foo heavy@heavy!
    -- stack: main [table.sort]! (@compare (spin | [error])?)?

An expression is a regular expression whose letters are frames, root first:

    main                the main chunk of the program
    main{LABEL}         the main chunk called LABEL
    NAME@TAG            the function whose first line ends in "-- @TAG", called NAME
    NAME@FILE:TAG       the same in another file beside the program
    "NAME"@TAG          a name that is not a word
    @TAG                the same without a name, as C code calls it
    _@TAG               the same with any name or none: LuaJIT names a function that a hook
                        or the collector calls after the instruction it interrupts
    NAME{LABEL:LINE}    a function of a chunk called LABEL
    {LABEL}             a function without name or line: stripped bytecode
    [string.gsub]       a function of LuaJIT's own library
    /REGEX/             any frame that matches; a dot stays within the frame
    spin                the busy loop of harness.lua; always a place of work
    A!                  a place of work: the program spends its time here
    A B   A | B   (A)   one after the other, either, grouping
    A? A* A+ A{m,n}     repetition

Every function on the way to a place of work is the leaf for a few instructions before
and after its calls. So a stack is

    whole   if it is all of a legal stack, down to a place of work,
    short   if it is the beginning of one,
    lost    if it says itself that a part of it is unknown; its caller's code has a
            function's name, so the first frame after an unknown one may have none,
    wrong   otherwise.

No stack may be wrong, few may be lost, and most of the others must be whole: this
catches a profiler that cuts the leaf off.

The lists leave out frames of native code and of the VM: see lua_frames().
"""

import collections
import pathlib
import re
from typing import NamedTuple

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"

# How many of the samples must be whole, and how many may be lost.
WHOLE_SHARE = 0.5
LOST_SHARE = 0.005
# If a function calls itself, ljspy cannot always distinguish a stack that a trace's exit is
# restoring from one that it has restored.
LOST_SHARE_COMPILED = 0.01
# A few samples are a large share of a short recording.
LOST_SAMPLES = 3


def limits(jit, program):
    """How large a share of the weight may be lost, and wrong."""
    return (LOST_SHARE_COMPILED if jit == "on" or program.name == "ffi" else LOST_SHARE), 0


COMPILED_MARK = "_[j]"
UNKNOWN_LINE = ":?"
# Stands for the name of a function called without one, in the line view.
UNNAMED = r"function <[^;]+>"

# Builtins that are in no library table: closures, which have their maker's name, and the
# metamethods that call, index or add FFI objects.
BUILTINS = {
    "coroutine.wrap_aux": r"(?:coroutine\.wrap|(?:coroutine[._])?wrap_aux)",
    "gmatch_aux": r"(?:string\.gmatch|(?:string[._])?gmatch_aux)",
    "ffi.metamethod": r"[\w.]*__\w+",
    "ipairs_aux": r"(?:ipairs|ipairs_aux)",
    "unpack": r"(?:table\.)?unpack",
}


class Sample(NamedTuple):
    """One line of folded output."""

    frames: tuple  # texts, root first, without the mark of compiled code
    compiled: bool  # the leaf runs as machine code of a trace
    weight: int  # microseconds


def parse_folded(text):
    """Samples of a folded file. A malformed line raises ValueError."""
    samples = []
    for line in text.splitlines():
        stack, _, weight = line.rpartition(" ")
        if not stack or not weight.isdigit():
            raise ValueError(f"not a folded line: {line!r}")
        samples.append(parse_stack(stack, int(weight)))
    return samples


def parse_stack(stack, weight=1):
    frames = stack.split(";")
    lua = lua_frames(frames)
    compiled = bool(lua) and lua[-1].endswith(COMPILED_MARK)
    return Sample(tuple(f.removesuffix(COMPILED_MARK) for f in lua), compiled, weight)


def lua_frames(frames):
    """Leave out the frames that lists leave out: native ones ("sqrt [libm.so.6]"), the
    VM's ("lj_BC_ADDVV [vm]") and traces ("trace#2 test.lua:8 [jit]"). All end in a
    bracketed module, or in the line view in a C source file ("clock clock.c:31").
    Builtins end in a bracket, too, but stay. So do chunks named after their source,
    which contain a quote."""
    foreign = re.compile(r'(?:.* )?\[(?!builtin\]|lost)[^]"]*\]+|.* [^ "]+\.(?:[chS]|cc|cpp):\d+')
    return [f for f in frames if is_lost(f) or not foreign.fullmatch(f.removesuffix(COMPILED_MARK))]


def is_lost(frame):
    return frame.startswith("[lost")


# Expressions: ("frame", regex, is_work, nameless), ("all", [...]), ("any", [...]),
# ("times", expression, least, most); most is None for no limit, nameless is the regex
# where the caller is unknown.

NOTHING = ("any", [])


def endings(node, end):
    """The beginnings of node's stacks. end() says what becomes of the last frame; NOTHING
    if a stack cannot end there."""
    kind = node[0]
    if kind == "frame":
        return end(node)
    if kind == "any":
        return ("any", [endings(n, end) for n in node[1]])
    if kind == "times":
        _, inner, _, most = node
        before = ("times", inner, 0, None if most is None else most - 1)
        return ("all", [before, endings(inner, end)])
    result = NOTHING
    for inner in reversed(node[1]):
        result = ("any", [endings(inner, end), ("all", [inner, result])])
    return result


def reverse(node):
    kind = node[0]
    if kind == "frame":
        return node
    if kind == "times":
        return ("times", reverse(node[1]), *node[2:])
    inner = [reverse(n) for n in node[1]]
    return (kind, inner[::-1] if kind == "all" else inner)


def regex(node):
    """A pattern for frames, each followed by a semicolon."""
    kind = node[0]
    if kind == "frame":
        return f"(?:{node[1]});"
    if kind == "all":
        return "".join(regex(n) for n in node[1])
    if kind == "any":
        return f"(?:{'|'.join(regex(n) for n in node[1])})" if node[1] else "(?!)"
    _, inner, least, most = node
    return f"(?:{regex(inner)}){{{least},{'' if most is None else most}}}"


TOKEN = re.compile(
    r"""
    (?P<operator> [()|?*+] | \{\d+,\d+\} )
  | (?P<pattern> / (?:\\.|[^/\\])+ / )
  | \[ (?P<builtin> [\w.]+ ) \]
  | (?P<name> "[^"]+" | \w* ) (?: @ (?: (?P<file>[\w.]+) : )? (?P<tag>\w+) | \{ (?P<label>[^}]+) \} )?
    """,
    re.VERBOSE,
)


class Parser:
    """A recursive descent parser: alternatives, sequences, repetitions, frames."""

    def __init__(self, program, text):
        self.program = program
        self.text = text
        self.rest = text.strip()
        self.token = None
        self.work = False
        self.advance()

    def advance(self):
        self.token = TOKEN.match(self.rest) if self.rest else None
        if self.rest and not self.token.group():
            raise ValueError(f"{self.program.path.name}: no frame at {self.rest!r}")
        self.rest = self.rest[self.token.end() :] if self.token else ""
        self.work = self.rest.startswith("!")
        self.rest = self.rest.removeprefix("!").strip()

    def operator(self):
        return self.token and self.token["operator"]

    def parse(self):
        node = self.alternatives()
        if self.token:
            raise ValueError(f"{self.program.path.name}: unexpected {self.token.group()!r} in {self.text!r}")
        return node

    def alternatives(self):
        nodes = [self.sequence()]
        while self.operator() == "|":
            self.advance()
            nodes.append(self.sequence())
        return ("any", nodes)

    def sequence(self):
        nodes = []
        while self.token and self.operator() not in (")", "|"):
            nodes.append(self.repetition())
        return ("all", nodes)

    def repetition(self):
        node = self.atom()
        while self.operator() and self.operator()[0] in "?*+{":
            bounds = {"?": (0, 1), "*": (0, None), "+": (1, None)}.get(self.operator())
            node = ("times", node, *(bounds or map(int, self.operator()[1:-1].split(","))))
            self.advance()
        return node

    def atom(self):
        if self.operator() == "(":
            self.advance()
            node = self.alternatives()
            if self.operator() != ")":
                raise ValueError(f"{self.program.path.name}: no closing bracket in {self.text!r}")
        elif self.operator():
            raise ValueError(f"{self.program.path.name}: stray {self.operator()!r} in {self.text!r}")
        else:
            spin = self.token.group() == "spin"
            node = ("frame", self.program.frame(self.token), self.work or spin, self.program.frame(self.token, nameless=True))
        self.advance()
        return node


class Program:
    """A program and the stacks that it lists."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.name = self.path.stem
        self.source = self.path.read_text()
        self.parks = bool(re.search(r"^(local )?spin, ready =", self.source, re.MULTILINE))
        # All programs have the clock in the main loop's condition.
        stacks = re.findall(r"^-- stack: (.*)$", self.source, re.MULTILINE) + ["main [os.clock]!"]
        legal = ("any", [Parser(self, stack).parse() for stack in stacks])
        short = endings(legal, lambda frame: frame)
        self.whole = re.compile(regex(endings(legal, lambda frame: frame if frame[2] else NOTHING)))
        self.short = re.compile(regex(short))
        self.part = re.compile(regex(endings(reverse(short), lambda frame: frame)))
        with_or_without_name = endings(reverse(short), lambda frame: ("any", [frame, ("frame", frame[3])]))
        self.part_behind_lost = re.compile(regex(with_or_without_name))

    def setting(self, name):
        """The reason given in "-- NAME: reason", or None."""
        found = re.search(rf"^-- {name}: (.*)$", self.source, re.MULTILINE)
        return found and found[1]

    def line_of(self, tag, file=None):
        path = self.path.with_name(file) if file else self.path
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.endswith(f"-- @{tag}"):
                return number
        raise ValueError(f"{path.name}: nothing is tagged @{tag}")

    def frame(self, token, nameless=False):
        """A pattern for one frame's text; nameless: of one whose caller is unknown."""
        if token["pattern"]:
            return re.sub(r"(?<!\\)\.", "[^;]", token["pattern"][1:-1])
        if token["builtin"]:
            name = token["builtin"]
            return BUILTINS.get(name, re.escape(name)) + r" \[builtin\]"
        if token.group() == "spin":
            name = "" if nameless else "spin"
            lines = (function_pattern(name, f"harness.lua:{self.line_of(t, 'harness.lua')}") for t in ("spin", "park"))
            return "|".join(lines)
        name = token["name"].strip('"')
        if name == "main" and not token["tag"]:
            return f"main chunk {re.escape(token['label'] or self.path.name)}"
        if token["tag"]:
            line = self.line_of(token["tag"], token["file"])
            return function_pattern("" if nameless else name, f"{token['file'] or self.path.name}:{line}")
        if not token["label"]:
            raise ValueError(f"{self.path.name}: {token.group()} has neither tag nor label")
        return function_pattern(name, token["label"])

    def judge(self, sample):
        """Returns "whole", "short", "lost" or "wrong"."""
        frames = sample.frames
        if any(is_lost(frame) for frame in frames):
            before, *behind = known_parts(frames)
            right = (not before or self.is_part(before)) and all(not part or self.is_part_behind_lost(part) for part in behind)
            return "lost" if right else "wrong"
        if frames and frames[0] == "...":
            return "whole" if self.is_part(frames[1:]) else "wrong"
        stack = join(frames)
        if self.whole.fullmatch(stack):
            return "whole"
        if self.short.fullmatch(stack):
            return "short"
        return "wrong"

    def is_part(self, frames):
        """Whether a legal stack contains these frames in a row."""
        return bool(self.part.fullmatch(join(reversed(frames))))

    def is_part_behind_lost(self, frames):
        """The same of frames behind a lost one: the first may have no name."""
        return bool(self.part_behind_lost.fullmatch(join(reversed(frames))))


def function_pattern(name, where):
    named, nameless = rf"\S+ {re.escape(where)}", f"function <{re.escape(where)}>"
    if not name:
        return nameless
    return f"(?:{named}|{nameless})" if name == "_" else f"{re.escape(name)} {re.escape(where)}"


def join(frames):
    return "".join(frame + ";" for frame in frames)


def known_parts(frames):
    """The runs of frames between lost ones, the first of them before any; a run may be empty."""
    parts = [[]]
    for frame in frames:
        if is_lost(frame):
            parts.append([])
        else:
            parts[-1].append(frame)
    return parts


def all_programs():
    """The programs that list stacks; the other files are parts of them."""
    paths = sorted(PROGRAMS.glob("*.lua"))
    return [Program(path) for path in paths if "\n-- stack: " in path.read_text()]


def line_complaints(samples, count):
    """Complaints about the lines in COUNT samples of lines.lua, taken with --lines: callers
    must be at the line of the call, leaves within their function. Few may have a line that
    is unknown, as few as may be lost."""
    program = Program(PROGRAMS / "lines.lua")
    line, seen = program.line_of, collections.defaultdict(set)
    unknown = sum(sample.weight for sample in samples if any(frame.endswith(UNKNOWN_LINE) for frame in sample.frames))
    for sample in samples:
        for depth, frame in enumerate(sample.frames):
            text, _, number = frame.rpartition(":")
            is_leaf = depth + 1 == len(sample.frames)
            if not is_lost(frame) and not frame.endswith(("[builtin]", UNKNOWN_LINE)):
                seen[text, is_leaf].add(int(number))
    second = line("second_call")
    body = set(range(line("inner"), line("inner") + 6))
    within = {
        ("outer lines.lua", False): {line("first_call"), second - 1, second, second + 1},
        ("inner lines.lua", True): body,
        ("again lines.lua", True): body,
    }
    complaints = [f"{frame} at {seen[frame] - lines}" for frame, lines in within.items() if seen[frame] - lines]
    for frame, tag in (
        (("main chunk lines.lua", False), "main_call"),
        (("outer lines.lua", False), "first_call"),
        (("inner lines.lua", True), "inner_busy"),
    ):
        if line(tag) not in seen[frame]:
            complaints.append(f"{frame} never at {tag}")
    share = unknown / max(1, sum(sample.weight for sample in samples))
    if share > max(LOST_SHARE, LOST_SAMPLES / count):
        complaints.append(f"a line unknown in {share:.1%}")
    return complaints
