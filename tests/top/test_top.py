# SPDX-License-Identifier: MIT
"""Press keys in ljspy top and check the screen."""

import contextlib
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import termios
import time
from typing import NamedTuple

import pytest

import ljspy
from terminal import Terminal

pytestmark = [
    pytest.mark.usefixtures("built"),
    pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed"),
]

CTRL_L = b"\f"
HEAD = 4  # lines before the rows, without the charts


class Row(NamedTuple):
    own: float
    total: float
    text: str


def rows(lines):
    found = [re.fullmatch(r" *([\d.]+)%[ ↑↓^v] *([\d.]+)%[ ↑↓^v] (.*)", line) for line in lines[HEAD:]]
    return [Row(float(row[1]), float(row[2]), row[3].rstrip()) for row in found if row]


def names(lines):
    return [row.text.split()[0] for row in rows(lines)]


def busy_with(name):
    return lambda lines: names(lines)[:1] == [name]


def wait_for_all(terminal):
    """Choose a period of a minute, wait until all functions of the program are on the
    screen, and return its lines."""
    terminal.keys("]", "]", "]")
    return terminal.wait_for(lambda lines: names(lines)[:1] == ["heavy"] and {"foo", "bar", "main"} <= set(names(lines)))


@pytest.fixture
def target():
    with ljspy.program("luajit", "shares", "off") as target:
        yield target


@pytest.fixture
def top(tmp_path):
    """Returns a function that starts ljspy top in a terminal which outlives it."""
    terminals = []

    def start(*arguments, **options):
        command = " ".join(map(str, [ljspy.LJSPY, "top", *arguments]))
        script = f"echo it was like this; stty -a >before; {command}; echo $? >status; stty -a >after; exec sleep 60"
        terminals.append(Terminal(tmp_path, script, **options))
        return terminals[-1]

    yield start
    for terminal in terminals:
        terminal.close()


def wait_status(directory):
    """The exit status, once ljspy has ended."""
    after = directory / "after"
    assert ljspy.wait_until(lambda: after.exists() and after.read_text().strip()), "ljspy top did not end"
    return int((directory / "status").read_text())


def check_terminal_is_as_before(terminal, directory):
    assert (directory / "after").read_text() == (directory / "before").read_text()
    lines = terminal.wait_for("it was like this")
    assert lines[0] == "it was like this"
    assert not any("OWN%" in line for line in lines)
    assert terminal.tmux("display-message", "-p", "#{cursor_flag} #{alternate_on}").split() == ["1", "0"]


def check_target_is_free(target):
    assert ljspy.status_field(target.pid, "TracerPid") == "0"
    assert ljspy.status_field(target.pid, "State") in "RS"


def ljspy_pid(directory_of_terminal, target):
    """The pid of the front, which has the terminal."""
    ljspy.wait_traced(target.pid)
    return ljspy.front(ljspy.tracer(target.pid))


# What it shows


def test_the_busy_function_comes_first(top, target):
    terminal = top("-p", target.pid)
    lines = wait_for_all(terminal)
    first = rows(lines)[0]
    assert first.own > 90
    assert "shares.lua:5" in first.text
    assert str(target.pid) in lines[0]


def test_states_and_figures(top, target):
    terminal = top("-p", target.pid)
    lines = terminal.wait_for(busy_with("heavy"))
    assert re.search(r"CPU [\d.]+%  lost [\d.]+%  pause \d+ us  p99 \d+  max \d+  missed \d+", lines[1])
    state, share = re.match(r"(\w+) ([\d.]+)%", lines[2]).groups()
    assert state == "interpreted"
    assert float(share) > 90


def test_compiled_code_is_a_state(top):
    with ljspy.program("luajit", "shares", "on") as target:
        terminal = top("-p", target.pid)
        terminal.wait_for(lambda lines: lines[2:] and lines[2].startswith("compiled"))


def test_the_collector_follows_the_states(top):
    with ljspy.program("luajit", "garbage", "off") as target:
        terminal = top("-p", target.pid, columns=160)
        pattern = r".*\bgc [\d.]+%.*  heap [\d.]+-[\d.]+ MB  .*(mark|sweep) [\d.]+%"
        terminal.wait_for(lambda lines: lines[2:] and re.match(pattern, lines[2]))


