# SPDX-License-Identifier: MIT
"""Unpack the packages of Debian's releases that the matrix covers, before its tests run."""

import builds
import packages

OTHERS = [("bookworm", "luajit:i386"), ("bookworm", "lua5.1"), ("bookworm", "lua5.4"),
          ("bookworm", "qemu-user-static"), ("bookworm", "musl-dev"), ("bookworm", "libjemalloc2"), *((suite, "luajit:arm64") for suite in packages.SUITES)]

covered = [(build.suite, build.package) for build in builds.PROGRAMS if hasattr(build, "suite")]
for suite, package in dict.fromkeys(covered + OTHERS):
    try:
        packages.tree(suite, package)
    except packages.Unavailable as reason:
        print(f"{package} of {suite} is not to be had: {reason}")
for suite in ("bullseye", "trixie", "sid"):
    try:
        packages.nginx(suite)
    except packages.Unavailable as reason:
        print(f"nginx of {suite} is not to be had: {reason}")
try:
    builds.LUAJIT_20.prepare()
except packages.Unavailable as reason:
    print(f"{builds.LUAJIT_20} is not to be had: {reason}")
