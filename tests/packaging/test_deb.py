# SPDX-License-Identifier: MIT
"""The Debian package, installed beside the machine's own packages."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

import made
import ljspy

pytestmark = [
    pytest.mark.usefixtures("built"),
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("dpkg-shlibdeps"), reason="dpkg-dev is not installed"),
]

DPKG = pathlib.Path("/var/lib/dpkg")


@pytest.fixture(scope="module")
def package():
    made.make("deb")
    (found,) = (ljspy.ROOT / "build/release").glob(f"ljspy_{made.version()}_*.deb")
    return found


def debug_info(package):
    return package.with_name(package.name.replace("ljspy_", "ljspy-dbgsym_"))


class Root:
    """A separate root with a copy of the machine's package database, so that dpkg checks
    dependencies against the installed packages."""

    def __init__(self, directory):
        self.directory = directory
        self.database = directory / "var/lib/dpkg"
        (self.database / "info").mkdir(parents=True)
        (self.database / "updates").mkdir()
        (self.database / "triggers").mkdir()
        shutil.copy(DPKG / "status", self.database)
        # With these lists, dpkg refuses to overwrite other packages' files.
        for listed in (DPKG / "info").glob("*.list"):
            shutil.copy(listed, self.database / "info")

    def dpkg(self, *arguments):
        as_root = [] if os.geteuid() == 0 else ["fakeroot"]
        options = [f"--instdir={self.directory}", f"--admindir={self.database}", "--log=/dev/null", "--force-not-root"]
        return subprocess.run([*as_root, "dpkg", *options, *arguments], capture_output=True, text=True, check=False)

    def files(self):
        return {str(path.relative_to(self.directory)) for path in self.directory.glob("usr/**/*") if path.is_file()}


@pytest.fixture
def root(package, tmp_path):
    if os.geteuid() != 0 and not shutil.which("fakeroot"):
        pytest.skip("to install packages without being root takes fakeroot, which is not installed")
    root = Root(tmp_path)
    installed = root.dpkg("-i", str(package))
    assert installed.returncode == 0, installed.stderr
    return root


def test_it_installs_and_profiles(root, tmp_path):
    with ljspy.program("luajit", "shares", "off") as target:
        program = root.directory / "usr/bin/ljspy"
        folded = tmp_path / "out.folded"
        ran = subprocess.run(
            [program, "record", "-p", str(target.pid), "-d", "1s", "-r", "997", "-o", folded], capture_output=True, text=True, timeout=60, check=False
        )
    assert ran.returncode == ljspy.OK, ran.stderr
    assert "heavy shares.lua:5" in folded.read_text()


def test_what_is_in_it(root):
    assert root.files() == {
        "usr/bin/ljspy",
        "usr/share/bash-completion/completions/ljspy",
        "usr/share/doc/ljspy/changelog.gz",
        "usr/share/doc/ljspy/copyright",
        "usr/share/fish/vendor_completions.d/ljspy.fish",
        "usr/share/man/man1/ljspy.1.gz",
        "usr/share/zsh/vendor-completions/_ljspy",
    }
    verified = root.dpkg("--verify", "ljspy")
    assert (verified.returncode, verified.stdout) == (0, ""), verified.stdout


def test_it_depends_on_every_library_it_loads(package, root):
    depends = subprocess.run(["dpkg-deb", "-f", package, "Depends"], capture_output=True, text=True, check=True).stdout
    needed = subprocess.run(["objdump", "-p", root.directory / "usr/bin/ljspy"], capture_output=True, text=True, check=True).stdout
    libraries = re.findall(r"NEEDED +lib([a-z]+)", needed)
    assert "unwind" in libraries
    for library in libraries:
        assert re.search(rf"\blib{library}", depends) or library in ("m", "rt", "dl", "pthread"), (library, depends)


def test_debug_info_is_in_a_package_of_its_own(package, root, tmp_path):
    subprocess.run(["dpkg-deb", "-x", debug_info(package), tmp_path / "debug"], check=True)
    notes = subprocess.run(["readelf", "-n", root.directory / "usr/bin/ljspy"], capture_output=True, text=True, check=True).stdout
    build_id = re.search(r"Build ID: ([0-9a-f]+)", notes)[1]
    found = tmp_path / f"debug/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
    sections = [subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
                for path in (found, root.directory / "usr/bin/ljspy")]
    assert [".debug_info" in section for section in sections] == [True, False]


def test_the_manual_page_is_found(root):
    if not shutil.which("man"):
        pytest.skip("man is not installed")
    shown = subprocess.run(
        ["man", "-M", root.directory / "usr/share/man", "-P", "cat", "ljspy"], capture_output=True, text=True, check=False
    )
    assert "profile running LuaJIT programs from outside" in shown.stdout, shown.stderr


def test_it_goes_without_a_trace(root):
    assert root.dpkg("--purge", "ljspy").returncode == 0
    assert not root.files()


def test_lintian(package):
    if not shutil.which("lintian"):
        pytest.skip("lintian is not installed")
    options = ["--fail-on", "error,warning,info,pedantic", "--display-info", "--pedantic"]
    as_root = ["--allow-root"] if os.geteuid() == 0 else []
    judged = subprocess.run(["lintian", *as_root, *options, package, debug_info(package)], capture_output=True, text=True, timeout=300, check=False)
    assert judged.returncode == 0, judged.stdout + judged.stderr
