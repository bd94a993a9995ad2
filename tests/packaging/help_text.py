# SPDX-License-Identifier: MIT
"""Parse the output of `ljspy --help`."""

import re
from typing import NamedTuple

import ljspy


class Option(NamedTuple):
    short: str  # "-p", or "" if there is none
    long: str  # "--pid"
    argument: str  # "PID[,PID...]", or "" if there is none


def commands():
    text = ljspy.run("--help").stdout
    listed = re.search(r"^Commands.*?\n(.*?)\n\n", text, re.MULTILINE | re.DOTALL)[1]
    return re.findall(r"^  ([a-z]+) ", listed, re.MULTILINE)


def options(command):
    text = ljspy.run(command, "--help").stdout
    rows = re.findall(r"^  (?:(-\w), |    )(--[a-z-]+)(?: (\S+))?(?:  |$)", text, re.MULTILINE)
    assert rows, text
    return [Option(*row) for row in rows]


def formats(command):
    """The names after --format, which may take several lines."""
    text = " ".join(ljspy.run(command, "--help").stdout.split())
    found = re.search(r"--format FORMAT ((?:\S+, )*\S+)", text)
    return found[1].split(", ") if found else []
