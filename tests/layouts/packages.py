# SPDX-License-Identifier: MIT
"""Unpack LuaJIT as Debian's releases build it, and its sources, without installing them.

Each release and architecture has its own apt directory, with the lists of this machine's
mirror: with all lists in one directory, each apt call would take ten times as long.
Keeps what is already unpacked.
"""

import contextlib
import fcntl
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
APT = ROOT / "build/apt"
PACKAGES = ROOT / "build/packages"
SOURCES = ROOT / "build/sources"

LISTS_SECONDS = 3600  # for which apt's lists count as new

SUITES = ("bullseye", "bookworm", "trixie", "sid")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"

CONFIGURATION = """\
Dir "{directory}";
Dir::Etc::Trusted "/etc/apt/trusted.gpg";
Dir::Etc::TrustedParts "/etc/apt/trusted.gpg.d";
Dir::State::status "{directory}/status";
APT::Architecture "{architecture}";
APT::Architectures {{ "{architecture}"; }};
Acquire::Languages "none";
APT::Sandbox::User "root";
"""

# The machine's clock may be ahead of its mirror's lists.
LISTS = """\
Types: {types}
URIs: {mirror}
Suites: {suite}
Components: main
Architectures: {architecture}
Signed-By: {keyring}
Check-Valid-Until: no
"""


@contextlib.contextmanager
def locked(path):
    """Let in one process at a time: several run tests in one build directory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def made_once(target, make):
    """Return TARGET. If it does not exist, MAKE(DIRECTORY) makes it in DIRECTORY and
    returns its path. TARGET exists whole or not at all."""
    with locked(target.with_name(f".{target.name}.lock")):
        if not target.is_dir():
            work = target.with_name(f".{target.name}.work")
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir()
            try:
                make(work).rename(target)
            finally:
                shutil.rmtree(work, ignore_errors=True)
    return target


class Unavailable(Exception):
    """There is no mirror, no network, or no such package in the release."""


def _apt_get(apt, *arguments, cwd=None):
    """Run apt-get with the lists in this directory; return its output."""
    environment = dict(os.environ, APT_CONFIG=str(apt / "apt.conf"), LC_ALL="C")
    done = subprocess.run(["apt-get", "-q", *arguments], cwd=cwd, env=environment, capture_output=True,
                          text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise Unavailable(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else str(arguments))
    return done.stdout


def mirror():
    """Where apt has Debian's packages from."""
    configured = [pathlib.Path("/etc/apt/sources.list"), *pathlib.Path("/etc/apt/sources.list.d").glob("*")]
    text = "\n".join(path.read_text() for path in configured if path.is_file())
    found = re.search(r"(?m)^(?:URIs:|deb(?: \[.*?\])?)\s+(\S+/debian/?)\s*", text)
    if not found:
        raise Unavailable("apt knows no mirror of Debian")
    return found.group(1)


@functools.cache
def _apt(suite, architecture="amd64", types="deb"):
    """apt's directory for this release and architecture, set up once, with recent lists."""
    directory = APT / f"{suite}-{architecture}-{types}"
    updated = directory / "updated"
    lists = LISTS.format(types=types, mirror=mirror(), suite=suite, architecture=architecture, keyring=KEYRING)
    with locked(directory.with_name(f".{directory.name}.lock")):
        if not (updated.is_file() and updated.read_text() == lists and
                time.time() - updated.stat().st_mtime < LISTS_SECONDS):
            _set_up_apt(directory, architecture, lists)
            updated.write_text(lists)
    return directory


def _set_up_apt(directory, architecture, lists):
    for path in ("etc/apt/sources.list.d", "etc/apt/preferences.d", "etc/apt/apt.conf.d",
                 "var/lib/apt/lists/partial", "var/cache/apt/archives/partial"):
        (directory / path).mkdir(parents=True, exist_ok=True)
    (directory / "status").touch()
    (directory / "apt.conf").write_text(CONFIGURATION.format(directory=directory, architecture=architecture))
    (directory / "etc/apt/sources.list.d/release.sources").write_text(lists)
    _apt_get(directory, "update")


def _libraries(apt, package):
    """The shared libraries a package depends on, as apt determines them."""
    plan = _apt_get(apt, "-s", "--no-install-recommends", "install", package)
    names = re.findall(r"(?m)^Inst (\S+)", plan)
    return [name for name in names if name.startswith("lib")]


def _unpack(apt, package, work):
    names = dict.fromkeys([package, *_libraries(apt, package)])
    _apt_get(apt, "download", *names, cwd=work)
    for archive in work.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", archive, work / "root"], check=True)
    return work / "root"


