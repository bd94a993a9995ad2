# SPDX-License-Identifier: MIT
"""Units, manifests and configurations in contrib/ have what ljspy needs, and nothing else."""

import contextlib
import gzip
import http.client
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

import help_text
import ljspy

sys.path.append(str(ljspy.ROOT / "tests/push"))
import profile_server  # pylint: disable=wrong-import-position

pytestmark = pytest.mark.usefixtures("built")

CONTRIB = ljspy.ROOT / "contrib"
UNITS = ("ljspy-record", "ljspy-serve")
MANIFESTS = ("daemonset", "sidecar")
PROMTOOL = ljspy.PACKAGES / "prometheus/usr/bin/promtool"
# What systemd counts against a unit: 10 is no protection at all.
EXPOSURE_MAX = 3.0


def unit(name):
    return (CONTRIB / f"systemd/{name}.service").read_text()


def manifest(name):
    return (CONTRIB / f"kubernetes/{name}.yaml").read_text()


def settings(text, key):
    return re.findall(rf"^{key}=(.*)$", text, re.MULTILINE)


def systemd(*arguments):
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd is not installed")
    return subprocess.run(["systemd-analyze", "--no-pager", *arguments], capture_output=True, text=True, check=False,
                          timeout=60)


@pytest.mark.parametrize("name", UNITS)
def test_systemd_knows_all_of_a_unit_and_finds_it_tight(name, tmp_path):
    path = tmp_path / f"{name}.service"
    path.write_text(unit(name).replace("/usr/bin/ljspy", str(ljspy.LJSPY)))
    said = systemd("verify", "--man=no", path)
    assert said.returncode == 0 and not said.stderr.strip(), said.stderr
    said = systemd("security", "--offline=true", f"--threshold={int(EXPOSURE_MAX * 10)}", path)
    assert said.returncode == 0 and "Overall exposure level" in said.stdout, said.stdout + said.stderr


@pytest.mark.parametrize("words", [settings(unit(name), "ExecStart")[0].split()[1:] for name in UNITS] +
                         [re.findall(r"^ +- (\S+)$", manifest(name).split("args:")[1].split("env:")[0], re.MULTILINE)
                          for name in MANIFESTS])
def test_command_lines_have_options_that_there_are(words):
    known = {option.long for option in help_text.options(words[0])} | {o.short for o in help_text.options(words[0])}
    given = {word.partition("=")[0] for word in words[1:] if word.startswith("-")}
    assert len(given) >= 2 and given <= known


@contextlib.contextmanager
def two_targets():
    """A program of root's and one of another user's."""
    if os.geteuid() != 0:
        pytest.skip("only root can give and take rights")
    with ljspy.busy() as one, ljspy.busy(user=ljspy.NOBODY) as other:
        yield one, other


def rights(names, user):
    """The command line that runs another with these capabilities only."""
    added = ",".join(f"+{name.lower().removeprefix('cap_')}" for name in names)
    ambient = [] if user == 0 else [f"--ambient-caps={added}"]
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs",
            f"--inh-caps=-all,{added}", *ambient, f"--bounding-set=-all,{added}"]


@pytest.mark.long
@pytest.mark.parametrize("name, user", [("ljspy-record", 54321), ("daemonset", 0), ("sidecar", 0)])
def test_the_rights_are_enough(name, user):
    if user:
        names = settings(unit(name), "CapabilityBoundingSet")[0].split()
        assert names == settings(unit(name), "AmbientCapabilities")[0].split()
    else:
        names = re.findall(r'"(\w+)"', re.search(r"add: \[(.*)\]", manifest(name))[1])
        assert 'drop: ["ALL"]' in manifest(name)
    with two_targets() as targets, ljspy.directory_of(user) as directory, profile_server.serving() as server:
        program = directory / "ljspy"
        shutil.copy(ljspy.LJSPY, program)
        pids = ",".join(str(target.pid) for target in targets)
        argv = [*rights(names, user), program, "record", "-p", pids, "--every", "1s", "-r", "199", "-o",
                directory / "kept", "--push", server.url]
        with subprocess.Popen([str(a) for a in argv], stderr=subprocess.PIPE, text=True) as process:
            assert ljspy.wait_until(lambda: len(server.profiles) >= 2, seconds=30)
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=30)[1]
        assert process.returncode == ljspy.OK, said
        report = subprocess.run([ljspy.LJSPY, "report", directory / "kept", "--by", "pid"], capture_output=True,
                                text=True, check=True).stdout
        assert all(f"(pid {target.pid})" in report for target in targets)


def allowed_calls(text):
    """The system calls that a unit's filter lets through."""
    sets = {}
    for line in systemd("syscall-filter").stdout.splitlines():
        if line.startswith("@"):
            members = sets.setdefault(line.strip(), set())
        elif line.startswith("    ") and not line.strip().startswith("#"):
            members.add(line.strip())

    def expand(name):
        return set().union(*map(expand, sets[name])) if name in sets else {name}

    first, *rest = settings(text, "SystemCallFilter")
    calls = set().union(*map(expand, first.split()))
    for taken in rest:
        calls -= expand(taken.removeprefix("~"))
    return calls


# Ends the process at each system call but those in its first argument, and runs the rest of them.
FILTER = """
import ctypes, os, sys
library = ctypes.CDLL("libseccomp.so.2")
library.seccomp_init.restype = context = ctypes.c_void_p
filter = context(library.seccomp_init(0x80000000))
for name in sys.argv[1].split():
    number = library.seccomp_syscall_resolve_name(name.encode())
    if number >= 0:
        library.seccomp_rule_add(filter, 0x7fff0000, number, 0)
sys.exit(1) if library.seccomp_load(filter) else os.execv(sys.argv[2], sys.argv[2:])
"""