def test_an_idle_target(top):
    with ljspy.program("luajit", "idle", "off") as target:
        terminal = top("-p", target.pid)
        terminal.wait_for("No CPU time was used.")


def charts(lines):
    """The latest value and the line of each chart, by its name."""
    found = re.findall(r"(CPU|alloc/s|[a-z]+) +>?([\d.]+)(?:%| MB) ([ ▁▂▃▄▅▆▇█]*)", "\n".join(lines[HEAD - 1:-1]))
    return {name: (float(value), line.strip()) for name, value, line in found}


@pytest.mark.parametrize("columns, lines, some", [(80, 24, 4), (40, 24, 2)])
def test_the_last_minutes(top, columns, lines, some):
    with ljspy.program("luajit", "garbage", "off") as target:
        terminal = top("-p", target.pid, columns=columns, lines=lines)
        seen = terminal.wait_for(lambda lines: len(charts(lines).get("CPU", ("", ""))[1]) >= 3)
    found = charts(seen)
    assert len(found) == some, seen
    assert list(found)[0] == "CPU" and list(found)[-1] == "heap"
    assert 0 < found["CPU"][0] <= 110 and found["heap"][0] > 0
    # On a busy machine the target may have got no CPU of late.
    assert some < 4 or ("gc" in found and set(found["alloc/s"][1]) & set("▂▃▄▅▆▇█"))
    assert columns < 80 or re.search(r"; charts: \d+ s ", seen[0] + " ")
    assert len(rows(seen)) > 1


def test_no_charts_in_a_low_terminal(top, target):
    lines = top("-p", target.pid, lines=19).wait_for(lambda lines: "of 5 s" not in lines[0] and busy_with("heavy")(lines))
    assert not charts(lines) and "OWN%" in lines[HEAD - 1]


ALTERNATING = """
local function one(n) local sum = 0 for i = 1, n do sum = sum + i % 7 end return sum end
local function two(n) local sum = 0 for i = 1, n do sum = sum + i % 7 end return sum end
print("ready") io.flush()
while true do
    for _, work in ipairs { one, two } do
        local begin = os.time() -- ljspy top compares both halves of 5 s
        while os.time() - begin < 3 do work(1e5) end
    end
end
"""


def test_a_share_that_changes_has_an_arrow(top, tmp_path):
    (tmp_path / "alternating.lua").write_text(ALTERNATING)
    with ljspy.Target([ljspy.luajit("luajit"), "-joff", tmp_path / "alternating.lua"]) as target:
        target.wait_ready()
        # Of less than five samples in each half, no change of a share is sure.
        terminal = top("-p", target.pid, "-r", ljspy.HIGH_RATE)
        has = lambda lines, arrow: any(re.match(rf" *[\d.]+%{arrow} *[\d.]+%{arrow} work ", line) for line in lines)
        terminal.wait_for(lambda lines: has(lines, "↑") and has(lines, "↓"))
        lines = terminal.wait_for("main chunk")
    assert all(re.match(r" *[\d.]+%  *[\d.]+%  main", line) for line in lines if "main chunk" in line)


# Keys


def falling(numbers):
    return all(a >= b for a, b in zip(numbers, numbers[1:], strict=False))


def test_sort_keys(top, target):
    def by_own(lines):
        return names(lines)[:1] == ["heavy"] and falling([row.own for row in rows(lines)])

    def by_total(lines):
        return names(lines)[-1:] != ["main"] and falling([row.total for row in rows(lines)])

    def by_name(lines):
        return names(lines)[:1] == ["bar"] and names(lines) == sorted(names(lines))

    terminal = top("-p", target.pid)
    wait_for_all(terminal)
    terminal.keys("2")
    terminal.wait_for(by_total)
    terminal.keys("3")
    terminal.wait_for(by_name)
    terminal.keys("1")
    terminal.wait_for(by_own)
    terminal.keys("<")
    terminal.wait_for(by_name)
    terminal.keys(">", ">")
    terminal.wait_for(by_total)


