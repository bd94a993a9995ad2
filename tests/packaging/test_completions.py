# SPDX-License-Identifier: MIT
"""Check the completions by what the shells themselves offer."""

import os
import re
import shlex
import shutil
import subprocess

import pytest

import help_text
import ljspy
from terminal import Terminal

pytestmark = pytest.mark.usefixtures("built")

DIRECTORY = ljspy.ROOT / "contrib/completions"

# Names of arguments: those with completions, and those without. Add a new one here and
# to the completions.
COMPLETED = {"PID[,PID...]", "FILE", "FORMAT", "WHICH", "NAME|FILE", "STATE[,...]", "WHAT", "CLOCK", "WEIGHT", "MEASURE"}
TYPED = {"", "PATTERN", "TIME", "HZ", "TID[,TID...]", "NAME", "REGEX", "SHARE", "SIZE", "ADDRESS", "URL", "CONDITION", "NUMBER", "FUNCTION",
         "TRACE"}


def environment():
    return dict(os.environ, PATH=f"{ljspy.LJSPY.parent}:{os.environ['PATH']}", LC_ALL="C.UTF-8")


# After what a shell offers for a line.
END = "\x1e"


def bash_command(line):
    """Call the function as bash would, for the words of the line, which bash also splits at "="."""
    words = [word for part in line.split(" ") for word in part.replace("=", " = ").rstrip(" ").split(" ")]
    if line.endswith("="):
        words = words[:-1] + ["="]
    return (
        f"COMPREPLY=(); COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}; _ljspy; "
        f"printf '%s\\n' \"${{COMPREPLY[@]}}\" {END}"
    )


def in_bash(*lines):
    """What bash offers for each line."""
    script = [f"source {shlex.quote(str(DIRECTORY / 'ljspy.bash'))}; compopt() {{ :; }}", *map(bash_command, lines)]
    return run_shell(["bash", "--norc", "--noprofile", "-c", "\n".join(script)])


def in_fish(*lines):
    """What fish offers for each line, without its descriptions."""
    script = [f"source {shlex.quote(str(DIRECTORY / 'ljspy.fish'))}"]
    script += [f"complete -C {shlex.quote(line)}; echo {END}" for line in lines]
    return [
        [text.split("\t")[0].removeprefix(line.rpartition(" ")[2].rpartition("=")[0] + "=") for text in offered]
        for line, offered in zip(lines, run_shell(["fish", "--no-config", "-c", "\n".join(script)]))
    ]


def run_shell(argv):
    """The lines of the output before each END."""
    result = subprocess.run(argv, cwd=ljspy.ROOT, env=environment(), capture_output=True, text=True, timeout=250, check=True)
    assert not result.stderr, result.stderr
    return [[text for text in part.split("\n") if text] for part in result.stdout.split(END)[:-1]]


SHELLS = {"bash": in_bash, "fish": in_fish}


@pytest.fixture(params=SHELLS)
def offer_each(request):
    """What a shell offers for each of some lines: it starts once."""
    if not shutil.which(request.param):
        pytest.skip(f"{request.param} is not installed")
    return SHELLS[request.param]


@pytest.fixture
def offer(offer_each):
    return lambda line: offer_each(line)[0]


COMMANDS = help_text.commands() if ljspy.LJSPY.exists() else []


def test_commands(offer):
    assert set(COMMANDS) <= set(offer("ljspy "))
    assert offer("ljspy recor") == ["record"]


@pytest.mark.parametrize("command", COMMANDS)
def test_options(offer, command):
    told = sorted(option.long for option in help_text.options(command))
    assert sorted(offer(f"ljspy {command} --")) == told


@pytest.mark.parametrize("command", COMMANDS)
def test_every_argument_is_known(command):
    assert {option.argument for option in help_text.options(command)} <= COMPLETED | TYPED


@pytest.fixture(scope="module")
def target():
    with ljspy.busy(limit=300) as running:
        yield running


@pytest.mark.usefixtures("target")
@pytest.mark.parametrize("command", COMMANDS)
def test_arguments_are_offered_for_long_and_short_options(offer_each, command):
    # One option for each kind of argument; of processes there is a test of its own.
    kinds = {option.argument: option for option in help_text.options(command) if option.argument}
    del kinds["PID[,PID...]"]
    names = [(option, name) for option in kinds.values() for name in (option.short, option.long) if name]
    found = offer_each(*(f"ljspy {command} {name} " for _, name in names))
    assert len(found) == len(names) > 0
    for (option, name), offered in zip(names, found):
        assert not any(text.startswith("-") for text in offered)
        assert bool(offered) == (option.argument in COMPLETED), (name, offered)


def test_formats(offer):
    told = sorted(help_text.formats("record"))
    assert told
    assert sorted(offer("ljspy record --format ")) == told
    assert sorted(offer("ljspy record -f ")) == told
    assert sorted(offer("ljspy record --format=")) == told
    assert offer("ljspy record --format=fold") == ["folded"]


def test_clocks(offer):
    for clock in offer("ljspy record --clock "):
        assert "There is no clock" not in ljspy.run("record", "--clock", clock, "-p", "0").stderr


