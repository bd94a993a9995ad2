"""make exactness: of every program, on every build, with every setting of the
compiler, how many stacks were judged, how many were lost and for which reasons,
and how many were wrong. Fails if one was.

    table.py EXACTNESS SAMPLES
"""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import ljspy
import test_exactness as exactness

BUILDS = {
    "bookworm, GC64": ljspy.luajit("luajit"),
    "bookworm, OpenResty's": ljspy.luajit("luajit2"),
    "bullseye, GC32": ljspy.PACKAGES / "bullseye/luajit/usr/bin/luajit",
}


def main():
    judge, samples = sys.argv[1:]
    judged = wrong = 0
    for build, luajit in BUILDS.items():
        for setting, parameters in {"off": None, **exactness.SETTINGS}.items():
            print(f"{build}, {'jit off' if parameters is None else setting}", flush=True)
            for program in exactness.PROGRAMS:
                jit = "off" if parameters is None else "on"
                argv = [judge, "sample", luajit, program, jit, samples, *(parameters or ())]
                done = subprocess.run(argv, cwd=exactness.HERE, capture_output=True, text=True, check=False)
                row = exactness.ROW.match(done.stdout)
                if not row:
                    sys.exit(f"{program}: {done.stderr}")
                print(f"  {done.stdout}", end="", flush=True)
                judged += int(row[1])
                wrong += int(row[2])
    print(f"{judged} stacks, {wrong} wrong")
    sys.exit(wrong > 0)


main()