def test_lines(top, target):
    terminal = top("-p", target.pid)
    terminal.wait_for(busy_with("heavy"))
    terminal.keys("l")
    lines = terminal.wait_for("FUNCTION AND LINE")
    assert {"shares.lua:7", "shares.lua:8"} & {row.text.split()[-1] for row in rows(lines)}
    terminal.keys("l")
    terminal.wait_for("FILE:LINE OF DEFINITION")


def test_lines_from_the_start(top, target):
    terminal = top("--lines", "-p", target.pid)
    terminal.wait_for("FUNCTION AND LINE")


def test_tree_unfolds_and_folds(top, target):
    terminal = top("-p", target.pid)
    wait_for_all(terminal)
    terminal.keys("t", "3")
    terminal.wait_for(
        lambda lines: [re.sub(r" shares.lua.*", "", row.text) for row in rows(lines)]
        == ["- main chunk", " - bar", "    heavy", " - foo", "    heavy"]
    )
    terminal.keys("Down", "Left")
    terminal.wait_for(lambda lines: [row.text.split()[0] for row in rows(lines)] == ["-", "+", "-", "heavy"])
    terminal.keys("Enter")
    terminal.wait_for(lambda lines: len(rows(lines)) == 5)
    terminal.keys("Left", "Left", "Left")
    terminal.wait_for(lambda lines: [row.text.split()[0] for row in rows(lines)] == ["+"])
    terminal.keys("Right")
    terminal.wait_for(lambda lines: len(rows(lines)) == 4)
    terminal.keys("t", "1")
    terminal.wait_for(busy_with("heavy"))


def test_threads_and_one_thread_alone(top, target):
    with ljspy.program("luajit", "main", "off") as other:
        terminal = top("-p", f"{target.pid},{other.pid}")
        terminal.keys("H", "3")
        lines = terminal.wait_for(lambda lines: len(rows(lines)) == 4)
        shown = [int(row.text.split()[0]) for row in rows(lines)]
        assert sorted(shown) == sorted(2 * [target.pid] + 2 * [other.pid])
        terminal.keys(*["Down"] * shown.index(other.pid), "Enter")
        lines = terminal.wait_for(f"process {other.pid} (Esc: all)")
        assert "main" in names(lines)
        assert "heavy" not in names(lines)
        assert max(row.total for row in rows(lines)) == 100
        assert "The last minutes are of all" in "\n".join(lines)
        terminal.keys("Escape")
        terminal.wait_for(lambda lines: "heavy" in names(lines))


def test_tab_goes_through_the_lists(top, target):
    terminal = top("-p", target.pid)
    terminal.wait_for(busy_with("heavy"))
    terminal.keys("Tab")
    terminal.wait_for("- main chunk")
    terminal.keys("Tab")
    terminal.wait_for("PROCESS AND THREADS")
    terminal.keys("Tab")
    terminal.wait_for("FILE:LINE")


def test_filter_as_it_is_typed(top, target):
    terminal = top("-p", target.pid)
    wait_for_all(terminal)
    terminal.keys("/")
    terminal.text("FO")
    terminal.wait_for(lambda lines: names(lines) == ["foo"] and "Filter: FO" in lines[-1])
    terminal.keys("BSpace", "BSpace")
    terminal.text("^(foo|ba")
    terminal.wait_for(lambda lines: "Nothing matches the filter." in lines)
    terminal.text("r)")
    terminal.wait_for(lambda lines: sorted(names(lines)) == ["bar", "foo"])
    terminal.keys("Enter")
    terminal.wait_for("(Esc clears)")
    terminal.keys("t")
    terminal.wait_for(lambda lines: len(rows(lines)) >= 5)
    terminal.keys("Escape")
    terminal.wait_for("q Quit")


def test_filter_of_the_tree_keeps_whole_stacks(top, target):
    terminal = top("-p", target.pid)
    wait_for_all(terminal)
    terminal.keys("t", "/")
    terminal.text("bar")
    lines = terminal.wait_for("Filter: bar")
    text = "\n".join(row.text for row in rows(lines))
    assert all(name in text for name in ("main chunk", "bar", "heavy"))
    assert "foo" not in text
    assert rows(lines)[0].total < 100