def test_what_a_clock_records(offer, tmp_path):
    refused = ljspy.run("report", "--clock", "nonsense", tmp_path / "none").stderr
    offered = offer("ljspy report --clock ")
    assert "alloc" in offered
    for weight in offered:
        assert weight in refused
        assert "There is no clock" not in ljspy.run("report", "--clock", weight, tmp_path / "none").stderr


def test_ways_to_show_native_code(offer):
    for way in offer("ljspy dump --native "):
        assert "is not a way" not in ljspy.run("dump", "--native", way, "-p", "0").stderr
    assert sorted(offer("ljspy dump --native ")) == ["all", "fold", "none"]


def known(*arguments):
    """The words that ljspy names when it is given another one: "What there is: a, b and c." """
    note = ljspy.run(*arguments, "nonsense").stderr.splitlines()[-1]
    return sorted(re.split(r", | and ", re.sub(r"^.*(?:: | are )|\.$", "", note.removeprefix("ljspy: "))))


def test_words_are_those_that_ljspy_knows(offer):
    states, of_heaps, of_profiles = known("report", "--state"), known("heap", "--by"), known("report", "--by")
    assert {"blocked", "gc"} <= set(states) and "coroutine" in of_heaps and "upstream" in of_profiles
    assert sorted(offer("ljspy report --state ")) == states
    assert sorted(offer("ljspy report --by ")) == sorted({*of_profiles, *of_heaps})
    assert sorted(offer("ljspy heap --by ")) == sorted(offer("ljspy hea --by ")) == of_heaps
    assert sorted(offer("ljspy heap --measure ")) == known("heap", "--measure")
    assert offer("ljspy report --state running,comp") == ["running,compiled"]


def test_help_of_commands(offer):
    assert "help" in offer("ljspy ")
    assert sorted(offer("ljspy help ")) == sorted(COMMANDS)
    assert not offer("ljspy help record ")


def test_recordings(offer):
    assert offer("ljspy report GNU") == ["GNUmakefile"]
    assert offer("ljspy diff a GNU") == ["GNUmakefile"]


def test_files(offer):
    assert offer("ljspy record --stats GNU") == ["GNUmakefile"]


def test_processes_that_run_luajit(offer, target):
    pid = str(target.pid)
    assert pid in offer("ljspy dump -p ")
    assert str(os.getpid()) not in offer("ljspy dump -p ")
    assert pid in offer(f"ljspy dump -p {pid[:1]}")
    assert f"1,{pid}" in offer(f"ljspy dump -p 1,{pid[:1]}")


def test_a_command_to_start(offer):
    assert "printf" in offer("ljspy record -- print")


# zsh answers only at a prompt.


@pytest.fixture
def zsh(tmp_path):
    if not shutil.which("zsh"):
        pytest.skip("zsh is not installed")
    if not shutil.which("tmux"):
        pytest.skip("tmux is not installed")
    command = f"cd {shlex.quote(str(ljspy.ROOT))}; exec zsh -f"
    with Terminal(tmp_path, command, lines=50, env={"PATH": environment()["PATH"], "PS1": "%% "}) as terminal:
        terminal.wait_for(lambda lines: lines[:1] == ["%"])
        terminal.text(f"fpath=({shlex.quote(str(DIRECTORY))} $fpath); autoload -U compinit; compinit -u -D; PS1='> '; clear\r")
        terminal.wait_for(lambda lines: lines[0] == ">", seconds=60)
        yield terminal


def ask(zsh, line, answer):
    """Type the line and Tab, and wait for the answer on the screen, a text or a function of it."""
    zsh.text(line)
    zsh.wait_for(line.rstrip())
    zsh.keys("Tab")
    lines = zsh.wait_for(answer, seconds=60)
    zsh.keys("C-u", "C-l")
    zsh.wait_for(lambda lines: lines[0] == ">" and not any(lines[1:]))
    return lines


def words(lines):
    return {line.split()[0] for line in lines[1:] if line.split()}


def test_zsh(zsh):
    ask(zsh, "ljspy ", lambda lines: set(COMMANDS) <= words(lines))
    ask(zsh, "ljspy recor", "> ljspy record")
    ask(zsh, "ljspy help dum", "> ljspy help dump")
    ask(zsh, "ljspy heap --by=", lambda lines: {"path", "type"} <= set(" ".join(lines[1:]).split()) and "pid" not in lines[1])
    ask(zsh, "ljspy report --by=ups", "> ljspy report --by=upstream")
    for command in COMMANDS:
        told = {option.long for option in help_text.options(command)}
        ask(zsh, f"ljspy {command} --", lambda lines, told=told: words(lines) == told)
    ask(zsh, "ljspy record -f fol", "> ljspy record -f folded")
    ask(zsh, "ljspy record --native=", lambda lines: words(lines) & {"all"} and "fold" in lines[1])
    ask(zsh, "ljspy record --stats GNU", "> ljspy record --stats GNUmakefile")
    ask(zsh, "ljspy record -- print", lambda lines: "printf" in "\n".join(lines))
