# SPDX-License-Identifier: MIT
"""Native code without unwind tables: assembly, code made at run time, PCRE's JIT.
ljspy shows the Lua functions that call it, whatever it does to the stack and to
registers."""

import pathlib
import re
import subprocess

import pytest

import ljspy
import stacks

pytestmark = pytest.mark.usefixtures("built")

HERE = pathlib.Path(__file__).parent
SCRIPT = HERE / "untabled.lua"
LINES = SCRIPT.read_text().splitlines()

# The share of its time that a program spends under foo(), by its own measurement.
TRUE_SHARE = 0.99

# Of CPU time, so that the last piece, which no sample may have, is less than what may be lost.
CPU_SECONDS = 1.5

TRACE_POSITION = "[lost: position in trace unknown]"

# The native frames above foo(), for each kind of call.
TOLD = {
    "ffi:walk": r"walk \[assembly\.so\];step \[assembly\.so\]",
    "c:walk": r"walk \[assembly\.so\]",
    "ffi:guard": r"guard \[assembly\.so\];step \[assembly\.so\]",
    "c:guard": r"guard \[assembly\.so\]",
    "made:walk": r"machine code \[anon\]",
    "file:walk": r"machine code \[memfd:made\S*\]",
    "pcre": r"pcre_exec \[libpcre\.so\S*\];.*machine code \[anon\]",
    "pcre2": r"pcre2_match_8 \[libpcre2-8\.so\S*\];.*machine code \[anon\]",
}
# Nothing shows how these return to their caller.
NOT_TOLD = ("ffi:hide", "c:hide", "made:hide")


@pytest.fixture(scope="module")
def assembly(tmp_path_factory):
    library = tmp_path_factory.mktemp("assembly") / "assembly.so"
    subprocess.run(["gcc", "-shared", "-o", library, HERE / "assembly.S"], check=True)
    return library


def start(kind, jit, assembly, runtime="luajit"):
    target = ljspy.Target([ljspy.luajit(runtime), SCRIPT, jit, ljspy.LIMIT_SECONDS, kind, assembly])
    if target.read_until(b"\n").startswith("no "):
        target.stop()
        pytest.skip(f"no library for {kind}")
    return target


def line_of(tag):
    return next(n for n, line in enumerate(LINES, 1) if line.endswith(f"-- @{tag}"))


def callers():
    """A pattern for foo() and its callers at their lines."""
    bar, foo = (rf"{name} \S*untabled\.lua:{line_of(tag)}" for name, tag in (("bar", "bar_call"), ("foo", "call")))
    return re.compile(rf"(^|;)main chunk \S*untabled\.lua:\d+;{bar};{foo}(;|$)")


def shares(recorded):
    """The shares of the weight that are under foo(), and that have a lost part."""
    whole = sum(weight for _, weight in recorded)
    under = callers()
    below = sum(weight for frames, weight in recorded if under.search(";".join(frames)))
    lost = sum(weight for frames, weight in recorded if any(map(stacks.is_lost, frames)))
    print(f"under foo: truth {TRUE_SHARE} and more, seen {below / whole:.4f}; lost: {lost / whole:.4f}")
    return below / whole, lost / whole


def look(directory, target, *options):
    """Stacks with lines, the shares() of them, and a dump of the place where the target nearly always is."""
    recorder = ljspy.Recorder(directory, "-p", target.pid, seconds=ljspy.RECORDING_SECONDS, options=["--lines", *options])
    ljspy.wait_traced(target.pid)
    recorder.end_after(target.pid, CPU_SECONDS)
    recorder.finish()
    recorded = ljspy.native_stacks(recorder)
    for _ in range(3):
        dump = ljspy.run("dump", "-p", target.pid).stdout
        if f"untabled.lua:{line_of('call')}\n" in dump:
            break
    return recorded, *shares(recorded), dump


@pytest.mark.parametrize("kind", TOLD)
def test_callers_and_native_frames_are_told(kind, jit, assembly, tmp_path):
    with start(kind, jit, assembly) as target:
        recorded, below, lost, dump = look(tmp_path, target)
    assert below >= TRUE_SHARE and lost <= 1 - TRUE_SHARE, recorded
    told = sum(weight for frames, weight in recorded if re.search(TOLD[kind], ";".join(frames)))
    assert told >= 0.5 * sum(weight for _, weight in recorded), recorded
    assert re.search(rf"foo \S+untabled\.lua:{line_of('call')}\n\s+bar \S+untabled\.lua:{line_of('bar_call')}\n", dump), dump


@pytest.mark.parametrize("kind", NOT_TOLD)
def test_one_frame_is_lost_and_no_caller(kind, jit, assembly, tmp_path):
    with start(kind, jit, assembly) as target:
        recorded, below, lost, dump = look(tmp_path, target)
    assert below >= TRUE_SHARE and lost >= 0.9, recorded
    # In a trace, which calls it, the line may be lost as well.
    ends = [[frame for frame in frames if stacks.is_lost(frame) and frame != TRACE_POSITION] for frames, _ in recorded]
    assert max(map(len, ends)) == 1, recorded
    assert f"untabled.lua:{line_of('call')}\n" in dump, dump


@pytest.mark.parametrize("view", ["all", "none"])
def test_the_other_views_have_the_callers(view, assembly, tmp_path):
    with start("pcre", "on", assembly) as target:
        recorded, below, lost, _ = look(tmp_path, target, "--native", view)
    assert below >= TRUE_SHARE and lost <= 1 - TRUE_SHARE, recorded