def tree(suite, package):
    """A root directory with the unpacked package (NAME or NAME:ARCHITECTURE) and the
    libraries it needs."""
    root = PACKAGES / suite / package.replace(":", "-")
    name, _, architecture = package.partition(":")
    if not root.is_dir():
        apt = _apt(suite, architecture or "amd64")
        made_once(root, lambda work: _unpack(apt, name, work))
    return root


def _lead_within(root):
    """Let absolute symbolic links of the unpacked packages lead within their root."""
    for path in root.rglob("*"):
        if path.is_symlink() and os.readlink(path).startswith("/"):
            target = root / os.readlink(path).lstrip("/")
            path.unlink()
            path.symlink_to(os.path.relpath(target, path.parent))


def lists(suite, architecture):
    """apt's directory for a release and architecture."""
    return _apt(suite, architecture)


def planned(apt, *names):
    """The packages that apt would install with these, themselves included."""
    plan = _apt_get(apt, "-s", "--no-install-recommends", "install", *names)
    return re.findall(r"(?m)^Inst (\S+)", plan)


def download(apt, folder, names):
    """Fetch these packages, as files."""
    _apt_get(apt, "download", *names, cwd=folder)


def downloaded(apt, root, names):
    """A root directory with these packages, unpacked, and no others."""
    def make(work):
        download(apt, work, names)
        for archive in work.glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", archive, work / "root"], check=True)
        _lead_within(work / "root")
        return work / "root"

    return made_once(root, make)


# In the packages that nginx needs: libraries of its release, and what configurations of tests name.
NGINX_PARTS = ("lib", "zlib1g", "openssl", "nginx", "lua-resty-")
NGINX_NAMED = ("libnginx-mod-http-ndk", "libnginx-mod-http-lua", "lua-resty-core", "lua-resty-lrucache")


def nginx(suite, architecture="amd64"):
    """A root directory with nginx and its Lua module."""
    root = PACKAGES / suite / ("nginx" if architecture == "amd64" else f"nginx-{architecture}")
    if not root.is_dir():
        apt = _apt(suite, architecture)
        names = planned(apt, "nginx", "libnginx-mod-http-lua")
        downloaded(apt, root, [name for name in names if name.startswith(NGINX_PARTS)])
    # Configurations name files as in build/packages, where each package has a directory.
    for name in NGINX_NAMED:
        with contextlib.suppress(FileExistsError):
            (root / name).symlink_to(".")
    return root


def _unpack_wheel(requirement, work):
    """With pip of this Python, or the first in PATH."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    arguments = ["download", "-q", "--no-deps", "--only-binary=:all:", f"--python-version={version}", "-d", work,
                 *(f"--platform={platform}_x86_64" for platform in ("manylinux2014", "manylinux_2_28")), requirement]
    reason = "there is no pip"
    for pip in ([sys.executable, "-m", "pip"], ["pip3"]):
        if shutil.which(pip[0]):
            done = subprocess.run([*pip, *arguments], capture_output=True, text=True, timeout=120, check=False)
            if done.returncode == 0:
                (archive,) = work.glob("*.whl")
                zipfile.ZipFile(archive).extractall(work / "root")
                return work / "root"
            reason = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else reason
    raise Unavailable(reason)


def wheel(requirement):
    """A directory with the unpacked wheel of a Python package, NAME==VERSION."""
    return made_once(PACKAGES / "wheels" / requirement, lambda work: _unpack_wheel(requirement, work))


def arm64_emulator():
    """A program that runs programs for arm64: qemu's user mode."""
    return tree("bookworm", "qemu-user-static") / "usr/bin/qemu-aarch64-static"


def loader(root, program):
    """The command that runs an unpacked program with its release's libraries."""
    paths = [path for name in ("x86_64-linux-gnu", "i386-linux-gnu", "aarch64-linux-gnu")
             for path in (root / "usr/lib" / name, root / "lib" / name)]
    linkers = [path for name in ("ld-linux-x86-64.so.2", "ld-linux.so.2", "ld-linux-aarch64.so.1")
               for path in root.glob(f"**/{name}") if path.exists()]
    if not linkers:
        return [program]
    return [linkers[0], "--library-path", ":".join(str(path) for path in paths if path.is_dir()), program]


def _unpack_source(apt, package, work):
    """Unpack the source with Debian's patches, or upstream's if the mirror lacks them."""
    try:
        _apt_get(apt, "source", package, cwd=work)
    except Unavailable:
        _apt_get(apt, "source", "--tar-only", package, cwd=work)
        for archive in work.glob("*.orig.tar.*"):
            subprocess.run(["tar", "-xf", archive], cwd=work, check=True)
    return next(path for path in work.iterdir() if path.is_dir())


def source(suite, package):
    """A source package of a release, unpacked."""
    root = SOURCES / f"{suite}-{package}"
    if not root.is_dir():
        apt = _apt(suite, types="deb-src")
        made_once(root, lambda work: _unpack_source(apt, package, work))
    return root
