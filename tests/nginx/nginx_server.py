# SPDX-License-Identifier: MIT
"""A real nginx with OpenResty's Lua module, as Debian builds both."""

import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request

import ljspy

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "layouts"))
import packages  # noqa: E402

OTHER_RELEASES = ("bullseye", "trixie", "sid")
# Of all tests here; None: this machine's.
RELEASE = os.environ.get("LJSPY_NGINX")
# lua-nginx-module 0.10.13 of Debian 11 makes a function of a block's Lua, where later ones have a main chunk. Its API
# is C, without lua-resty-core; so there is no ngx.balancer, and C functions without a name do what FFI calls do later.
IS_OLD = RELEASE == "bullseye"
# The kernel's name of the process: the loader of another release starts nginx.
COMM = "ld-linux-x86-64" if RELEASE else "nginx"


def template(name):
    """Read a configuration, in which words like @PORT@ stand for settings."""
    return (pathlib.Path(__file__).parent / name).read_text()


@contextlib.contextmanager
def directory_for_workers():
    """A new directory in which a worker, who is nobody, can file bodies and cached answers. It is not below pytest's
    own: each run of pytest closes that to other users, also while another one has tests there."""
    with tempfile.TemporaryDirectory(prefix="ljspy-nginx-") as name:
        directory = pathlib.Path(name)
        directory.chmod(0o777)
        yield directory


def children(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def title(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


class Load(subprocess.Popen):
    """A running wrk; ends after its time, or by stop()."""

    def stop(self):
        """End wrk and return its report."""
        # timeout, which started wrk, passes the signal on.
        self.send_signal(signal.SIGINT)
        return self.communicate()[0]

    def __exit__(self, *exception):
        self.send_signal(signal.SIGINT)
        super().__exit__(*exception)


class Nginx:
    """A running server. USER, a number, starts it. If the master is root, the
    configuration makes its workers nobody. RELEASE: of Debian, another than this
    machine's; $LJSPY_NGINX has it for all. LAUNCHER becomes nginx. A context manager."""

    def __init__(self, directory, config, user=None, limit=120, release=None, launcher=(), **settings):
        directory.mkdir(exist_ok=True)
        if user is not None:
            os.chown(directory, user, user)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        release = release or RELEASE
        root = packages.nginx(release) if release else ljspy.PACKAGES
        settings |= {"DIRECTORY": directory, "PACKAGES": root, "PORT": self.port}
        path = directory / "nginx.conf"
        path.write_text(re.sub("@([A-Z]+)@", lambda m: str(settings[m[1]]), config))
        self.error_log = directory / "error.log"
        environment = os.environ | {"LD_LIBRARY_PATH": str(root / "libluajit2-5.1-2/usr/lib/x86_64-linux-gnu")}
        command = packages.loader(root, root / "usr/sbin/nginx") if release else [root / "nginx/usr/sbin/nginx"]
        if release != "bullseye":  # which has only that of the configuration
            command += ["-e", self.error_log]
        command += ["-p", f"{directory}/", "-c", path]
        self.master = ljspy.Target([*launcher, *command], env=environment, limit=limit, user=user)

    def wait_answers(self, *paths):
        assert ljspy.wait_until(lambda: all(self.answers(path) for path in paths)), self.error_log.read_text()

    @property
    def workers(self):
        """Pids of the master's children, including draining ones."""
        return children(self.master.pid)

    @property
    def worker(self):
        """The only one, once it has begun: then it has a title. Others may look after a cache."""
        def begun():
            return [pid for pid in self.workers if "nginx: worker process" in title(pid)]
        assert ljspy.wait_until(lambda: len(begun()) == 1, seconds=ljspy.READY_SECONDS), self.error_log.read_text()
        return begun()[0]

    def answers(self, path):
        try:
            return self.get(path)
        except OSError:
            return None

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as response:
            return response.read()

    def load(self, path, seconds, connections=2, options=()):
        argv = ["timeout", seconds + 10, "wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", *options]
        argv.append(f"http://127.0.0.1:{self.port}{path}")
        return Load([str(a) for a in argv], stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # A killed master would leave its worker behind.
        self.master.process.send_signal(signal.SIGTERM)
        try:
            self.master.process.wait(timeout=ljspy.READY_SECONDS)
        finally:
            self.master.stop()
