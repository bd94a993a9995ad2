# SPDX-License-Identifier: MIT
"""The pages and images in contrib/ match the program."""

import re
import shutil
import subprocess

import pytest

import help_text
import ljspy

pytestmark = pytest.mark.usefixtures("built")

CONTRIB = ljspy.ROOT / "contrib"
PAGES = ("openresty.md", "Dockerfile", "kubernetes-ephemeral-container.yaml", "../doc/ALWAYS_ON.md",
         "services/alloy.alloy", "services/parca.yaml", "systemd/ljspy-serve.service", "systemd/ljspy-record.service")


def invocations(page):
    """Command and options of each `ljspy COMMAND ...` in a page, up to the end of its code."""
    for found in re.finditer(r"\bljspy ([a-z]+)((?: +(?!--(?: |$))[^\s`|>]+)*)", (CONTRIB / page).read_text()):
        if found[1] in help_text.commands():
            yield found[1], re.findall(r"(?<= )--?[a-z][a-z-]*", found[2])


@pytest.mark.parametrize("page", PAGES)
def test_command_lines_have_options_that_there_are(page):
    found = list(invocations(page))
    assert found
    for command, options in found:
        known = {name for option in help_text.options(command) for name in (option.short, option.long)}
        assert set(options) <= known, (command, options)


def test_image_has_the_libraries_that_the_program_needs():
    if not shutil.which("dpkg"):
        pytest.skip("no dpkg to ask whose a library is")
    stage = (CONTRIB / "Dockerfile").read_text().rpartition("FROM ")[2]
    needed = subprocess.run(["readelf", "-d", ljspy.LJSPY], capture_output=True, text=True, check=True).stdout
    for library in re.findall(r"NEEDED.*\[(.+)\]", needed):
        owner = subprocess.run(["dpkg", "-S", f"*/{library}"], capture_output=True, text=True, check=False).stdout
        packages = {line.split(":")[0] for line in owner.splitlines()}
        present = packages & {"libc6", "libtinfo6", *stage.split()}  # every Debian has the first two
        assert present or not packages, (library, packages)
