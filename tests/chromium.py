# SPDX-License-Identifier: MIT
"""A headless browser for the tests that need one."""

import shutil

import pytest

selenium = pytest.importorskip("selenium", reason="python3-selenium is not installed")

from selenium import webdriver
from selenium.webdriver.chrome.service import Service


class Chromium(webdriver.Chrome):
    """With what firefox.Firefox can do, too: an emulated window, fingers, and what a page complains of."""

    def resize(self, width, height, mobile=False):
        self.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile})
        self.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": mobile})

    def prefer(self, scheme):
        """Make "dark" or "light" the preferred colours."""
        self.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def touch(self, *fingers):
        """Put one finger after the other on the first of its points, lead all together over the others, and take them off."""
        down = [[path[0] for path in fingers[:count]] for count in range(1, len(fingers) + 1)]
        off = [[path[-1] for path in fingers[:count]] for count in reversed(range(len(fingers)))]
        for kind, steps in (("touchStart", down), ("touchMove", list(zip(*fingers))[1:]), ("touchEnd", off)):
            for points in steps:
                self.execute_cdp_cmd("Input.dispatchTouchEvent", {
                    "type": kind, "touchPoints": [{"id": k, "x": x, "y": y} for k, (x, y) in enumerate(points)]})

    def print_sheet(self, width, height, landscape):
        """Print the page on a sheet of so many inches."""
        self.execute_cdp_cmd("Page.printToPDF", {"landscape": landscape, "paperWidth": width, "paperHeight": height})

    def allow_clipboard(self, allowed):
        """Let pages read the clipboard."""
        if allowed:
            self.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
        else:
            self.execute_cdp_cmd("Browser.resetPermissions", {})

    def complaints(self):
        """What pages have complained of since the last call."""
        return self.get_log("browser")


def start(directory):
    """A driver of Chromium, which stores its data in DIRECTORY. The caller quits it."""
    chromedriver = shutil.which("chromedriver")
    if not chromedriver or not shutil.which("chromium"):
        pytest.skip("chromium and chromium-driver are not installed")
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                     "--disable-background-networking", "--disable-component-update", "--disable-sync",
                     "--user-data-dir=" + str(directory)):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return Chromium(service=Service(chromedriver), options=options)
