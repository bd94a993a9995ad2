# SPDX-License-Identifier: MIT
"""What the packages of Debian, of RPM's distributions and of Alpine say is what the makefile says."""

import pathlib
import re
import shlex
import shutil
import subprocess

import pytest

import ljspy

CONTRIB = ljspy.ROOT / "contrib"
MAKEFILE = (ljspy.ROOT / "GNUmakefile").read_text()
VERSION = re.search(r'define LJSPY_VERSION "(.*)"', (ljspy.ROOT / "src/options/command.h").read_text())[1]

# Debian's packages to build with, and what RPM's distributions and Alpine call them. The C library's own
# and the shell's tools are everywhere.
CALLED = {
    "gcc": ("gcc", ""),
    "make": ("make", ""),
    "pkg-config": ("pkgconfig", "pkgconf"),
    "libunwind-dev": ("libunwind-devel", "libunwind-dev"),
    "libdw-dev": ("elfutils-devel", "elfutils-dev"),
    "libelf-dev": ("elfutils-libelf-devel", "elfutils-dev"),
    "libcapstone-dev": ("capstone-devel", "capstone-dev"),
    "libiberty-dev": ("binutils-devel", "binutils-dev"),
    "libjansson-dev": ("jansson-devel", "jansson-dev"),
    "libprotobuf-c-dev": ("protobuf-c-devel", "protobuf-c-dev"),
    "protobuf-c-compiler": ("protobuf-c-compiler", "protobuf-c-compiler"),
    "libncurses-dev": ("ncurses-devel", "ncurses-dev"),
    "libzstd-dev": ("libzstd-devel", "zstd-dev"),
    "libmicrohttpd-dev": ("libmicrohttpd-devel", "libmicrohttpd-dev"),
    "libcurl4-openssl-dev": ("libcurl-devel", "curl-dev"),
    "zlib1g-dev": ("zlib-devel", "zlib-dev"),
    "uthash-dev": ("uthash-devel", "uthash-dev"),
}


def built_with():
    listed = re.search(r"^build_packages := ((?:.*\\\n)*.*)$", MAKEFILE, re.MULTILINE)[1].replace("\\", "").split()
    assert set(listed) == set(CALLED)
    return listed


def installed(tmp_path, **where):
    """What make install puts into a package, without compression of the manual page."""
    arguments = [f"{name}={value}" for name, value in {"PREFIX": "/usr", **where}.items()]
    command = ["make", "-C", ljspy.ROOT, "-s", "install", f"DESTDIR={tmp_path}", *arguments]
    subprocess.run(command, capture_output=True, timeout=120, check=True)
    return {f"/{path.relative_to(tmp_path)}" for path in tmp_path.rglob("*") if path.is_file()}


@pytest.fixture
def spec():
    def ask(*arguments):
        command = ["rpmspec", *arguments, CONTRIB / "rpm/ljspy.spec"]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout

    if not shutil.which("rpmspec"):
        pytest.skip("rpmspec is not installed (Debian's package rpm)")
    return ask


def alpine(variable):
    """A variable of the APKBUILD, as the shell reads it."""
    script = f'set -eu; . {shlex.quote(str(CONTRIB / "alpine/APKBUILD"))}; printf %s "${variable}"'
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60, check=True).stdout


def test_debian_builds_with_what_the_makefile_installs():
    control = (CONTRIB / "debian/control").read_text()
    depends = re.search(r"^Build-Depends:\n((?: .*\n)+)", control, re.MULTILINE)[1]
    assert set(re.findall(r"^ ([\w.+-]+)", depends, re.MULTILINE)) == set(built_with()) - {"gcc", "make"} | {"debhelper-compat"}


def test_rpm_builds_with_what_the_makefile_installs(spec):
    assert set(spec("-q", "--buildrequires").split()) == {CALLED[name][0] for name in built_with()} | {"sed"}


def test_alpine_builds_with_what_the_makefile_installs():
    wanted = {CALLED[name][1] for name in built_with()} - {""} | {"linux-headers"}
    assert set(alpine("makedepends").split()) == wanted


def test_all_have_the_version_of_the_program(spec):
    assert spec("-q", "--srpm", "--qf", "%{version}") == VERSION
    assert alpine("pkgver") == VERSION
    assert (CONTRIB / "debian/changelog").read_text().startswith(f"ljspy ({VERSION}) ")


def test_all_have_the_same_maintainer(spec):
    (maintainer,) = re.findall(r"^Maintainer: (.*)$", (CONTRIB / "debian/control").read_text(), re.MULTILINE)
    assert re.fullmatch(r"ljspy maintainers <\S+@\S+\.\S+>", maintainer)
    assert f" -- {maintainer}  " in (CONTRIB / "debian/changelog").read_text()
    assert f"# Maintainer: {maintainer}\n" in (CONTRIB / "alpine/APKBUILD").read_text()
    assert f"{maintainer} - {VERSION}" in spec("-q", "--srpm", "--qf", "%{changelogname}")


@pytest.mark.usefixtures("built")
@pytest.mark.long
def test_rpm_has_every_file_that_is_installed(spec, tmp_path):
    files = re.search(r"^%files\n((?:\S.*\n)+)", spec("-P"), re.MULTILINE)[1]
    listed = {line.removesuffix("*") for line in files.splitlines() if line.startswith("/")}
    assert listed == installed(tmp_path)


@pytest.mark.usefixtures("built")
@pytest.mark.long
def test_alpine_installs_what_make_does(tmp_path):
    """The subpackages take the manual page and the completions; abuild does so by these folders."""
    packaged, made = tmp_path / "packaged", tmp_path / "made"
    script = f'set -eu; . {shlex.quote(str(CONTRIB / "alpine/APKBUILD"))}; pkgdir=$1; package'
    subprocess.run(["sh", "-c", script, "sh", packaged], cwd=ljspy.ROOT, capture_output=True, timeout=120, check=True)
    found = {f"/{path.relative_to(packaged)}" for path in packaged.rglob("*") if path.is_file()}
    assert found == installed(made) | {"/usr/share/licenses/ljspy/LICENSE"}
    for folder, part in (("man", "doc"), ("bash-completion", "bash-completion"), ("zsh", "zsh-completion"), ("fish", "fish-completion")):
        assert any(path.startswith(f"/usr/share/{folder}/") for path in found)
        assert f"ljspy-{part}" in alpine("subpackages").split()


@pytest.mark.long
def test_the_tarball_is_the_same_wherever_it_is_made(tmp_path):
    def ignored(folder, names):
        is_tests = pathlib.Path(folder) == ljspy.ROOT / "tests"
        return [name for name in names if name in ("build", ".git") or is_tests and (ljspy.ROOT / "tests" / name).is_dir()]

    made = []
    for folder in (tmp_path / "a", tmp_path / "somewhere" / "else"):
        shutil.copytree(ljspy.ROOT, folder, ignore=ignored)
        subprocess.run(["make", "-C", folder, "-s", "tarball"], capture_output=True, timeout=120, check=True)
        made.append((folder / f"build/ljspy-{VERSION}.tar.gz").read_bytes())
    assert made[0] == made[1]
    names = subprocess.run(["tar", "-tz"], input=made[0], capture_output=True, timeout=60, check=True).stdout.decode().split()
    prefix = f"ljspy-{VERSION}/"
    assert all(name.startswith(prefix) for name in names)
    assert {prefix + name for name in ("GNUmakefile", "LICENSE", "contrib/rpm/ljspy.spec", "tests/install", "src/commands/main.c")} <= set(names)
