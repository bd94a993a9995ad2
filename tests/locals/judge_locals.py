# SPDX-License-Identifier: MIT
"""Compares the variables in a dump with what the program says of them."""

import json
import re

import ljspy


def escaped(data):
    """Bytes as ljspy writes them (escape.h)."""
    text = data.decode(errors="backslashreplace")
    known = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return "".join(known.get(c, f"\\x{ord(c):02x}" if ord(c) < 32 or ord(c) == 127 else c) for c in text)


def parse_truth(text):
    frames = []
    for line in text.splitlines():
        kind, *fields = line.split(" ")
        if kind == "F":
            frames.append((int(fields[0]), int(fields[1]), bytes.fromhex(fields[2]).decode(), []))
        elif kind == "V":
            name = None if fields[2] == "-" else bytes.fromhex(fields[2]).decode()
            frames[-1][3].append((fields[0], int(fields[1]), name, escaped(bytes.fromhex(fields[3]))))
    return frames


def dump(*target, statuses=(ljspy.OK,)):
    result = ljspy.run("dump", *target, "--locals", "--json")
    assert result.returncode in statuses, result.stderr
    (process,) = json.loads(result.stdout)["processes"]
    return process


def lua_frames(thread, file):
    return [f for f in thread["frames"] if f["kind"] == "lua" and (f["file"] or "").endswith(file)]


def is_same(found, true):
    """Builtins, userdata and C data that are no numbers have no address in Lua."""
    if true == "C function":
        return re.fullmatch(r"function: 0x[0-9a-f]+ \S+ \[\S+\]", found)
    if true == "userdata":
        return found == "light userdata" or found.startswith("userdata: ")
    if true == "cdata":
        return found.startswith(true)
    return re.fullmatch(re.escape(true).replace(r":\ \?", ": 0x[0-9a-f]+"), found)


# Names of variables that busy programs change.
CHANGING = ("spun", "i", "(for index)")


def compare(frame, truth, strict=True):
    """How many variables of a frame are known, all right; with strict, only such may be unknown
    that the current instruction may be storing in two halves."""
    firstline, line, _, true_variables = truth
    assert ((frame["firstline"] or 0), frame["line"]) == (firstline, line), (frame["label"], truth)
    named = [v for v in true_variables if v[0] != "temporary" and v[2] not in CHANGING]
    found = [v for v in frame["variables"] if v["name"] not in CHANGING]
    if frame["compiled"] and frame["variables"] and any(v["kind"] == "vararg" and v["unknown"] for v in found):
        named = [v for v in named if v[0] != "vararg"]
        found = [v for v in found if v["kind"] != "vararg"]
    assert len(found) == len(named), (frame["label"], found, named)
    known = 0
    for variable, (kind, index, name, text) in zip(found, named):
        kinds = ("argument", "local") if kind == "local" else (kind,)
        assert variable["kind"] in kinds and variable["index"] == index, (variable, kind, index)
        assert variable["name"] == name, (variable, name)
        if variable["value"] is None:
            assert variable["unknown"] == "being assigned" if strict else variable["unknown"], (frame["label"], variable)
            continue
        assert is_same(variable["value"], text), (frame["label"], variable, text)
        known += 1
    return known
