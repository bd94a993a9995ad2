# SPDX-License-Identifier: MIT
"""A program with native code for ljspy to name."""

import os
import pathlib
import re
import subprocess

import pytest

import ljspy

HERE = pathlib.Path(__file__).parent
LIBLUAJIT = ljspy.PACKAGES / "libluajit-5.1-2/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2"
INCLUDE = ljspy.PACKAGES / "libluajit-5.1-dev/usr/include/luajit-2.1"


@pytest.fixture(scope="session")
def build():
    """Returns a function that runs a compiler or a similar program."""

    def run(*arguments):
        subprocess.run([str(a) for a in arguments], check=True, timeout=ljspy.WORK_SECONDS)

    return run


@pytest.fixture
def namespace():
    """A command that runs another one in a new mount namespace."""
    command = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    if subprocess.run([*command, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no mount namespace can be made here")
    return command


@pytest.fixture(scope="session")
def host(tmp_path_factory, build):
    program = tmp_path_factory.mktemp("names") / "host"
    build("gcc", "-O2", f"-I{INCLUDE}", HERE / "host.c", "-o", program, LIBLUAJIT, "-ldl",
          f"-Wl,-rpath,{LIBLUAJIT.parent}")
    return program


@pytest.fixture
def library(tmp_path, build):
    """Returns a function that builds the library with more options."""

    def make(*options):
        path = tmp_path / "libnames.so"
        build("gcc", "-O2", "-fPIC", "-shared", "-Wl,--build-id", "-Wl,-z,lazy", *options, HERE / "names.c", "-o", path)
        return path

    return make


@pytest.fixture
def frames_in(host):
    """Returns a function that dumps a thread in a function of the library: frames, root
    first, above the function that Lua calls."""

    def frames_above_run(target):
        dump = ljspy.run("dump", "--native", "all", "-p", target.pid).stdout
        frames = [line.strip() for line in reversed(dump.splitlines()) if line.startswith(" ")]
        return frames[1 + max((i for i, frame in enumerate(frames) if frame == "run [host]"), default=len(frames)) :]

    def find(library, function, before=()):
        with ljspy.Target([*before, host, library, function]).wait_ready() as target:
            ljspy.wait_worked(target.pid)
            return frames_above_run(target)

    return find
