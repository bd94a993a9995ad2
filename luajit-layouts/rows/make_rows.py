#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Rows of the layout tables, from LuaJIT's headers or from debug info.

    make_rows.py SOURCE...           print the rows that the tables lack
    make_rows.py --all SOURCE...     print every row of the sources
    make_rows.py --check SOURCE...   say which rows of the tables the sources give again

A SOURCE is one of
    a folder with LuaJIT's headers (its src/), compiled by clang for every machine that has rows;
    an ELF file with debug info, which gives all groups but the C frame;
    a git repository, CLONE for its whole history or CLONE@REVISION.

Offsets are read from debug info by `ljspy info --dwarf` (LJSPY, or build/release/ljspy), those of
the C frame, which is defined by macros alone, from the preprocessor.
"""

import argparse
import ast
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
from typing import NamedTuple

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LJSPY = os.environ.get("LJSPY", ROOT / "build/release/ljspy")

WIDTH_COLUMNS = 95
TAB_COLUMNS = 8
COMPILE_SECONDS = 60
OLDEST = "2012-11-05"  # 2.0.0-rc2; those before number their bytecodes in other ways

ABSENT, UNKNOWN = "absent", "unknown"
BYTECODES = {"2.0": "BYTECODE_V20", "2.1": "BYTECODE_V21", "2.1-bitops": "BYTECODE_V21_BITOPS"}
VMSTATES = {"luajit": "", "tarantool": "VMSTATES_TARANTOOL"}  # the first is what a row has without saying so
RELEASE_GROUPS = ("GLOBAL", "JIT", "TRACE", "THREAD")
WITH_BYTECODE, WITH_MCOFS = ("GLOBAL", "JIT"), ("JIT", "TRACE")

# What a revision is told apart by: nothing else has offsets in it.
HEADERS = [f"src/{name}.h" for name in (
    "lj_arch", "lj_asm", "lj_bc", "lj_def", "lj_dispatch", "lj_frame", "lj_ir", "lj_jit", "lj_obj",
    "lj_target", "lj_target_arm64", "lj_target_x86", "lua", "luaconf")]

# As much of LuaJIT as a layout describes.
PROGRAM = """\
#define LUA_CORE
#include "lj_obj.h"
#include "lj_frame.h"
#include "lj_jit.h"
#include "lj_dispatch.h"
#include "lj_bc.h"
GG_State gg; GCproto pt; GCtab tab; GCudata ud; GCupval uv; GCfunc fn; GCstr str; Node node; lua_State L;
GChead head; GCtrace trace; SnapShot snapshot; BCOp bc; IROp ir;
"""
CFRAME_MACROS = {"size": "CFRAME_SIZE"}  # of the others: CFRAME_OFS_ and the field's name


class Mode(NamedTuple):
    """A machine and what LuaJIT is built with."""

    name: str  # as the names of rows end
    bit: str  # of enum layout_mode
    triple: str
    defines: tuple = ()
    gc64: bool = True
    groups: tuple = ()  # all if empty


NO_UNWIND = "-DLUAJIT_NO_UNWIND"
GC64, GC32 = "-DLUAJIT_ENABLE_GC64", "-DLUAJIT_DISABLE_GC64"
MODES = [
    Mode("gc64", "LAYOUT_X64_GC64", "x86_64-linux-gnu", (GC64,)),
    Mode("gc32", "LAYOUT_X64_GC32", "x86_64-linux-gnu", (GC32,), False),
    Mode("arm64", "LAYOUT_ARM64", "aarch64-linux-gnu"),
    Mode("i386", "LAYOUT_I386", "i386-linux-gnu", (), False),
    Mode("gc64-nounwind", "LAYOUT_X64_GC64", "x86_64-linux-gnu", (GC64, NO_UNWIND), True, ("CFRAME",)),
    Mode("gc32-nounwind", "LAYOUT_X64_GC32", "x86_64-linux-gnu", (GC32, NO_UNWIND), False, ("CFRAME",)),
]


class Row(NamedTuple):
    """A row but for its name and where it is from."""

    group: str
    modes: frozenset
    bytecode: str  # "" where the group has none, as with mcofs
    mcofs: str
    offsets: tuple  # of (field, value)
    vmstates: str = ""  # of the group GLOBAL

    def serves(self, other):
        """Is it what the other row says, of a group that it holds for?"""
        return (self.group, self.offsets, self.mcofs, self.vmstates) == \
            (other.group, other.offsets, other.mcofs, other.vmstates) and \
            other.modes <= self.modes

    def text(self, name, origin):
        modes = " | ".join(f"LAYOUT_MODE({bit})" for bit in sorted(self.modes, key=mode_order))
        head = [f'.name = "{name}",', f'.from = "{origin}",', f".modes = {modes},"]
        head += [f".bytecode = {self.bytecode},"] * bool(self.bytecode)
        head += [f".vmstates = {self.vmstates},"] * bool(self.vmstates)
        head += [f".mcofs = {self.mcofs},"] * bool(self.mcofs)
        return "{\n" + "".join(f"\t{line}\n" for line in [*head, *wrapped(self.offsets)]) + "},\n"


class Origin(NamedTuple):
    """Where a layout was seen."""

    project: str
    date: str
    revision: str

    def __str__(self):
        return f"{self.project}, {self.revision} of {self.date}" if self.revision else self.project


class Seen(NamedTuple):
    """The layout of one source in one mode."""

    mode: Mode
    layout: dict
    origin: Origin


def mode_order(bit):
    return [mode.bit for mode in MODES].index(bit)


def wrapped(offsets):
    """Initialisers, in as few lines as hold them."""
    words = [f".{field}\0=\0{'LAYOUT_ABSENT' if value == ABSENT else value}," for field, value in offsets]
    lines = textwrap.wrap(" ".join(words), WIDTH_COLUMNS - TAB_COLUMNS, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\0", " ") for line in lines]


# ---- the tables as they are ---------------------------------------------------------------------


def groups():
    """The fields of each group, as luajit-layouts/layout.h lists them."""
    text = (ROOT / "luajit-layouts/layout.h").read_text().replace("\\\n", " ")
    lists = re.findall(r"#define LAYOUT_([A-Z]+)_FIELDS\(X\)((?:\s+X\(\w+, \w+\))+)", text)
    found = {name: [f"{s}_{f}" for s, f in re.findall(r"X\((\w+), (\w+)\)", fields)] for name, fields in lists}
    del found["GG"]  # distances that move with every option: release.inc
    return found


def kept_rows(folder):
    """(Row, name, text) of each row that the tables have."""
    for group in GROUPS:
        text = (folder / f"{group.lower()}.inc").read_text()
        for body in re.findall(r"^\{\n.*?^\},\n", text, re.MULTILINE | re.DOTALL):
            values = dict(re.findall(r"\.(\w+) = (\"[^\"]*\"|[^,]+)", body))
            row = Row(group, frozenset(re.findall(r"LAYOUT_MODE\((\w+)\)", values["modes"])), values.get("bytecode", ""),
                      values.get("mcofs", ""), tuple(
                          (field, ABSENT if values[field] == "LAYOUT_ABSENT" else int(values[field]))
                          for field in GROUPS[group]), values.get("vmstates", ""))
            yield row, values["name"].strip('"'), values["from"].strip('"'), body


# ---- what a source says -------------------------------------------------------------------------


def read_debug_info(path):
    """The layout that ljspy reads from a file's debug info: texts by key. None of a file that is
    not LuaJIT's, or that numbers its bytecodes in a way that ljspy does not know."""
    done = subprocess.run([LJSPY, "info", "--dwarf", path], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None
    return dict(re.findall(r"^([\w.]+) = (.*)$", done.stdout, re.MULTILINE))


def clang(mode, directory, headers, *arguments):
    """The C library's headers are this machine's; what they lack for others is lists of what is
    no function."""
    (directory / "gnu").mkdir(exist_ok=True)
    for name in ("lp64", "32", "64"):
        (directory / f"gnu/stubs-{name}.h").touch()
    done = subprocess.run(
        ["clang", f"--target={mode.triple}", "-w", *mode.defines, f"-I{directory}",
         "-I/usr/include/x86_64-linux-gnu", f"-I{headers}", *DEFINES, *arguments],
        cwd=directory, capture_output=True, text=True, timeout=COMPILE_SECONDS, check=False)
    return done.stdout if done.returncode == 0 else None


def number(expression):
    """The value of an expression of integers, such as (4*8)."""
    tree = ast.parse(expression.strip(), mode="eval")
    allowed = (ast.Expression, ast.BinOp, ast.Constant, ast.Mult, ast.Add, ast.Sub)
    if not all(isinstance(node, allowed) for node in ast.walk(tree)):
        raise ValueError(f"{expression} is not a number")
    return eval(compile(tree, "", "eval"))  # of constants alone, as was just checked


def read_cframe(mode, directory, headers):
    """The C frame's fields, by lj_frame.h."""
    fields = [field.partition("_")[2] for field in GROUPS["CFRAME"]]
    lines = [f"@{field} {CFRAME_MACROS.get(field, f'CFRAME_OFS_{field}')}" for field in fields]
    (directory / "frame.c").write_text('#define LUA_CORE\n#include "lj_obj.h"\n#include "lj_frame.h"\n' + "\n".join(lines))
    text = clang(mode, directory, headers, "-E", "-P", "frame.c")
    # Clang may join lines that the macros leave without a break.
    found = dict(re.findall(r"@ ?(\w+)\s+([^@\n]+)", text or ""))
    return {f"CFRAME.{field}": str(number(found[field])) for field in fields}


def read_headers(mode, headers):
    """A layout's texts by key; None where LuaJIT has no such mode."""
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        (directory / "all.c").write_text(PROGRAM)
        # Split from the object file, it needs no relocations.
        if clang(mode, directory, headers, "-gdwarf-4", "-gsplit-dwarf", "-c", "all.c", "-o", "all.o") is None:
            return None
        layout = read_debug_info(directory / "all.dwo")
        if layout is None or (layout["gc64"] == "yes") != mode.gc64:
            return None
        return {**layout, **read_cframe(mode, directory, headers)}


def rows_of(mode, layout):
    """The rows that a layout is made of; none of a group that it does not know."""
    for group, fields in GROUPS.items():
        if mode.groups and group not in mode.groups:
            continue
        if group in WITH_MCOFS and layout["has_jit"] != "yes":
            continue
        offsets = [(field, layout.get(field.replace("_", ".", 1), UNKNOWN)) for field in fields]
        if any(value == UNKNOWN for _, value in offsets):
            continue
        mcofs = "true" if layout["SnapShot.mcofs"] != ABSENT else "false"
        yield Row(group, frozenset([mode.bit]), BYTECODES[layout["bytecode"]] if group in WITH_BYTECODE else "",
                  mcofs if group in WITH_MCOFS else "",
                  tuple((field, value if value == ABSENT else int(value)) for field, value in offsets),
                  VMSTATES[layout["vmstates"]] if group == "GLOBAL" else "")


# ---- sources ------------------------------------------------------------------------------------


def of_folder(folder, origin):
    for mode in MODES:
        layout = read_headers(mode, folder)
        if layout:
            yield Seen(mode, layout, origin)


def of_file(path, origin):
    machines = {0x3e: "x86_64", 0xb7: "aarch64", 0x03: "i386"}
    machine = machines[int.from_bytes(path.read_bytes()[18:20], "little")]
    layout = read_debug_info(path)
    if layout is None:
        sys.exit(f"{path}: no debug info of a LuaJIT that ljspy can read")
    mode = next(mode for mode in MODES if mode.triple.startswith(machine) and mode.gc64 == (layout["gc64"] == "yes"))
    yield Seen(mode, layout, origin)


def git(clone, *arguments, **options):
    return subprocess.run(["git", "-C", clone, *arguments], capture_output=True, check=True, **options).stdout


def of_revision(clone, revision, project):
    date = git(clone, "log", "-1", "--format=%cs", "--date=short", revision, text=True).strip()
    with tempfile.TemporaryDirectory() as folder:
        archive = git(clone, "archive", revision, "src")
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        return list(of_folder(pathlib.Path(folder) / "src", Origin(project, date, revision[:8])))


def revisions(clone):
    """Those of any branch whose headers no other has; the oldest of each."""
    seen, found = set(), []
    history = git(clone, "log", "--all", "--reverse", "--date-order", f"--since={OLDEST}", "--format=%H", "--", *HEADERS,
                  text=True)
    for revision in history.split():
        blobs = git(clone, "ls-tree", revision, *HEADERS, text=True)
        if "src/lj_obj.h" in blobs and blobs not in seen:
            seen.add(blobs)
            found.append(revision)
    return found


def of_clone(clone, pool, project):
    for layouts in pool.map(lambda revision: of_revision(clone, revision, project), revisions(clone)):
        yield from layouts


def layouts_of(source, pool, project):
    path, _, revision = source.partition("@")
    path = pathlib.Path(path)
    if revision:
        return of_revision(path, git(path, "rev-parse", f"{revision}^{{commit}}", text=True).strip(), project)
    if (path / "lj_obj.h").exists():
        return of_folder(path, Origin(project, "", ""))
    return of_clone(path, pool, project) if path.is_dir() else of_file(path, Origin(project, "", ""))


# ---- results ------------------------------------------------------------------------------------


def joined(seen):
    """One row for all modes with equal offsets, as the tables have them, with where each was first."""
    rows = {}
    for mode, layout, origin in seen:
        for row in rows_of(mode, layout):
            key = row._replace(modes=frozenset())
            modes, first, name = rows.get(key, (frozenset(), origin, mode.name))
            rows[key] = (modes | row.modes, first, name)
    return [(key._replace(modes=modes), origin, name) for key, (modes, origin, name) in rows.items()]


def name_of(origin, mode):
    return "-".join(word for word in (origin.date.replace("-", "") or "DATE", origin.project, mode) if word)


def print_rows(seen, kept, everything):
    """Those that the tables lack, or all, group by group; returns how many it printed."""
    printed = 0
    for row, origin, mode in sorted(joined(seen), key=lambda found: list(GROUPS).index(found[0].group)):
        same = [name for old, name, _, _ in kept if old.serves(row)]
        if same and not everything:
            continue
        print(f"/* rows/{row.group.lower()}.inc{': there is ' + same[0] if same else ''} */")
        print(row.text(name_of(origin, mode), str(origin)), end="")
        printed += 1
    known = [text for _, text in kept_releases(HERE)]
    for text, name in releases(seen, kept).items():
        if everything or text not in known:
            print(f'/* rows/release.inc */\n{{\n\t.name = "{name}",{text}', end="")
            printed += 1
    return printed


def releases(seen, kept):
    """Entries of release.inc but for their names, with where each was first: of what the tables have all
    rows of."""
    found = {}
    for mode, layout, origin in seen:
        if mode.bit not in ("LAYOUT_X64_GC64", "LAYOUT_X64_GC32") or mode.groups:
            continue
        rows = {row.group: [(old.bytecode != row.bytecode, name) for old, name, _, _ in kept if old.serves(row)]
                for row in rows_of(mode, layout)}
        if not all(rows.get(group) for group in RELEASE_GROUPS):
            continue
        words = [f".{group.lower()} = \"{min(rows[group])[1]}\"," for group in RELEASE_GROUPS]
        text = (f" .gc64 = {'true' if mode.gc64 else 'false'}, .bytecode = {BYTECODES[layout['bytecode']]},\n"
                f"\t{words[0]} {words[1]}\n\t{words[2]} {words[3]}\n"
                f"\t.GG_J = {layout['GG.J']}, .GG_dispatch = {layout['GG.dispatch']},\n}},\n")
        found.setdefault(text, name_of(origin, mode.name))
    return found


def kept_releases(folder):
    """The name of each entry of release.inc, and its text behind that."""
    return re.findall(r'^\{\n\t\.name = "([^"]+)",( .*?^\},\n)', (folder / "release.inc").read_text(), re.MULTILINE | re.DOTALL)


def check(seen, kept):
    """Is each row of the tables what a source gives, letter by letter? Returns how many are not."""
    given = collections.defaultdict(set)
    for mode, layout, _ in seen:
        for row in rows_of(mode, layout):
            given[row.group, row.offsets, row.mcofs].update(row.modes)
    missing = 0
    for row, name, origin, body in kept:
        modes = given[row.group, row.offsets, row.mcofs] & row.modes
        again = modes == row.modes and row._replace(modes=frozenset(modes)).text(name, origin) == body
        missing += not again
        if not again:
            partly = f" but for {', '.join(sorted(modes))}" if modes else ""
            print(f"rows/{row.group.lower()}.inc: {name}: no source gives it{partly}")
    print(f"{len(kept) - missing} of {len(kept)} rows come out as they are")
    whole = releases(seen, kept)
    others = [name for name, text in kept_releases(HERE) if text not in whole]
    for name in others:
        print(f"rows/release.inc: {name}: no source gives it")
    print(f"{len(kept_releases(HERE)) - len(others)} of {len(kept_releases(HERE))} releases come out as they are")
    return missing + len(others)


GROUPS = groups()
DEFINES = []  # as the command line has them


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="print rows that the tables have, too")
    parser.add_argument("--check", action="store_true", help="compare with the tables; 1 if a row was not given")
    parser.add_argument("-D", action="append", default=[], metavar="NAME[=VALUE]", help="as the build has it")
    parser.add_argument("--project", default="luajit", help="whose sources these are, for names of rows")
    parser.add_argument("sources", nargs="+", metavar="SOURCE")
    arguments = parser.parse_args()
    DEFINES.extend(f"-D{define}" for define in arguments.D)
    kept = list(kept_rows(HERE))
    seen = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for source in arguments.sources:
            seen += layouts_of(source, pool, arguments.project)
    if arguments.check:
        sys.exit(check(seen, kept) > 0)
    if not print_rows(seen, kept, arguments.all):
        print("The tables have all of it.", file=sys.stderr)


if __name__ == "__main__":
    main()
