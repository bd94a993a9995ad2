#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Random programs, stepped through in the emulated arm64 machine: more of them than make check-arm64 has.

random_steps.py BUILD SYSROOT PROGRAMS STEPS

Each program is judged at STEPS instructions on one release's LuaJIT, by turns.
"""

import pathlib
import sys

import emulated
import emulator
import machine

SUITES = "bookworm", "trixie", "bullseye", "sid"


def main():
    build, sysroot = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    count, steps = int(sys.argv[3]), sys.argv[4]
    root = emulated.lay_base(build, sysroot, SUITES)
    names = emulated.lay_random(root, range(1, count + 1)).split()
    stepped = [(suite, " ".join(names[turn::len(SUITES)])) for turn, suite in enumerate(SUITES)]
    emulator.lay_commands(root, emulated.step_commands(steps, stepped))
    said = machine.boot(root)
    faults = [*emulated.judge_steps(said, count), *emulated.ended(said)]
    print("\n".join(faults))
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
