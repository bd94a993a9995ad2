# SPDX-License-Identifier: MIT
"""make fuzz: run every target for a while, on all CPUs.

    run.py TARGETS TOOLS FOLDER SECONDS RUNS

TARGETS contains the programs, TOOLS those that make seeds. FOLDER/TARGET/ keeps inputs
that reach new code for the next time. If RUNS is not 0, it runs each target that often
instead of for SECONDS. Prints how often each ran; keeps a finding in FOLDER/findings/
and exits with status 1.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent

# The longest useful input of each target, in bytes.
LENGTHS = {
    "arguments": 400, "code": 1500, "core": 10000, "debug_file": 17000, "dwarf_layout": 6000, "elf": 17000,
    "file_image": 17000, "findings": 1200, "footprint": 2000, "gateway": 200, "heap": 600, "heap_file": 3000, "layout_text": 4096,
    "listing": 6000, "names": 600, "nginx": 4000, "other_code": 1500, "other_core": 10000, "other_elf": 17000,
    "other_trace_code": 1500, "other_vm_code": 1500, "proc": 4096, "push": 600, "recognise": 400, "recording": 6000,
    "request": 600, "sample_message": 2000, "states": 600, "symbols": 17000, "table_search": 17000,
    "trace_code": 1500, "values": 8200, "vm_code": 1500, "walk": 600,
}
LIMITS = ["-rss_limit_mb=1500", "-timeout=300", "-report_slow_units=60"]
SANITIZER = "quarantine_size_mb=2:malloc_context_size=8:max_malloc_fill_size=0"


def fuzz(program, folder, seconds, runs):
    """Run a target. Returns its name, its number of executions, and its output if it failed."""
    name = program.name.removeprefix("fuzz_")
    kept = HERE / "inputs" / name
    (folder / name).mkdir(exist_ok=True)
    command = [program, *LIMITS, f"-max_len={LENGTHS[name]}", "-print_final_stats=1",
               f"-artifact_prefix={folder}/findings/{name}-",
               f"-runs={runs}" if runs else f"-max_total_time={seconds}", folder / name]
    done = subprocess.run([*command, kept] if kept.exists() else command, check=False, capture_output=True,
                          cwd=HERE.parent.parent, env={**os.environ, "ASAN_OPTIONS": SANITIZER})
    said = done.stderr.decode(errors="replace")
    count = re.search(r"number_of_executed_units: (\d+)", said)
    return name, int(count[1]) if count else 0, said if done.returncode else None


def main():
    targets, tools, folder = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
    seconds, runs = map(int, sys.argv[4:])
    subprocess.run([sys.executable, HERE / "seeds.py", tools, folder], check=True)
    (folder / "findings").mkdir(exist_ok=True)
    programs = [path for path in sorted(targets.glob("fuzz_*")) if not path.suffix]
    failures = total = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, count, failure in pool.map(lambda program: fuzz(program, folder, seconds, runs), programs):
            print(f"{name:14}{count:10} executions{', and a finding' if failure else ''}", flush=True)
            total += count
            if failure:
                failures += 1
                print(failure[-6000:])
    kept = f"; the inputs are in {folder}/findings/" if failures else ""
    print(f"{'all':14}{total:10} executions, {failures} findings{kept}")
    sys.exit(failures > 0)


main()
