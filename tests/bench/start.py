# SPDX-License-Identifier: MIT
"""How long ljspy takes from the command to the first sample, and for a dump."""

import json
import subprocess
import time

import ljspy
import measure

DEBUG_INFO_MB = 100


def first_sample_ms(pid, options):
    """Milliseconds from before ljspy starts to the first sample, with a target that runs."""
    path = options.directory / "first.json"
    begin = time.time_ns()
    measure.record(pid, 0.1, 999, options, extra=("-f", "json", "-o", path))
    written = json.loads(path.read_text())
    return (written["session"]["start_unix_ns"] + written["samples"][0]["time_ns"] - begin) / 1e6


def dump_ms(pid):
    begin = time.monotonic()
    subprocess.run(measure.strings([ljspy.LJSPY, "dump", "-p", pid]), stdout=subprocess.DEVNULL, check=True)
    return (time.monotonic() - begin) * 1000


def attach(pid, what, wanted, options):
    times = [first_sample_ms(pid, options) for _ in range(options.pairs)]
    return measure.Row(f"attach to first sample: {what}", "ms", times, wanted=wanted)


def large_library(options):
    """A library with enough debug info to be slow to read at once."""
    path = options.directory / "liblarge.so"
    dwarf = options.directory / "large.dwarf"
    entry = b"\x02\x04\x05" + b"a_type_with_some_name\0"
    dwarf.write_bytes(entry * (DEBUG_INFO_MB * 1_000_000 // len(entry)))
    source = measure.HERE / "large.S"
    subprocess.run(
        measure.strings(["gcc", "-shared", "-o", path, f'-DDWARF="{dwarf}"', source]), check=True
    )
    dwarf.unlink()
    return path


def rows(options):
    # Half of the mappings are one page, between mappings with another protection.
    with measure.serving(options, PREPARE=f'dofile("{measure.HERE}/mappings.lua")(500)') as server:
        load = server.load("/work", 600)
        try:
            time.sleep(0.3)
            yield attach(server.worker, "nginx with 500 mappings", 50, options)
            times = [dump_ms(server.worker) for _ in range(options.pairs)]
            yield measure.Row("dump of nginx", "ms", times, wanted=100)
        finally:
            load.terminate()
            load.wait()
    library = large_library(options)
    with measure.luajit("large.lua", library) as target:
        time.sleep(0.3)
        yield attach(target.pid, f"{DEBUG_INFO_MB} MB of debug info", 300, options)
    library.unlink()
