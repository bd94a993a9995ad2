# SPDX-License-Identifier: MIT
"""A headless Firefox for the tests that need one.

Debian has no geckodriver, which would translate WebDriver for Firefox. What Firefox
itself speaks, Marionette, has the same commands by other names.
"""

import json
import os
import shutil
import socket
import subprocess
import time

import pytest

selenium = pytest.importorskip("selenium", reason="python3-selenium is not installed")

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.remote.command import Command

START_S = 60
ANSWER_S = 60
CM_PER_INCH = 2.54

PREFERENCES = {
    "marionette.port": 0,  # any
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.page": 0,
    "datareporting.policy.dataSubmissionEnabled": False,
    # What it asks of the network of its own accord goes nowhere.
    "network.proxy.type": 1,
    **{f"network.proxy.{kind}": value for scheme in ("http", "ssl") for kind, value in ((scheme, "127.0.0.1"), (scheme + "_port", 9))},
    "dom.w3c_touch_events.enabled": 1,
    "dom.events.testing.asyncClipboard": True,  # pages may read it
}

NAMES = {
    Command.NEW_SESSION: "NewSession",
    Command.GET: "Navigate",
    Command.GO_BACK: "Back",
    Command.GO_FORWARD: "Forward",
    Command.REFRESH: "Refresh",
    Command.GET_CURRENT_URL: "GetCurrentURL",
    Command.GET_TITLE: "GetTitle",
    Command.FIND_ELEMENT: "FindElement",
    Command.FIND_ELEMENTS: "FindElements",
    Command.FIND_CHILD_ELEMENT: "FindElement",
    Command.FIND_CHILD_ELEMENTS: "FindElements",
    Command.W3C_GET_ACTIVE_ELEMENT: "GetActiveElement",
    Command.CLEAR_ELEMENT: "ElementClear",
    Command.CLICK_ELEMENT: "ElementClick",
    Command.SEND_KEYS_TO_ELEMENT: "ElementSendKeys",
    Command.GET_ELEMENT_TEXT: "GetElementText",
    Command.GET_ELEMENT_TAG_NAME: "GetElementTagName",
    Command.IS_ELEMENT_SELECTED: "IsElementSelected",
    Command.IS_ELEMENT_ENABLED: "IsElementEnabled",
    Command.GET_ELEMENT_RECT: "GetElementRect",
    Command.GET_ELEMENT_PROPERTY: "GetElementProperty",
    Command.GET_ELEMENT_VALUE_OF_CSS_PROPERTY: "GetElementCSSValue",
    Command.GET_ELEMENT_ARIA_LABEL: "GetComputedLabel",
    Command.GET_ELEMENT_ARIA_ROLE: "GetComputedRole",
    Command.W3C_EXECUTE_SCRIPT: "ExecuteScript",
    Command.W3C_EXECUTE_SCRIPT_ASYNC: "ExecuteAsyncScript",
    Command.W3C_ACTIONS: "PerformActions",
    Command.W3C_CLEAR_ACTIONS: "ReleaseActions",
    Command.SET_WINDOW_RECT: "SetWindowRect",
    Command.GET_WINDOW_RECT: "GetWindowRect",
    Command.SCREENSHOT: "TakeScreenshot",
    Command.PRINT_PAGE: "Print",
}


class Marionette:
    """Carries selenium's commands to Firefox, and its answers back."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), ANSWER_S)
        self.stream = self.socket.makefile("rb")
        self.last = 0
        self.message()  # what it is

    def close(self):
        self.socket.close()

    def message(self):
        length = b""
        while not length.endswith(b":"):
            byte = self.stream.read(1)
            if not byte:
                raise WebDriverException("Firefox has closed the connection")
            length += byte
        return json.loads(self.stream.read(int(length[:-1])))

    def ask(self, name, parameters):
        self.last += 1
        text = json.dumps([0, self.last, name, parameters]).encode()
        self.socket.sendall(b"%d:%s" % (len(text), text))
        _, _, error, result = self.message()
        if error:
            raise WebDriverException("%s: %s" % (error["error"], error["message"]))
        return result

    def execute(self, command, parameters):
        """As selenium's own executors do."""
        parameters = {key: value for key, value in (parameters or {}).items() if key != "sessionId"}
        if command in (Command.FIND_CHILD_ELEMENT, Command.FIND_CHILD_ELEMENTS):
            parameters["element"] = parameters.pop("id")
        if command == Command.QUIT:
            return {"value": self.ask("Marionette:Quit", {"flags": ["eForceQuit"]})}
        result = self.ask("WebDriver:" + NAMES[command], parameters)
        if isinstance(result, dict) and set(result) == {"value"}:
            return result
        return {"value": result}


