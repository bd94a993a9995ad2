# SPDX-License-Identifier: MIT
"""A terminal for programs that draw on it: a separate tmux."""

import os
import shlex
import subprocess

import ljspy


class Terminal:
    """Runs a shell command on COLUMNS by LINES cells. A context manager; leaves the
    user's tmux and its settings alone."""

    def __init__(self, directory, command, columns=80, lines=24, term="screen-256color", env=None):
        # A socket's path may have only about a hundred characters, so use a relative one.
        self.directory = directory
        self.base = ["tmux", "-S", "tmux"]
        settings = {"LC_ALL": "C.UTF-8", "NO_COLOR": "", "PS1": "$ ", **(env or {}), "TERM": term}
        shell = " ".join(f"{name}={shlex.quote(value)}" for name, value in settings.items())
        self.tmux(
            *("-f", "/dev/null", "-u", "new-session", "-d", "-x", columns, "-y", lines),
            f"cd {shlex.quote(str(directory))}; export {shell}; {command}",
            env=dict(os.environ, LC_ALL="C.UTF-8"),
        )

    def tmux(self, *arguments, **options):
        argv = [*self.base, *map(str, arguments)]
        return subprocess.run(argv, cwd=self.directory, check=True, capture_output=True, timeout=20, **options).stdout.decode()

    def keys(self, *keys):
        """Press keys by tmux's names; type anything else as it is."""
        self.tmux("send-keys", *keys)

    def text(self, text):
        self.tmux("send-keys", "-l", text)

    def resize(self, columns, lines):
        self.tmux("resize-window", "-x", columns, "-y", lines)

    def screen(self, *options):
        return self.tmux("capture-pane", "-p", *options)

    def lines(self):
        return self.screen().splitlines()

    def wait_for(self, condition, seconds=30):
        """Wait until the condition, a text or a function of the lines, holds for the
        screen. Returns the lines."""
        seen = []

        def is_seen():
            seen[:] = self.lines()
            return condition in "\n".join(seen) if isinstance(condition, str) else condition(seen)

        if not ljspy.wait_until(is_seen, seconds):
            raise AssertionError(f"waited for {condition} in vain on this screen:\n" + "\n".join(seen))
        return seen

    def close(self):
        subprocess.run([*self.base, "kill-server"], cwd=self.directory, check=False, capture_output=True, timeout=20)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
