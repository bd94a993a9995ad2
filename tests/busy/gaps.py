# SPDX-License-Identifier: MIT
"""A target that reports how long ljspy held it."""

import mmap
import pathlib
import struct
import subprocess

import ljspy

GAPS = pathlib.Path(__file__).with_name("gaps.lua")
LONGER_BY_MS = 50
NOTES = struct.Struct("QQQ")
NOTES_MAX = 1000
NOTED_MS = 0.5
# These tests do not look for ljspy's waits for a CPU, so it is more urgent than others where that is allowed.
IS_URGENT = subprocess.run(["chrt", "-f", "10", "true"], capture_output=True, check=False).returncode == 0
URGENTLY = ["chrt", "-f", "10"] if IS_URGENT else []


class Gaps(ljspy.Target):
    """Spins, and notes how long it could not."""

    def __init__(self, directory, limit=120, program=(ljspy.luajit("luajit"), GAPS), calm=False, user=None):
        path = directory / "gaps"
        path.write_bytes(bytes(4096))
        path.chmod(0o666)
        with path.open("r+b") as file:
            self.notes = mmap.mmap(file.fileno(), 4096)
        super().__init__([*program, path, "calm" if calm else ""], limit=limit, user=user)
        self.read_until(b"ready\n", seconds=limit)  # it may have much memory to fill
        self.take()

    def take(self):
        """The longest hold since the last call, in milliseconds."""
        held, _, _ = NOTES.unpack_from(self.notes)
        NOTES.pack_into(self.notes, 0, 0, 0, 0)
        return held / 1e6

    def take_all(self):
        """All holds of more than NOTED_MS since the last call, in milliseconds, the longest first."""
        _, count, _ = NOTES.unpack_from(self.notes)
        held = struct.unpack_from(f"{min(count, NOTES_MAX)}I", self.notes, NOTES.size)
        self.take()
        return sorted((us / 1e3 for us in held), reverse=True)
