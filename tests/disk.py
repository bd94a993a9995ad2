# SPDX-License-Identifier: MIT
"""A disk that no longer answers once it is told to."""

import subprocess
import time

import pytest

import ljspy

# Drop the file's untouched pages from memory, so that a read goes to the disk again.
FORGET = "import os, sys; fd = os.open(sys.argv[1], os.O_RDONLY); os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)"


class Disk:
    """It has these files, and is seen only in its own mount namespace. A context manager."""

    def __init__(self, directory, *files):
        self.directory = directory / "disk"
        self.directory.mkdir()
        self.server = ljspy.Target([ljspy.helper("hanging_disk"), self.directory, *files], limit=120)
        said = self.server.read_until(b"\n", at_end="").strip()
        if said != "ready":
            self.server.stop()
            pytest.skip(f"no file system by FUSE: {said}")
        self.inside = ["nsenter", "-t", str(self.server.pid), "-m"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.stop()

    def hang(self, *files, forgets=False):
        """From now on, answer nothing. Of these files, it first reads all, or forgets what it has read."""
        through = ["python3", "-c", FORGET] if forgets else ["cat"]
        for file in files:
            subprocess.run([*self.inside, *through, self.directory / file], stdout=subprocess.DEVNULL, check=True)
        self.server.write("hang\n")
        time.sleep(0.1)
