# SPDX-License-Identifier: MIT
"""The LuaJIT builds that the matrix covers, and how to run each."""

import fcntl
import os
import pathlib
import select
import shlex
import shutil
import subprocess
import sys
import time
from typing import NamedTuple

import packages
import stacks

HERE = pathlib.Path(__file__).resolve().parent
BUILDS = packages.ROOT / "build/builds"
OBJECTS = packages.ROOT / "build" / os.environ.get("VARIANT", "release") / "tests/layouts"
SCRIPT = HERE / "warm.lua"

HOST_USAGE = 2  # host's exit status without arguments

GC64 = "-DLUAJIT_ENABLE_GC64"
NO_GC64 = "-DLUAJIT_DISABLE_GC64"


class Run(NamedTuple):
    """How a build runs a script: the script and its arguments follow the command."""

    command: list
    debug: pathlib.Path | None = None  # the same build with debug info
    jit: bool = True
    programs: pathlib.Path = stacks.PROGRAMS  # the directory to start it in
    deleted: pathlib.Path | None = None  # a file to remove once it runs

    def started(self):
        if self.deleted:
            self.deleted.unlink()

    def program(self, path):
        """The command as one file: programs of other releases need their own loader and libraries."""
        if len(self.command) == 1:
            return self.command[0]
        path.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, self.command))} "$@"\n')
        path.chmod(0o755)
        return path


class Program(NamedTuple):
    """A program of a Debian release."""

    suite: str
    package: str
    path: str
    arguments: tuple = ()

    def __str__(self):
        return f"{self.suite} {pathlib.Path(self.path).name} ({self.package})"

    def prepare(self):
        root = packages.tree(self.suite, self.package)
        program = root / self.path
        if not program.exists():
            raise packages.Unavailable(f"{self.package} in {self.suite} has no {self.path}")
        return Run([*packages.loader(root, program), *self.arguments])


class Chroot(NamedTuple):
    """A release's program that sees only the release's files and its scripts."""

    program: Program

    def __str__(self):
        return f"{self.program}, in a root of its own"

    def prepare(self):
        if os.geteuid() != 0:
            raise packages.Unavailable("only root can change the root directory")
        tree = packages.tree(self.program.suite, self.program.package)
        root = packages.made_once(
            BUILDS / f"root-of-{self.program.suite}-{self.program.package}",
            lambda work: shutil.copytree(tree, work / "root", symlinks=True))
        # Copy scripts each time, as they may have changed; one copy per worker, which others do not change.
        scripts = root / f"programs-{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}"
        shutil.rmtree(scripts, ignore_errors=True)
        shutil.copytree(stacks.PROGRAMS, scripts)
        shutil.copy(SCRIPT, scripts)
        return Run(["nsenter", f"--root={root}", f"--wdns=/{scripts.name}", f"/{self.program.path}"])


class Deleted(NamedTuple):
    """A program whose file is removed while it runs."""

    program: Program

    def __str__(self):
        return f"{self.program}, deleted"

    def prepare(self):
        original = pathlib.Path(self.program.prepare().command[-1])
        copy = BUILDS / f"deleted-{original.name}-{os.getpid()}"
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(original, copy)
        return Run([copy], deleted=copy)


class Library(NamedTuple):
    """A Debian release's libluajit, in the tests' own program."""

    suite: str
    package: str

    def __str__(self):
        return f"{self.suite} library ({self.package})"

    def path(self):
        root = packages.tree(self.suite, self.package)
        return root, next(root.glob("usr/lib/*/libluajit-5.1.so.2"))

    def prepare(self):
        root, library = self.path()
        host = packages.loader(root, OBJECTS / "host")
        # A release older than the C library that host was linked with cannot run it.
        if subprocess.run(host, capture_output=True, check=False).returncode != HOST_USAGE:
            host = [OBJECTS / "host"]
        return Run([*host, library])