def test_pause(top, target):
    terminal = top("-p", target.pid)
    terminal.wait_for(busy_with("heavy"))
    terminal.keys("Space")
    before = terminal.wait_for("paused")
    with pytest.raises(AssertionError):
        terminal.wait_for(lambda lines: lines != before, seconds=3)
    terminal.keys("Space")
    terminal.wait_for(lambda lines: "paused" not in lines[0] and lines != before)


def test_the_target_ends_in_a_pause(top, target):
    """What it did meanwhile shows when the pause is over."""

    def samples(lines):
        return int(re.search(r"samples (\d+)", lines[1])[1])

    terminal = top("-p", target.pid)
    terminal.keys("]", "]", "]")
    terminal.wait_for(busy_with("heavy"))
    terminal.keys("Space")
    before = samples(terminal.wait_for("paused"))
    used = ljspy.cpu_ns(target.pid)
    assert ljspy.wait_until(lambda: ljspy.cpu_ns(target.pid) > used + 5e8)
    target.stop()
    assert samples(terminal.wait_for("paused; the target has ended")) == before
    terminal.keys("Space")
    lines = terminal.wait_for(lambda lines: "paused" not in lines[0])
    assert "the target has ended" in lines[0]
    assert samples(lines) > before


def test_reset(top, target):
    def samples(lines):
        found = re.search(r"samples (\d+)", lines[1])
        return int(found[1]) if found else 0

    terminal = top("-p", target.pid)
    terminal.keys("]", "]", "]")
    lines = terminal.wait_for(lambda lines: samples(lines) > 20)
    terminal.keys("r")
    terminal.wait_for(lambda now: samples(now) < samples(lines) / 2)
    terminal.wait_for(busy_with("heavy"))


def test_period(top, target):
    terminal = top("-p", target.pid)
    terminal.wait_for(lambda lines: "last 5 s" in lines[0])
    terminal.keys("[")
    terminal.wait_for(lambda lines: "last 2 s" in lines[0])
    terminal.keys("[", "[", "[")
    terminal.wait_for(lambda lines: "last 1 s" in lines[0])
    terminal.keys("]", "]", "]")
    terminal.wait_for(lambda lines: "of 10 s" in lines[0])


def test_help(top, target):
    terminal = top("-p", target.pid)
    terminal.wait_for(busy_with("heavy"))
    terminal.keys("h")
    lines = terminal.wait_for("Any key: back")
    for key in ("Home", "1 2 3", "t, F5", "/, F4", "Space", "q, F10"):
        assert any(key in line for line in lines), key
    terminal.keys("x")
    terminal.wait_for(busy_with("heavy"))


def test_scrolling(top):
    """Home, End, page and arrow keys move through more rows than fit."""
    def is_whole(lines):
        """It may be seen while it is drawn."""
        return len(rows(lines)) == 3

    def is_tree(lines):
        return is_whole(lines) and all(row.text[0] in " -+" for row in rows(lines))

    with ljspy.program("luajit", "deep", "off") as target:
        terminal = top("-p", target.pid, lines=8)
        terminal.wait_for(is_whole)
        terminal.keys("Space", "t")
        first = rows(terminal.wait_for(is_tree))
        terminal.keys("NPage")
        below = rows(terminal.wait_for(lambda lines: is_whole(lines) and rows(lines)[0].text != first[0].text))
        terminal.keys("PPage", "PPage")
        terminal.wait_for(lambda lines: is_whole(lines) and rows(lines)[0].text == first[0].text)
        terminal.keys("Down", "Down", "Down")
        terminal.wait_for(lambda lines: is_whole(lines) and rows(lines)[0].text == first[1].text)
        terminal.keys("Up", "Up", "Up")
        terminal.wait_for(lambda lines: is_whole(lines) and rows(lines)[0].text == first[0].text)
        terminal.keys("End")
        terminal.wait_for(lambda lines: is_whole(lines) and rows(lines)[0].text not in (first[0].text, below[0].text))
        terminal.keys("Home")
        terminal.wait_for(lambda lines: is_whole(lines) and rows(lines)[0].text == first[0].text)


