#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Unpack Debian's packages for arm64, with all that they depend on, to compile and link with.

sysroot.py ROOT PACKAGE...
"""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "layouts"))

import packages  # noqa: E402, pylint: disable=wrong-import-position


def main(root, *names):
    root = pathlib.Path(root).resolve()
    if not root.is_dir():
        apt = packages.lists("bookworm", "arm64")
        packages.downloaded(apt, root, packages.planned(apt, *names))


if __name__ == "__main__":
    main(*sys.argv[1:])