class Source(NamedTuple):
    """A source package, built with the tests' options."""

    suite: str
    package: str
    options: str = ""  # XCFLAGS
    compiler: str = "gcc"
    optimise: str = "-O1"
    link: str = ""  # TARGET_LDFLAGS
    shared: bool = False

    def __str__(self):
        extras = [word for word in (self.options.replace("-DLUAJIT_", ""), self.compiler, self.optimise,
                                    self.link, "shared" if self.shared else "") if word]
        return f"{self.suite} {self.package} built {' '.join(extras)}"

    def directory(self):
        return BUILDS / "".join(c if c.isalnum() else "-" for c in str(self))

    def compile(self, directory):
        work = shutil.copytree(packages.source(self.suite, self.package), directory / "work")
        mode = "dynamic" if self.shared else "static"
        done = subprocess.run(
            ["make", "-s", "-C", work / "src", f"CC={self.compiler}", f"XCFLAGS={self.options}",
             f"CCOPT={self.optimise}", "CCDEBUG=-g", f"BUILDMODE={mode}", f"TARGET_LDFLAGS={self.link}"],
            capture_output=True, text=True, timeout=600, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{self} does not build: {done.stderr[-500:]}")
        (work / "src/libluajit-5.1.so.2").unlink(missing_ok=True)
        if self.shared:
            (work / "src/libluajit-5.1.so.2").symlink_to("libluajit.so")
        for name in ("luajit", "libluajit.so"):
            if (work / "src" / name).exists():
                subprocess.run(["strip", "-o", work / f"src/{name}.bare", work / f"src/{name}"], check=True)
        return work

    def prepare(self):
        directory = packages.made_once(self.directory(), self.compile)
        jit = "DISABLE_JIT" not in self.options
        if self.shared:
            return Run([OBJECTS / "host", directory / "src/libluajit.so.bare"],
                       debug=directory / "src/libluajit.so", jit=jit)
        return Run([directory / "src/luajit.bare"], debug=directory / "src/luajit", jit=jit)


class Lupa(NamedTuple):
    """A LuaJIT in Python, as the package lupa brings it."""

    version: str
    module: str

    def __str__(self):
        return f"lupa {self.version} {self.module}"

    def prepare(self):
        root = packages.wheel(f"lupa=={self.version}")
        if not next(root.glob(f"lupa/{self.module}.*.so"), None):
            raise packages.Unavailable(f"lupa {self.version} has no {self.module}")
        return Run([sys.executable, HERE / "lupa_host.py", root, self.module])


# No release of Debian has LuaJIT 2.0 any more.
LUAJIT_20 = Lupa("2.8", "luajit20")

PROGRAMS = [
    *(Program(suite, "luajit", "usr/bin/luajit") for suite in packages.SUITES),
    Program("bookworm", "luajit2", "usr/bin/luajit"),
    *(Program(suite, "texlive-binaries", "usr/bin/luajittex", ("--jiton", "--luaonly"))
      for suite in ("bullseye", "bookworm", "trixie")),
    *(Program(suite, "tarantool", "usr/bin/tarantool") for suite in ("bullseye", "bookworm", "trixie")),
    *(Library(suite, "libluajit-5.1-2") for suite in packages.SUITES),
    Library("bookworm", "libluajit2-5.1-2"),
    Chroot(Program("bookworm", "luajit", "usr/bin/luajit")),
    Deleted(Program("bookworm", "luajit2", "usr/bin/luajit")),
]

# The fork does not build without the JIT compiler.
NEW, FORK, VANILLA = ("sid", "luajit"), ("bookworm", "luajit2"), ("bookworm", "luajit")

SOURCES = [
    Source(*FORK), Source(*FORK, NO_GC64), Source(*NEW), Source(*NEW, NO_GC64),
    Source(*VANILLA), Source(*VANILLA, NO_GC64),
    Source("trixie", "luajit"), Source("trixie", "luajit", NO_GC64),
    Source("bullseye", "luajit"), Source("bullseye", "luajit", GC64),
    *(Source(*FORK, options) for options in (
        "-DLUAJIT_ENABLE_LUA52COMPAT", "-DLUAJIT_NUMMODE=2",
        "-DLUAJIT_NUMMODE=2 -DLUAJIT_ENABLE_LUA52COMPAT", "-DLUAJIT_NUMMODE=2 " + NO_GC64,
        "-DLUAJIT_DISABLE_FFI", "-DLUAJIT_DISABLE_PROFILE", "-DLUAJIT_ENABLE_TABLE_BUMP", "-DLUAJIT_NO_UNWIND",
        "-DLUAJIT_USE_SYSMALLOC", "-DLUAJIT_USE_PERFTOOLS", "-DLUAJIT_USE_GDBJIT",
        "-DLUAJIT_USE_GDBJIT -DLUAJIT_ENABLE_TABLE_BUMP",
        "-DLUA_USE_ASSERT -DLUA_USE_APICHECK",
        "-DLUAJIT_NO_UNWIND " + NO_GC64,
        "-DLUAJIT_NO_UNWIND -DLUAJIT_DISABLE_FFI",
        "-DLUAJIT_USE_GDBJIT " + NO_GC64, "-DLUAJIT_ENABLE_TABLE_BUMP " + NO_GC64)),
    *(Source(*VANILLA, options) for options in (
        "-DLUAJIT_DISABLE_JIT", "-DLUAJIT_DISABLE_JIT -DLUAJIT_DISABLE_FFI",
        "-DLUAJIT_DISABLE_JIT " + NO_GC64)),
    Source(*NEW, optimise="-O0"), Source(*NEW, optimise="-O2"), Source(*NEW, optimise="-O3"),
    Source(*NEW, optimise="-O2 -flto"), Source(*NEW, compiler="clang", optimise="-O2"),
    Source(*NEW, link="-static"), Source(*NEW, link="-no-pie"), Source(*NEW, shared=True),
]


def read_ready(stream, seconds):
    """Whether the program says in time that it is ready; it may print more."""
    fcntl.fcntl(stream, fcntl.F_SETFL, os.O_NONBLOCK)
    deadline, said = time.monotonic() + seconds, b""
    while b"ready" not in said:
        readable, _, _ = select.select([stream], [], [], max(0, deadline - time.monotonic()))
        chunk = stream.read() if readable else None
        if not chunk:
            return False
        said += chunk
    return True
