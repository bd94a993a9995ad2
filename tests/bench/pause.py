"""How long a thread is held, against the floor on the same target."""

import contextlib
import time

import subprocess

import measure

RATES = (99, 999)


@contextlib.contextmanager
def plain(_):
    with measure.luajit("work.lua", "interpreted", 10**9) as target:
        target.write("go\n")
        yield target.pid


@contextlib.contextmanager
def nginx(options):
    with measure.serving(options) as server:
        load = server.load("/work", 600)
        try:
            yield server.worker
        finally:
            load.terminate()
            load.wait()


@contextlib.contextmanager
def deep(_):
    with measure.luajit("deep.lua", 600, 200) as target:
        yield target.pid


@contextlib.contextmanager
def cold(_):
    with measure.luajit("functions.lua", "new") as target:
        yield target.pid


TARGETS = {
    "plain luajit": plain,
    "nginx under load": nginx,
    "200 Lua frames": deep,
    "new functions all the time": cold,
}


def floor(pid, rate, options):
    program = options.programs / "floor"
    command = measure.strings([program, pid, int(rate * options.seconds), rate])
    p50, p99 = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return {"p50": float(p50), "p99": float(p99)}


def rows(options):
    for name, start in TARGETS.items():
        with start(options) as pid:
            time.sleep(0.3)
            for rate in RATES:
                floors, pauses = [], []
                for _ in range(options.pairs):
                    floors.append(floor(pid, rate, options))
                    pauses.append(measure.record(pid, options.seconds, rate, options)["pause_us"])
                for point, wanted in (("p50", 1.3), ("p99", 2)):
                    yield measure.Row(
                        f"pause, {name}, {rate} Hz, {point}",
                        "µs",
                        [pause[point] for pause in pauses],
                        [one[point] for one in floors],
                        wanted,
                        "floor",
                    )
