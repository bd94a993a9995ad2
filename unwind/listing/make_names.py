#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Names that LuaJIT's IR uses by number, from the files jit/vmdef.lua of Debian's packages.

    make_names.py PACKAGES > ir_names.inc

PACKAGES is what tests/packages and the tests' releases unpack: RELEASE/PACKAGE/usr/share/luajit-*/jit/.
Releases whose numbers are the same share a numbering, named after the first of them.
"""

import pathlib
import re
import sys

# In the order of their age; the name of the numbering that each one begins.
RELEASES = (("bullseye/luajit", "BETA3"), ("bookworm/luajit", "V21"), ("bookworm/luajit2", "LUAJIT2"),
            ("trixie/luajit", ""), ("sid/luajit", ""))
TABLES = ("irfpm", "irfield", "ircall")


def tables_of(path):
    text = path.read_text()
    return tuple(tuple(re.findall(r'"([^"]*)"', re.search(rf"\n{table} = \{{(.*?)\}}", text, re.S)[1]))
                 for table in TABLES)


def main():
    packages, found = pathlib.Path(sys.argv[1]), {}
    for release, name in RELEASES:
        (path,) = (packages / release).glob("usr/share/luajit-*/jit/vmdef.lua")
        found.setdefault(tables_of(path), []).append((release, name))
    print("/* SPDX-License-Identifier: MIT */\n/*\n * Names by number of Debian's builds of LuaJIT, by make_names.py:"
          " NAMES(numbering, table, names...).\n *")
    for sources in found.values():
        print(f" * {sources[0][1]}: {', '.join(release for release, _ in sources)}")
    print(" */\n/* clang-format off */")
    for tables, sources in found.items():
        for table, names in zip(TABLES, tables):
            print(f"NAMES({sources[0][1]}, {table},")
            print(",\n".join(f'\t"{name}"' for name in names) + ")")
    print("/* clang-format on */")


main()