def test_long_names_scroll_sideways(top, target):
    terminal = top("-p", target.pid, columns=40)
    terminal.wait_for(busy_with("heavy"))
    terminal.keys("Right")
    terminal.wait_for(lambda lines: rows(lines)[0].text.startswith("ares.lua"))
    terminal.keys("Left")
    terminal.wait_for(busy_with("heavy"))


def test_other_keys_do_nothing(top, target):
    terminal = top("-p", target.pid)
    terminal.wait_for(busy_with("heavy"))
    terminal.keys("F12", "z", "C-z", "C-\\", "IC", "ă", "€", "M-x")
    terminal.keys("2")
    terminal.wait_for("OWN%")
    assert ljspy.status_field(ljspy_pid(terminal, target), "State") in "RS"


# Terminals


def test_resizing(top, target):
    terminal = top("-p", target.pid)
    terminal.wait_for(busy_with("heavy"))
    for columns, lines in ((40, 8), (200, 50), (24, 6), (1, 1), (10, 3), (80, 24)):
        terminal.resize(columns, lines)
        if lines >= 6:
            shown = terminal.wait_for(lambda shown: len(shown) <= lines and busy_with("heavy")(shown))
            assert all(len(line) <= columns for line in shown)
    terminal.keys("q")


def test_forty_columns_and_eight_rows(top, target):
    terminal = top("-p", target.pid, columns=40, lines=8)
    lines = terminal.wait_for(busy_with("heavy"))
    assert rows(lines)[0].text == "heavy shares.lua:5"
    assert re.match(r"CPU [\d.]+%  lost [\d.]+%  pause \d+ us", lines[1])
    assert len(rows(lines)) == 3
    assert lines[-1].startswith("h Help")


def colours(screen):
    return re.findall(r"\x1b\[[\d;]*3[1-7]", screen)


def test_colours_where_there_are_some(top, target):
    terminal = top("-p", target.pid)
    terminal.wait_for(busy_with("heavy"))
    assert colours(terminal.screen("-e"))


@pytest.mark.parametrize(
    "options",
    [{"env": {"NO_COLOR": "1"}}, {"env": {"CLICOLOR": "0"}}, {"term": "vt100"}],
    ids=("NO_COLOR", "CLICOLOR=0", "vt100"),
)
def test_without_colours(top, target, options):
    terminal = top("-p", target.pid, **options)
    terminal.wait_for(busy_with("heavy"))
    assert not colours(terminal.screen("-e"))


@pytest.mark.parametrize("locale", ("C.UTF-8", "C"))
def test_hostile_names(top, locale):
    with ljspy.program("luajit", "hostile", "off") as target:
        terminal = top("-p", target.pid, columns=150, lines=40, env={"LC_ALL": locale})
        lines = terminal.wait_for(lambda lines: any("evil;name" in row.text for row in rows(lines)))
        screen = "\n".join(lines)
        assert all(c.isprintable() for c in screen.replace("\n", ""))
        assert "\\n" in screen
        assert "\\u202e" in screen
        assert screen.isascii() == (locale == "C")
        # An escape sequence that sets a title would change tmux's pane title.
        assert terminal.tmux("display-message", "-p", "#{pane_title}").strip() != "title"


@pytest.mark.parametrize("term", ("dumb", "no-such-terminal"))
def test_terminals_that_cannot_do(top, target, term, tmp_path):
    # ncurses leaks memory if it finds no description of the terminal.
    terminal = top("-p", target.pid, term=term, env={"ASAN_OPTIONS": "detect_leaks=0"})
    lines = terminal.wait_for("ljspy: Set TERM")
    assert any(term in line and line.startswith("ljspy: ") for line in lines)
    assert wait_status(tmp_path) == ljspy.NOTHING_PROFILED
    assert (tmp_path / "after").read_text() == (tmp_path / "before").read_text()


def test_needs_a_terminal(target):
    result = ljspy.run("top", "-p", target.pid)
    assert result.returncode == ljspy.NOTHING_PROFILED
    assert "terminal" in result.stderr
    assert not result.stdout


def test_what_cannot_be_looked_at_is_told_without_a_screen(top, tmp_path):
    with subprocess.Popen(["sleep", "30"]) as process:
        terminal = top("-p", process.pid)
        lines = terminal.wait_for("does not run LuaJIT")
        process.kill()
    assert lines[0] == "it was like this"
    assert wait_status(tmp_path) == ljspy.NOTHING_PROFILED


