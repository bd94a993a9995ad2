#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""sysroot.py PACKAGE...: Debian's packages for arm64, with all that they depend on, unpacked; prints where."""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "layouts"))

import packages  # noqa: E402, pylint: disable=wrong-import-position

if __name__ == "__main__":
    print(packages.sysroot("bookworm", "arm64", sys.argv[1:]))