@pytest.mark.long
@pytest.mark.parametrize("name", UNITS)
def test_the_system_calls_are_enough(name, tmp_path):
    calls = allowed_calls(unit(name))
    assert not {"mount", "bpf", "keyctl", "kexec_load", "init_module", "reboot", "swapon"} & calls
    if subprocess.run(["/usr/bin/python3", "-c", FILTER, " ".join(calls), "/bin/true"], capture_output=True,
                      check=False).returncode:
        pytest.skip("libseccomp is not installed")
    options = ["serve", "--listen", "127.0.0.1:0"]
    with ljspy.busy() as target, profile_server.serving() as server:
        if name == "ljspy-record":
            options = ["record", "--every", "1s", "-o", tmp_path / "kept", "--push", server.url]
        argv = ["/usr/bin/python3", "-c", FILTER, " ".join(calls), ljspy.LJSPY, *options, "-p", target.pid]
        with subprocess.Popen([str(a) for a in argv], stderr=subprocess.PIPE, text=True) as process:
            if name == "ljspy-record":
                assert ljspy.wait_until(lambda: server.profiles or process.poll() is not None, seconds=60)
            else:
                port = int(re.search(r":(\d+)$", process.stderr.readline())[1])
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                connection.request("GET", "/debug/pprof/wall?seconds=1")
                assert b"heavy" in gzip.decompress(connection.getresponse().read())
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=60)[1]
        assert process.returncode == ljspy.OK, said
        assert name != "ljspy-record" or server.profiles, said


@pytest.mark.parametrize("name", ["alloy.alloy", "parca.yaml"])
def test_paths_are_those_that_are_served(name):
    paths = set(re.findall(r"/debug/pprof/\w+", (CONTRIB / "services" / name).read_text()))
    assert len(paths) >= 2
    argv = [ljspy.LJSPY, "serve", "--name", "no-such-program", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as process:
        port = int(re.search(r":(\d+)$", process.stderr.readline())[1])
        for path in paths:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            connection.request("GET", f"{path}?seconds=0")
            assert connection.getresponse().status == 400  # there is no page: 404
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == ljspy.OK


def test_prometheus_accepts_its_configuration():
    if not PROMTOOL.exists():
        pytest.skip("Debian's prometheus is not in build/packages")
    result = subprocess.run([PROMTOOL, "check", "config", CONTRIB / "services/prometheus.yaml"], capture_output=True,
                            text=True, check=False, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr


def test_manifests_are_yaml():
    yaml = pytest.importorskip("yaml")
    for path in [*CONTRIB.glob("kubernetes/*.yaml"), *CONTRIB.glob("services/*.yaml")]:
        assert isinstance(yaml.safe_load(path.read_text()), dict)


def installed_files(packages):
    """Files of Debian packages, and of those that they depend on, on this machine."""
    said = subprocess.run(["dpkg-query", "-W", "-f", "${Package}:${Depends}\n"], capture_output=True, text=True, check=True)
    depends = dict(line.split(":", 1) for line in said.stdout.splitlines())
    wanted, seen = list(packages), set()
    while wanted:
        name = wanted.pop()
        if name not in seen and name in depends:
            seen.add(name)
            wanted += re.findall(r"(?:^|, *)([a-z0-9.+-]+)", depends[name])
    listed = subprocess.run(["dpkg-query", "-L", *seen], capture_output=True, text=True, check=False).stdout
    return seen, {path for path in listed.splitlines() if re.match(r"/(usr/)?lib(64)?/.*\.so", path)}


@pytest.mark.long
def test_an_image_has_all_that_recording_and_pushing_need(tmp_path):
    """A root with the libraries of the packages that the Dockerfile installs, as they are installed here."""
    if os.geteuid() != 0 or not shutil.which("dpkg-query"):
        pytest.skip("neither chroot nor packages are to be had")
    stage = (CONTRIB / "Dockerfile").read_text().rpartition("FROM ")[2]
    packages = re.search(r"--no-install-recommends (.*?)&&", stage, re.DOTALL)[1].replace("\\", " ").split()
    known, files = installed_files([*packages, "libc6", "libtinfo6"])
    if not set(packages) <= known:
        pytest.skip(f"{sorted(set(packages) - known)} are not installed")
    root = tmp_path / "root"
    for directory in ("proc", "tmp", "usr/bin", "usr/lib", "host"):
        (root / directory).mkdir(parents=True)
    for link in ("lib", "lib64"):
        (root / link).symlink_to(f"usr/{link}")
    for path in files:
        there = root / "usr" / path.removeprefix("/usr").lstrip("/")
        there.parent.mkdir(parents=True, exist_ok=True)
        if os.path.exists(path) and not there.exists():
            there.symlink_to(f"/host{os.path.realpath(path)}")
    shutil.copy(ljspy.LJSPY, root / "usr/bin/ljspy")
    with ljspy.busy() as target, profile_server.serving() as server:
        argv = ljspy.in_namespaces("-m", setup=f"mount --rbind /proc {root}/proc && mount --bind / {root}/host", argv=[
            "chroot", root, "/usr/bin/ljspy", "record", "-p", target.pid, "--every", "1s", "-o", "/tmp/kept",
            "--push", server.url])
        with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env={}) as process:
            assert ljspy.wait_until(lambda: server.profiles or process.poll() is not None, seconds=30)
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=30)[1]
    assert process.returncode == ljspy.OK and server.profiles, said
