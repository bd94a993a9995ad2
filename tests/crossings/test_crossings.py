# SPDX-License-Identifier: MIT
"""Stacks show Lua and native frames in their true order, however the program crosses
from one to the other."""

import pathlib
import re
import shutil
import signal
import subprocess

import pytest

import ljspy
import stacks

HERE = pathlib.Path(__file__).parent
SCRIPT = HERE / "crossings.lua"
SOURCE = SCRIPT.read_text()

# Compiler and flags. "STATIC" links LuaJIT statically; "-s" removes names of static functions.
BUILDS = {
    "O0": ("gcc", ["-O0"]),
    "O2": ("gcc", ["-O2"]),
    "frame-pointers": ("gcc", ["-O2", "-fno-omit-frame-pointer"]),
    "clang": ("clang", ["-O2"]),
    "static": ("gcc", ["-O2", "STATIC"]),
    "stripped": ("gcc", ["-O2", "-s"]),
    "static-stripped": ("gcc", ["-O2", "-s", "STATIC"]),
    "no-eh-frame-hdr": ("gcc", ["-O2", "-Wl,--no-eh-frame-hdr"]),
    "debug-frame": ("gcc", ["-O2", "-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]),
}

STATIC_FUNCTIONS = {"main", "run_call", "run_pcall", "run_cpcall", "run_resume"}
EXPORTED = {"burn", "burn_in_c", "bounce", "index_it", "resume_it", "with_hook", "in_hook", "in_cpcall", "on_alarm"}
API = {"lua_call", "lua_pcall", "lua_cpcall", "lua_resume", "lua_getfield", "lua_gc", "lua_sethook", "lua_loadx"}

# If C code starts a garbage collection, ljspy cannot always join what it runs to its caller.
LOST_SHARE = 0.02
WHOLE_SHARE = 0.5
# Where CPUs are scarce, a signal is due each time that the target gets one: then the handler comes first.
WHOLE_SHARE_WITH_HANDLER = 0.25
# All samples of one handler stand on the same place, so that a few places decide.
LOST_SHARE_WITH_HANDLER = 0.05
UNSEEN_SHARE = 0.1
# CPU time of as many samples as make one of them less than half of LOST_SHARE; on a quiet machine there is much more.
ENOUGH_US = 200_000


@pytest.fixture(scope="module", params=BUILDS)
def host(request, tmp_path_factory):
    """The program in one build, and whether it is stripped."""
    compiler, flags = BUILDS[request.param]
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    library = ljspy.PACKAGES / "libluajit-5.1-2/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2"
    development = ljspy.PACKAGES / "libluajit-5.1-dev/usr"
    if "STATIC" in flags:
        library = development / "lib/x86_64-linux-gnu/libluajit-5.1.a"
    program = tmp_path_factory.mktemp("host") / "host"
    subprocess.run(
        [compiler, *(f for f in flags if f != "STATIC"), "-D_GNU_SOURCE", f"-I{development}/include/luajit-2.1"]
        + ["-rdynamic", HERE / "host.c", "-o", program, library, "-lm", "-ldl", f"-Wl,-rpath,{library.parent}"],
        check=True,
    )
    return program, "-s" in flags


def line_of(tag):
    """The first line of the function with a tag."""
    return next(n for n, line in enumerate(SOURCE.splitlines(), 1) if line.endswith(f"-- @{tag}"))


def simplify(frames, stripped):
    """Names of Lua functions, builtins, lost frames, and functions of host and of
    LuaJIT's API; leaves out other frames. A C function appears twice in frames, as
    Lua's callee and as native code, and once here."""
    simple = []
    for frame in frames:
        if found := re.fullmatch(r"(\w+) \[(?:host|libluajit-5\.1\.so\.2)\S*\]", frame):
            name = found[1] if found[1] in EXPORTED | API or (found[1] in STATIC_FUNCTIONS and not stripped) else None
        elif found := re.fullmatch(r"([\w.]+) \[builtin\]", frame):
            name = f"[{found[1]}]"
        elif found := re.fullmatch(r"function <\S*crossings\.lua:(\d+)>", frame):
            name = f"@{found[1]}"
        elif found := re.fullmatch(r"(\w+) \S*crossings\.lua:(\d+)", frame):
            name = found[1]
        else:
            name = frame if stacks.is_lost(frame) else None
        if name and simple[-1:] != [name]:
            simple.append(name)
    return simple


def legal_stacks(stripped, left_out=frozenset()):
    """Legal stacks, each a list of (regular expression for a name and a space, whether
    the name is optional). Names in left_out are optional."""
    for listed in re.findall(r"^-- stack: (.*)$", SOURCE, re.MULTILINE):
        names = []
        for token in listed.split():
            optional = token.startswith("(")
            name = token.strip("()")
            optional = optional or name in left_out
            if stripped and name in STATIC_FUNCTIONS:
                continue
            if name.startswith("@"):
                name = f"@{line_of(name[1:])}"
            names.append((re.escape(name) + " ", optional))
        yield names


def matches(names, legal, whole):
    """Whether names are a whole legal stack, or, unless WHOLE, the beginning of one."""
    texts = [f"(?:{text})?" if optional else text for text, optional in legal]
    if whole:
        return re.fullmatch("".join(texts), names) is not None
    return any(re.fullmatch("".join(texts[:n]), names) for n in range(len(texts) + 1))


def judge(simple, legal):
    names = "".join(name + " " for name in simple)
    if any(map(stacks.is_lost, simple)):
        return "lost"
    if any(matches(names, one, whole=True) for one in legal):
        return "whole"
    if any(matches(names, one, whole=False) for one in legal):
        return "short"
    return "wrong"


def record(target, directory, view="all"):
    """Stacks of the target; on a busy machine of several recordings: few samples, or one that stands for much time, must
    not decide, and while ljspy has no CPU, it sees nothing."""
    recorded = []
    for _ in range(ljspy.RECORDINGS_MAX):
        options = {"rate": ljspy.HIGHEST_RATE, "options": ["--native", view]}
        recorded += ljspy.record_native(directory, "-p", target.pid, seconds=1, **options)
        total = sum(weight for _, weight in recorded)
        unseen = sum(weight for frames, weight in recorded if frames == [ljspy.UNSEEN])
        lost = [weight for frames, weight in recorded if frames != [ljspy.UNSEEN] and any(map(stacks.is_lost, frames))]
        is_settled = sum(lost) <= LOST_SHARE * (total - unseen) and max(lost, default=0) <= LOST_SHARE / 2 * total
        if total > ENOUGH_US and unseen <= UNSEEN_SHARE * (total - unseen) and is_settled:
            break
    return recorded


@pytest.fixture
def check_verdicts(note_lost, request):
    """Returns a function that checks (verdict, frames, weight) of all stacks of a recording."""

    def check(verdicts, whole_share=WHOLE_SHARE, lost_share=LOST_SHARE):
        weights = dict.fromkeys(("whole", "short", "lost", "wrong"), 0)
        examples = {verdict: [] for verdict in weights}
        unseen = 0
        for verdict, frames, weight in verdicts:
            if frames == [ljspy.UNSEEN]:
                unseen += weight
                continue
            weights[verdict] += weight
            examples[verdict].append(";".join(frames))
        note_lost(request.node.name, sum(map(len, examples.values())), weights)
        total = sum(weights.values())
        assert total > 0, "nothing was judged"
        assert unseen <= UNSEEN_SHARE * total
        assert not examples["wrong"], "\n".join(examples["wrong"])
        assert weights["lost"] <= lost_share * total, "\n".join(examples["lost"])
        assert weights["whole"] >= whole_share * (total - weights["lost"])

    return check


@pytest.mark.usefixtures("built")
def test_every_crossing_is_seen_in_order(host, jit, tmp_path, check_verdicts):
    program, stripped = host
    legal = list(legal_stacks(stripped))
    with ljspy.Target([program, SCRIPT, jit, ljspy.LIMIT_SECONDS]).wait_ready() as target:
        check_verdicts(
            (judge(simplify(frames, stripped), legal), frames, weight)
            for frames, weight in record(target, tmp_path)
        )


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("host", ["O2", "static-stripped"], indirect=True)
@pytest.mark.parametrize("view", ["fold", "none"])
def test_every_crossing_is_seen_in_the_other_views(host, jit, view, tmp_path, check_verdicts):
    """fold leaves out frames that only C programmers want; none leaves out all native frames."""
    program, stripped = host
    native = STATIC_FUNCTIONS | {"burn", "in_hook"}
    legal = list(legal_stacks(stripped, API | (native if view == "none" else {"burn", "in_hook"})))
    recorded = []
    with ljspy.Target([program, SCRIPT, jit, ljspy.LIMIT_SECONDS]).wait_ready() as target:
        # A busy machine takes several recordings until each crossing appears.
        for _ in range(ljspy.RECORDINGS_MAX):
            recorded += record(target, tmp_path, view)
            names = [simplify(frames, stripped) for frames, _ in recorded]
            # Lua calls it through the FFI: no C function is below it.
            burns_alone = any(found[-1:] == ["burn"] for found in names)
            if burns_alone or view == "none":
                break
    check_verdicts((judge(simplify(frames, stripped), legal), frames, weight) for frames, weight in recorded)
    assert burns_alone == (view == "fold")
    assert not any("lua_call" in found for found in names)


@pytest.mark.usefixtures("built")
def test_signal_handler_stands_on_what_it_interrupted(host, jit, tmp_path, check_verdicts):
    program, stripped = host
    legal = list(legal_stacks(stripped))

    in_handler = 0

    def verdicts(target):
        nonlocal in_handler
        for frames, weight in record(target, tmp_path):
            names = simplify(frames, stripped)
            at = names.index("on_alarm") if "on_alarm" in names else len(names)
            in_handler += "on_alarm" in names
            verdict = judge(names[:at], legal)
            above = names[at + 1 :]
            if verdict != "wrong" and any(map(stacks.is_lost, above)):
                verdict = "lost"
            elif above not in ([], ["burn"]):
                verdict = "wrong"
            yield verdict, frames, weight

    with ljspy.Target([program, SCRIPT, jit, ljspy.LIMIT_SECONDS, "alarms"]).wait_ready() as target:
        check_verdicts(verdicts(target), WHOLE_SHARE_WITH_HANDLER, LOST_SHARE_WITH_HANDLER)
    assert in_handler


def native_names(dump):
    """Names of native frames of a dump's threads, leaf first, split at lost frames. The
    C function that Lua calls appears twice; or once, below the VM's code for calls,
    before it is entered or after it has returned. Coroutines follow threads."""
    pieces, below_call = [[]], False
    threads = dump.split("\nVM ")[0]
    for frame in (line.strip() for line in threads.splitlines() if line.startswith(" ")):
        name = frame.split(" ")[0]
        if stacks.is_lost(frame):
            pieces.append([])
        elif name in EXPORTED | API | STATIC_FUNCTIONS and not below_call and pieces[-1][-1:] != [name]:
            pieces[-1].append(name)
        below_call = name.startswith("lj_BC_FUNCC")
    return pieces


@pytest.mark.usefixtures("built", "gdb")
def test_native_frames_are_gdbs(host, request):
    """ljspy knows only pc and stack pointer of a sleeping thread. If the unwind tables find a frame by rbp, which only a
    stopped thread shows, the function's code tells where the frame is."""
    program, stripped = host
    if stripped:
        pytest.skip("without names there is nothing to compare")
    # Check every crossing in one build, every third in the others.
    step = 1 if "O2" in request.node.name else 3
    # On a busy machine gdb takes seconds each time.
    with ljspy.Target([program, SCRIPT, "park"], limit=240).wait_ready() as target:
        for _ in range(0, 20, step):
            assert ljspy.wait_until(lambda: "S" in ljspy.status_field(target.pid, "State"))
            dump = ljspy.run("dump", "--native", "all", "-p", target.pid).stdout
            expected = [name for name in ljspy.gdb_functions(target.pid) if name in EXPORTED | API | STATIC_FUNCTIONS]
            assert native_names(dump) == [expected], dump
            target.write("." * step)


@pytest.mark.usefixtures("built", "gdb")
def test_native_frames_of_a_held_thread_are_gdbs(host):
    """A signal stops the thread, so ljspy and gdb see the same registers, all of them."""
    program, stripped = host
    if stripped:
        pytest.skip("without names there is nothing to compare")
    compared = 0
    with ljspy.Target([program, SCRIPT, "off", ljspy.LIMIT_SECONDS]).wait_ready() as target:
        for _ in range(6):
            target.process.send_signal(signal.SIGSTOP)
            assert ljspy.wait_until(lambda: ljspy.status_field(target.pid, "State") == "T")
            dump = ljspy.run("dump", "--native", "all", "-p", target.pid).stdout
            expected = [name for name in ljspy.gdb_functions(target.pid) if name in EXPORTED | API | STATIC_FUNCTIONS]
            stopped_at = ljspy.cpu_ns(target.pid)
            target.process.send_signal(signal.SIGCONT)
            assert ljspy.wait_until(lambda: ljspy.cpu_ns(target.pid) > stopped_at + 2e6, pause=0.001)
            pieces = native_names(dump)
            assert "(stopped)" in dump
            # gdb unwinds LuaJIT by its unwind tables, which are not right at every instruction.
            # While a script is loaded, no Lua frame may be there to confirm the layout by; dump says so.
            if expected[-1:] == ["main"] and "[lost: layout not confirmed]" not in dump:
                assert pieces == [expected], dump
                compared += 1
    assert compared