# Its end


@pytest.mark.parametrize("key", ("q", "F10", "C-c"))
def test_quitting(top, target, key, tmp_path):
    terminal = top("-p", target.pid)
    terminal.wait_for(busy_with("heavy"))
    terminal.keys(key)
    assert wait_status(tmp_path) == ljspy.OK
    check_terminal_is_as_before(terminal, tmp_path)
    check_target_is_free(target)
    assert any(line.startswith("samples ") for line in terminal.lines())


@pytest.mark.parametrize("number", (signal.SIGTERM, signal.SIGHUP, signal.SIGINT), ids=lambda number: number.name)
def test_signals_end_it(top, target, number, tmp_path):
    terminal = top("-p", target.pid)
    terminal.wait_for(busy_with("heavy"))
    os.kill(ljspy_pid(terminal, target), number)
    assert wait_status(tmp_path) == ljspy.OK
    check_terminal_is_as_before(terminal, tmp_path)
    check_target_is_free(target)


def test_the_target_ends(top, target, tmp_path):
    """The last samples stay on the screen until the user quits."""
    terminal = top("-p", target.pid)
    terminal.wait_for(busy_with("heavy"))
    target.stop()
    lines = terminal.wait_for("the target has ended")
    assert "heavy" in names(lines)
    terminal.keys("l")
    terminal.wait_for("FUNCTION AND LINE")
    terminal.keys("q")
    assert wait_status(tmp_path) == ljspy.OK
    check_terminal_is_as_before(terminal, tmp_path)


def test_a_signal_after_the_targets_end(top, target, tmp_path):
    terminal = top("-p", target.pid)
    terminal.wait_for(busy_with("heavy"))
    pid = ljspy_pid(terminal, target)
    target.stop()
    terminal.wait_for("the target has ended")
    os.kill(pid, signal.SIGTERM)
    assert wait_status(tmp_path) == ljspy.OK
    check_terminal_is_as_before(terminal, tmp_path)


