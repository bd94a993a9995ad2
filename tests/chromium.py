# SPDX-License-Identifier: MIT
"""A headless browser for the tests that need one."""

import shutil

import pytest

selenium = pytest.importorskip("selenium", reason="python3-selenium is not installed")

from selenium import webdriver
from selenium.webdriver.chrome.service import Service


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
    return webdriver.Chrome(service=Service(chromedriver), options=options)
