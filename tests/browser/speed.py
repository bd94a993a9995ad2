#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""speed.py FILE...: how long a flame graph takes to open, to search and to invert, in a headless Chromium.

The files take turns. A time ends when the browser has painted: opening begins with the navigation,
a search with its last letter (it waits 120 ms for another one), an inversion with its key. CPU is
the CPU time of the page's main thread meanwhile, which other work on the machine changes little.
The table has medians; the least and the most are in brackets.
"""

import pathlib
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import chromium  # noqa: E402

ROUNDS = 3

PAINTED = "const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));"
ON_LOAD = PAINTED + "addEventListener('load', async () => { await painted(); window.opened = performance.now(); });"
OPENED = "const done = arguments[0]; (function look() { window.opened ? done(opened) : setTimeout(look, 5); })();"
SEARCH = PAINTED + """
    const done = arguments[0], input = document.querySelector("input"), begin = performance.now();
    input.value = "render_";
    input.dispatchEvent(new Event("input"));
    (async function look() {
        if (!document.querySelector("output").textContent)
            return setTimeout(look, 1);
        await painted();
        done(performance.now() - begin);
    })();"""
INVERT = PAINTED + """
    const done = arguments[0], begin = performance.now();
    document.dispatchEvent(new KeyboardEvent("keydown", { key: "i" }));
    painted().then(() => done(performance.now() - begin));"""


def busy_ms(driver):
    """CPU time of the page's main thread so far."""
    metrics = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return 1000 * next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")


def measure(driver, path):
    """Pairs of elapsed and CPU time in ms."""
    driver.get("about:blank")
    driver.execute_cdp_cmd("Performance.disable", {})
    driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    times = []
    before = 0
    for code in (OPENED, SEARCH, INVERT):
        if code == OPENED:
            driver.get(pathlib.Path(path).resolve().as_uri())
        elapsed = driver.execute_async_script(code)
        busy = busy_ms(driver)
        times.append((elapsed, busy - before))
        before = busy
    return times


def cell(times):
    return "%.0f ms (%.0f to %.0f)" % (statistics.median(times), min(times), max(times))


def main(paths):
    with tempfile.TemporaryDirectory() as directory:
        driver = chromium.start(directory)
        try:
            driver.set_script_timeout(60)
            driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": ON_LOAD})
            rounds = [[measure(driver, path) for path in paths] for _ in range(ROUNDS)]
        finally:
            driver.quit()
    print("| file | opening | CPU | search | CPU | inversion | CPU |\n|---|---|---|---|---|---|---|")
    for number, path in enumerate(paths):
        kinds = zip(*(each[number] for each in rounds))
        cells = [cell(times) for kind in kinds for times in zip(*kind)]
        print("| %s | %s |" % (pathlib.Path(path).name, " | ".join(cells)))


if __name__ == "__main__":
    main(sys.argv[1:])