class Firefox(webdriver.Remote):
    def __init__(self, program, directory):
        directory.mkdir(exist_ok=True)
        (directory / "user.js").write_text("".join("user_pref(%s, %s);\n" % (json.dumps(name), json.dumps(value))
                                                   for name, value in PREFERENCES.items()))
        self.process = subprocess.Popen([program, "--headless", "--no-remote", "--marionette", "--remote-allow-system-access",
                                         "--profile", str(directory)], env={**os.environ, "HOME": str(directory)},
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            super().__init__(Marionette(self.port(directory / "MarionetteActivePort")), options=webdriver.FirefoxOptions())
        except BaseException:
            self.end()
            raise

    def port(self, path):
        """The port that Firefox has chosen, which it writes into a file."""
        deadline = time.monotonic() + START_S
        while not (path.exists() and path.read_text()):
            assert self.process.poll() is None and time.monotonic() < deadline, "Firefox does not start"
            time.sleep(0.05)
        return int(path.read_text())

    def quit(self):
        try:
            super().quit()
            self.process.wait(ANSWER_S)
        finally:
            self.end()

    def end(self):
        self.process.kill()
        self.process.wait()

    def as_firefox(self, script, *arguments):
        """Run a script with Firefox's own rights."""
        ask = self.command_executor.ask
        ask("Marionette:SetContext", {"value": "chrome"})
        try:
            return ask("WebDriver:ExecuteScript", {"script": script, "args": list(arguments)})["value"]
        finally:
            ask("Marionette:SetContext", {"value": "content"})

    def resize(self, width, height, mobile=False):
        """Of the page: the window has a least width."""
        self.as_firefox("""
            const { style } = gBrowser.selectedBrowser;
            [style.minWidth, style.maxWidth, style.minHeight, style.maxHeight] = [arguments[0], arguments[0], arguments[1], arguments[1]];""",
                        f"{width}px", f"{height}px")

    def prefer(self, scheme):
        """Make "dark" or "light" the preferred colours."""
        self.as_firefox("Services.prefs.setIntPref('layout.css.prefers-color-scheme.content-override', arguments[0]);", int(scheme == "light"))

    def touch(self, *fingers):
        """Put one finger after the other on the first of its points, lead all together over the others, and take them off."""
        actions = []
        for k, path in enumerate(fingers):
            steps = [{"type": "pointerMove", "x": round(x), "y": round(y), "duration": 0} for x, y in path]
            pauses = [{"type": "pause"}]
            actions.append({"type": "pointer", "id": f"finger{k}", "parameters": {"pointerType": "touch"}, "actions": [
                *pauses * (2 * k), steps[0], {"type": "pointerDown", "button": 0}, *pauses * 2 * (len(fingers) - 1 - k), *steps[1:],
                *pauses * (len(fingers) - 1 - k), {"type": "pointerUp", "button": 0}]})
        self.execute(Command.W3C_ACTIONS, {"actions": actions})

    def print_sheet(self, width, height, landscape):
        """Print the page on a sheet of so many inches."""
        self.execute(Command.PRINT_PAGE, {"page": {"width": width * CM_PER_INCH, "height": height * CM_PER_INCH},
                                          "orientation": "landscape" if landscape else "portrait"})

    def allow_clipboard(self, allowed):
        """Let pages read the clipboard. PREFERENCES do, always."""

    def complaints(self):
        """What pages have complained of since the last call."""
        return self.as_firefox("""
            const messages = Services.console.getMessageArray().filter((one) => one instanceof Ci.nsIScriptError && /^(file|http):/.test(one.sourceName));
            Services.console.reset();
            return messages.map((one) => one.message);""")


def start(directory):
    """A driver of Firefox, which stores its data in DIRECTORY. The caller quits it."""
    program = shutil.which("firefox-esr") or shutil.which("firefox")
    if not program:
        pytest.skip("firefox-esr is not installed")
    return Firefox(program, directory)