def stop_reading(terminal):
    """Behind a connection that hangs, nobody reads what is drawn."""
    filling = os.open(f"/proc/self/fd/{terminal}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(filling, b" " * 1024)
    os.close(filling)


def stop(terminal):
    termios.tcflow(terminal, termios.TCOOFF)


STALLS = pytest.mark.parametrize("stall", (stop, stop_reading), ids=("stopped", "unread"))


class Pair:
    """ljspy top on a terminal that is read here, or not."""

    def __init__(self, *arguments, stderr=None):
        self.master, self.slave = pty.openpty()
        self.before = termios.tcgetattr(self.slave)
        argv = [ljspy.LJSPY, "top", *map(str, arguments)]
        stderr = self.slave if stderr is None else stderr
        self.process = subprocess.Popen(argv, stdin=self.slave, stdout=self.slave, stderr=stderr, env=dict(os.environ, TERM="xterm"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.slave)
        os.close(self.master)

    def read_until(self, text):
        shown = b""
        deadline = time.monotonic() + ljspy.READY_SECONDS
        while text not in shown:
            assert self.process.poll() is None and time.monotonic() < deadline, shown
            if select.select([self.master], [], [], 0.1)[0]:
                shown += os.read(self.master, 65536)

    def read_rest(self):
        """What is still to come of a picture. Behind a terminal that stalls within one, no key is heard."""
        while select.select([self.master], [], [], 1)[0]:
            os.read(self.master, 65536)
        assert self.process.poll() is None and not ljspy.is_writing(self.process.pid)

    def press(self, key):
        os.write(self.master, key)

    def hangs(self):
        self.press(CTRL_L)  # it draws all anew
        return ljspy.is_writing(self.process.pid) or self.process.poll() is not None

    def await_hanging(self):
        assert ljspy.wait_until(self.hangs, pause=0.1)
        time.sleep(0.1)
        assert ljspy.is_writing(self.process.pid), "it does not wait for the terminal"

    def check_end(self, status=ljspy.OK):
        assert ljspy.wait_until(lambda: self.process.poll() is not None), "it did not end"
        assert self.process.returncode == status
        assert termios.tcgetattr(self.slave) == self.before


@STALLS
@pytest.mark.parametrize("end", (signal.SIGTERM, signal.SIGHUP), ids=lambda end: end.name)
def test_it_ends_although_the_terminal_takes_no_text(target, stall, end):
    with Pair("-p", target.pid) as pair:
        pair.read_until(b"heavy")
        assert termios.tcgetattr(pair.slave) != pair.before
        stall(pair.slave)
        pair.await_hanging()
        pair.process.send_signal(end)
        pair.check_end()
        check_target_is_free(target)


@STALLS
@pytest.mark.parametrize("end", (signal.SIGINT, signal.SIGTERM, signal.SIGHUP), ids=lambda end: end.name)
@pytest.mark.parametrize("is_shown", (False, True), ids=("before the end", "after the end"))
def test_it_ends_although_the_terminal_takes_no_text_and_the_target_has_ended(target, stall, end, is_shown):
    with Pair("-p", target.pid) as pair:
        pair.read_until(b"heavy")
        engine = ljspy.tracer(target.pid)
        if is_shown:
            target.stop()
            pair.read_until(b"the target has ended")
        stall(pair.slave)
        pair.await_hanging()
        target.stop()
        assert ljspy.wait_until(lambda: not pathlib.Path(f"/proc/{engine}").exists())
        pair.process.send_signal(end)
        pair.check_end()


@STALLS
def test_the_user_quits_once_the_target_has_ended_and_the_terminal_takes_no_text(target, stall):
    with Pair("-p", target.pid) as pair:
        pair.read_until(b"heavy")
        target.stop()
        pair.read_until(b"the target has ended")
        pair.read_rest()
        stall(pair.slave)
        pair.press(b"q")
        pair.check_end()


@contextlib.contextmanager
def seized_meanwhile(front, target):
    """Another debugger seizes the target while ljspy is stopped."""
    seize = "import ctypes, sys; print(ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), None, None), flush=True); sys.stdin.read()"
    os.kill(front, signal.SIGSTOP)
    assert ljspy.wait_until(lambda: ljspy.status_field(target.pid, "TracerPid") == "0")
    argv = [sys.executable, "-c", seize, str(target.pid)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as debugger:
        try:
            assert debugger.stdout.readline() == "0\n"
            os.kill(front, signal.SIGCONT)
            yield
        finally:
            debugger.kill()


def test_another_debugger_takes_the_target(top, target, tmp_path):
    """It runs on: it is not said to have ended."""
    terminal = top("-p", target.pid)
    terminal.wait_for(busy_with("heavy"))
    with seized_meanwhile(ljspy_pid(terminal, target), target):
        lines = terminal.wait_for("no target is left to sample")
        assert "heavy" in names(lines)
        terminal.keys("q")
        assert wait_status(tmp_path) == ljspy.WITH_ERRORS
    lines = terminal.wait_for("was left out")
    assert any("No target is left to sample." in line for line in lines)
    assert not any("has ended" in line for line in lines)


@STALLS
def test_what_is_missing_is_told_although_the_terminal_takes_no_text(target, stall, tmp_path):
    """Of two targets, another debugger takes one."""
    with ljspy.busy() as other, open(tmp_path / "stderr", "wb") as stderr:
        with Pair("-p", target.pid, "-p", other.pid, stderr=stderr) as pair:
            pair.read_until(b"heavy")
            ljspy.wait_traced(other.pid)
            with seized_meanwhile(pair.process.pid, other):
                ljspy.wait_until(lambda: ljspy.status_field(target.pid, "TracerPid") != "0")
                stall(pair.slave)
                pair.await_hanging()
                pair.process.send_signal(signal.SIGTERM)
                pair.check_end(ljspy.WITH_ERRORS)
        assert f"Process {other.pid} was left out." in (tmp_path / "stderr").read_text()


def test_the_terminal_goes_away(top, target):
    terminal = top("-p", target.pid)
    terminal.wait_for(busy_with("heavy"))
    pid = ljspy_pid(terminal, target)
    terminal.close()
    assert ljspy.wait_until(lambda: not pathlib.Path(f"/proc/{pid}").exists())
    check_target_is_free(target)
