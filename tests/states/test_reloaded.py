# SPDX-License-Identifier: MIT
"""A program unloads LuaJIT and loads another one, which may come to lie where the first one was, and then the first
one again. Each has states of its own."""

import collections
import re

import pytest

import ljspy
from test_later import LIBRARY
from test_states import compiled

pytestmark = pytest.mark.usefixtures("built")

SECONDS = 1  # of CPU time, for each of the four turns
AT_MOST_SECONDS = 240  # the recording ends with the program, which may have to wait for a CPU
OTHER = ljspy.PACKAGES / "libluajit2-5.1-2/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2"
# Until the next look at what is mapped, nothing is known of a library; that takes longer beside others.
KNOWN_SHARE = 0.2


def known_of_turns(tmp_path, *options, status=ljspy.OK):
    """The CPU time of each turn whose functions are known, in us; and what ljspy said. The last turn is the other library's."""
    for library in (LIBRARY, OTHER):
        if not library.exists():
            pytest.skip(f"{library} is not to be had")
    said = tmp_path / "said"
    recording = ljspy.record(
        tmp_path, "--", "sh", "-c",
        f"exec {compiled('reloaded', tmp_path)} {SECONDS} {LIBRARY.resolve()} {OTHER.resolve()} > {said}",
        seconds=AT_MOST_SECONDS, options=options, status=status)
    bases = re.findall(r"\d+ at (0x\w+)", said.read_text())
    print(bases, recording.stats["lost"])
    assert len(bases) == 4 and bases[0] == bases[2]
    known = collections.Counter()
    for sample in recording.samples:
        turns = set(re.findall(r"(?:run|work)_(\d) ", ";".join(sample.frames)))
        assert len(turns) <= 1, sample
        if turns and not any(frame.startswith("[lost") for frame in sample.frames):
            known[int(turns.pop())] += sample.weight
    print(known)
    return known, recording.run.stderr


def test_libraries_take_each_others_place(tmp_path):
    known, _ = known_of_turns(tmp_path)
    for turn in range(4):
        assert known[turn] > KNOWN_SHARE * SECONDS * 1e6, known


def test_one_that_is_not_known_is_told_though_it_is_unloaded(tmp_path):
    """The layout given is that of the other one, which runs last."""
    known, said = known_of_turns(tmp_path, "--layout", "debian-bookworm-luajit2", status=ljspy.WITH_ERRORS)
    for turn in (1, 3):
        assert known[turn] > KNOWN_SHARE * SECONDS * 1e6, known
    assert not known[0] and not known[2]
    assert "laid out in a way that is not known, so its Lua is not shown: layout given: the code contradicts it" in said
