# SPDX-License-Identifier: MIT
"""The manual page, --help and what ljspy does agree, option by option."""

import re
import shutil
import subprocess

import pytest

import help_text
import ljspy

pytestmark = pytest.mark.usefixtures("built")

PAGE = ljspy.ROOT / "contrib/ljspy.1"


def sections():
    parts = re.split(r"^\.Sh (.*)$", PAGE.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def plain(macros):
    """The arguments of a macro line as printed: "Fl p , Fl -pid Ar PID" is
    "-p, --pid PID"."""
    text = re.sub(r"\bFl (\S+)", r"-\1", macros)
    text = re.sub(r" Ns Op , Ns Ar (\S+)", r"[,\1]", text)
    text = re.sub(r"\b(?:Ar|Cm) ", "", text)
    return text.replace(" ,", ",").strip()


def synopsis():
    """The options in the synopsis of each command."""
    found = {}
    for part in sections()["SYNOPSIS"].split(".Nm\n")[1:]:
        lines = part.splitlines()
        if lines[0].startswith(".Cm "):
            found[lines[0][4:]] = [plain(line[4:]) for line in lines[1:] if line.startswith(".Op ")]
    return found


def documented():
    """The options of the OPTIONS section, as Option."""
    found = []
    for row in re.findall(r"^\.It (Fl .*)$", sections()["OPTIONS"], re.MULTILINE):
        short, long, argument = re.fullmatch(r"(?:(-\w), )?(--[a-z-]+)(?: (.*))?", plain(row)).groups(default="")
        found.append(help_text.Option(short, long, argument))
    return found


def spelled(option):
    """The option as written in a synopsis."""
    return f"{option.short or option.long} {option.argument}".strip()


def test_every_command_has_its_synopsis():
    assert sorted(synopsis()) == sorted(help_text.commands())


@pytest.mark.parametrize("command", help_text.commands() if ljspy.LJSPY.exists() else [])
def test_the_synopsis_has_the_options_of_the_command(command):
    told = [spelled(option) for option in help_text.options(command) if option.long not in ("--help", "--version")]
    shown = [option for option in synopsis()[command] if not option.startswith("-- ")]
    assert sorted(shown) == sorted(told)


def test_every_option_is_described_once():
    told = {option for command in help_text.commands() for option in help_text.options(command)}
    assert sorted(documented()) == sorted(told)


def test_every_format_is_described():
    told = {name for command in help_text.commands() for name in help_text.formats(command)}
    described = re.findall(r"^\.It Cm (\S+)$", sections()["FORMATS"], re.MULTILINE)
    assert told
    assert sorted(described) == sorted(told)


def test_every_key_of_the_help_of_top_is_described():
    source = (ljspy.ROOT / "src/top/screen.c").read_text()
    shown = re.findall(r'^\t\t"(\S.*?)  +\S.*",$', source, re.MULTILINE)
    keys = {key for row in shown for key in re.split(r",? ", row) if not key.isupper() or len(key) == 1}
    described = {re.sub(r"\\&", "", word) for row in re.findall(r"^\.It Ic (.*)$", sections()["KEYS OF TOP"], re.MULTILINE) for word in row.split()}
    described |= set(re.findall(r"^\.Ic (\S+)$", sections()["KEYS OF TOP"], re.MULTILINE))
    assert len(keys) > 15
    assert keys - {"pause", "charts", "OWN%", "TOTAL%"} <= described


def test_exit_statuses():
    described = re.findall(r"^\.It (\d+)$", sections()["EXIT STATUS"], re.MULTILINE)
    assert [int(status) for status in described] == [ljspy.OK, ljspy.WITH_ERRORS, ljspy.NOTHING_PROFILED, ljspy.USAGE]


def test_the_page_is_well_formed():
    if not shutil.which("mandoc"):
        pytest.skip("mandoc is not installed")
    lint = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", PAGE], capture_output=True, text=True, check=False)
    assert lint.returncode == 0, lint.stdout


@pytest.mark.parametrize("command", ["record", "serve"])
def test_what_is_the_same_follows_what_it_is_the_same_as(command):
    names = [option.long for option in help_text.options(command)]
    assert names.index("--threshold") == names.index("--blocked") + 1


@pytest.mark.parametrize("command", [None, *(help_text.commands() if ljspy.LJSPY.exists() else [])])
def test_help_fits_a_screen(command):
    """The screen has 80 columns and a tall terminal's rows."""
    result = ljspy.run(*([command] if command else []), "--help")
    lines = result.stdout.splitlines()
    assert len(lines) <= 56
    assert max(map(len, lines)) < 80
    assert "Examples:" in lines
