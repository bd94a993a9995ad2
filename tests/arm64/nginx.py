# SPDX-License-Identifier: MIT
"""nginx with the Lua module under load, in an emulated machine: that of this folder, or of tests/kernels.

Each phase of a request does a known share of the work, in a function of its own. A sample in that work
must have the phase, and the phase's block as its caller. Samplers that are killed leave the worker at work,
untraced. By the wall clock, and in dumps, every stack reaches main()."""

import collections
import re
import shutil

import emulator
import machine
import packages

SUITE = "bookworm"  # whose LuaJIT is OpenResty's
PORT = 8080
KILLS, DUMPS = 3, 5
SECONDS, RATE = 6, 50
# Units of work in each phase of /phases, as in tests/nginx/test_phases.py.
WORK = {"rewrite": 1, "access": 2, "content": 3, "header_filter": 4, "body_filter": 5, "log": 6, "timer": 7}
LEAST_SAMPLES, SHARE_OFF = 100, 0.12
COMMANDS = "ifconfig cat"
# CPU time that the worker used before ljspy could look: no stack.
UNSEEN = "[lost: thread asleep when sampled] "
NATIVE_ROOT = re.compile(r"^_start .*;main \[nginx\];")
NATIVE_MAIN = re.compile(r"(?m)^ +main \[nginx\]$")
TEMPLATE = machine.ROOT / "tests/nginx/phases.conf.in"


def lay(root, architecture="arm64"):
    tree = packages.nginx(SUITE, architecture)
    name = f"nginx-{SUITE}"
    emulator.lay_unpacked(root, tree, packages.loader(tree, tree / "usr/sbin/nginx"), name)
    settings = {"DIRECTORY": "/tmp/nginx", "PACKAGES": f"/{name}", "PORT": PORT, "JIT": "on", "FILES": "/tmp"}
    config = re.sub("@([A-Z]+)@", lambda found: str(settings[found[1]]), TEMPLATE.read_text())
    # A unit of work of a tenth: the machine is slow.
    (root / "nginx.conf").write_text(config.replace("n * 1e6", "n * 1e5"))
    (root / "etc").mkdir(exist_ok=True)
    (root / "etc/passwd").write_text("root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")
    shutil.copy(machine.ROOT / "tests/arm64/client.lua", root)
    return commands()


def commands():
    yield "ifconfig lo up; mkdir -p /tmp/nginx"
    yield f"nginx-{SUITE} -e /tmp/nginx/error.log -p /tmp/nginx -c /nginx.conf & master=$!"
    yield "until worker=$(cat /proc/$master/task/$master/children) && test -n \"$worker\"; do sleep 0.2; done; sleep 1"
    yield "worker=$(echo $(cat /proc/$master/task/$master/children))"
    yield f"luajit-{machine.SUITE} /client.lua {PORT} /phases >/tmp/client 2>&1 & client=$!"
    yield "tries=0; until grep -q ready /tmp/client || test $tries = 100; do sleep 0.2; tries=$((tries + 1)); done"
    yield "ljspy info -p $worker | sed 's/^/nginx-info /'"
    yield f"ljspy record -p $worker -d {SECONDS}s -r {RATE} -o /tmp/nginx.ljspy 2>&1 | sed 's/^/nginx-figures /'"
    yield "ljspy report /tmp/nginx.ljspy --by phase -f folded -o - | sed 's/^/nginx-record /'"
    yield "ljspy requests -p $worker | sed 's/^/nginx-requests /'"
    yield "ljspy record --clock wall --native all -p $worker -d 2s -r 25 -f folded -o - 2>/dev/null | sed 's/^/nginx-wall /'"
    yield f"for n in {' '.join(map(str, range(DUMPS)))}; do ljspy dump --native all -p $worker; done 2>/dev/null | sed 's/^/nginx-dump /'"
    yield f"for n in {' '.join(map(str, range(KILLS)))}; do"
    yield "ljspy record -p $worker -d 60s -r 200 -o /tmp/killed.ljspy 2>/dev/null & sampler=$!"
    yield "sleep 1.$n; kill -9 $sampler; sleep 1"
    yield "echo nginx-killed $(grep -E '^(State|TracerPid)' /proc/$worker/status) $(grep -c . /tmp/client)"
    yield "done; kill $client; sed 's/^/nginx-client /' /tmp/client /tmp/nginx/error.log; kill $master"


def lines_of(said, word):
    return re.findall(rf"(?m)^nginx-{word} ?(.*)$", said)


def judge(said):
    """What is wrong."""
    weights, wrong = collections.Counter(), collections.Counter()
    for line in lines_of(said, "record"):
        stack, _, weight = line.rpartition(" ")
        phase, *frames = stack.split(";")
        # lines of the configuration, whose chunks are named by block
        if any(frame.startswith("work ") for frame in frames):
            weights[phase] += int(weight)
            if phase != "timer" and not any(frame.startswith("main chunk") and f"{phase}_by_lua" in frame for frame in frames):
                wrong[stack] += int(weight)
    total, units = sum(weights.values()), sum(WORK.values())
    print(f"nginx of {SUITE}: {' '.join(lines_of(said, 'figures')[:2])}; shares " +
          ", ".join(f"{phase} {weights[phase] / max(total, 1):.2f} of {work / units:.2f}" for phase, work in WORK.items()))
    samples = next((int(found[1]) for line in lines_of(said, "figures") if (found := re.match(r"samples +(\d+)", line))), 0)
    if samples < LEAST_SAMPLES:
        yield f"nginx: {samples} samples"
    yield from (f"nginx: wrong: {stack}" for stack in wrong)
    for phase in {*WORK, *weights}:
        if total and abs(weights[phase] / total - WORK.get(phase, 0) / units) > SHARE_OFF:
            yield f"nginx: {phase} has {weights[phase] / total:.2f}"
    if not lines_of(said, "requests"):
        yield "nginx: its requests cannot be read"
    waited = [line for line in lines_of(said, "wall") if not line.startswith(UNSEEN)]
    dumped = re.split("(?m)^Thread ", "\n".join(lines_of(said, "dump")))[1:]
    astray = [stack for stack in waited if not NATIVE_ROOT.search(stack)] + [stack for stack in dumped if not NATIVE_MAIN.search(stack)]
    working = sum("work " in stack for stack in waited)
    print(f"nginx by the wall clock: {len(waited)} kinds of stack, {working} in the work; {len(dumped)} stacks dumped, {len(astray)} not whole")
    if not working or len(dumped) != DUMPS or astray or "[lost" in "".join(waited + dumped):
        yield f"nginx: by the wall clock and dumped: {astray[:2]}"
    well = [line for line in lines_of(said, "killed") if re.search(r"State: [RS].*TracerPid: 0", line)]
    if len(well) != KILLS:
        yield f"nginx: killed samplers: {lines_of(said, 'killed')}"
    if lines_of(said, "client")[:1] != ["ready"] or any("alert" in line or "assert" in line for line in lines_of(said, "client")):
        yield f"nginx: the client says {lines_of(said, 'client')}"
