# SPDX-License-Identifier: MIT
"""Open made-up flame graphs in a headless browser, from file:// as users do."""

import os
import pathlib
import subprocess
import time

import chromium
import firefox
import pytest
from consumers import consumer
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

ROOT = pathlib.Path(__file__).resolve().parents[2]
VARIANT = os.environ.get("VARIANT", "release")
PATIENCE = 5  # seconds to wait for something before it counts as failed
MOVE_MS = 20  # the way of a pointer, for which Selenium takes a quarter of a second


@pytest.fixture(scope="session")
def make_flamegraph(tmp_path_factory):
    """Returns a function that makes the flame graph of a name and returns its file."""
    subprocess.run(["make", "-s", "make_flamegraph", "VARIANT=" + VARIANT], cwd=ROOT, check=True)
    directory = tmp_path_factory.mktemp("flamegraphs")

    def make(name, *options):
        path = directory / ("-".join([name, *options, "graph"]) + (".html" if "page" in options else ".svg"))
        if not path.exists():
            with path.open("wb") as out:
                subprocess.run([ROOT / "build" / VARIANT / "tests/browser/make_flamegraph", name, *options],
                               stdout=out, check=True, timeout=60)
        return path

    return make


@pytest.fixture(scope="session")
def axe():
    """The source of axe-core, which judges whether everybody can use a page."""
    return (consumer("axe") / "axe.min.js").read_text(encoding="utf-8")


BROWSERS = {"chromium": chromium, "firefox": firefox}


def pytest_generate_tests(metafunc):
    if metafunc.definition.get_closest_marker("every_browser"):
        browsers = ["chromium", pytest.param("firefox", marks=pytest.mark.long)]
        metafunc.parametrize("browser", browsers, indirect=True, scope="session")


@pytest.fixture(scope="session")
def browser(request, tmp_path_factory):
    driver = BROWSERS[getattr(request, "param", "chromium")].start(tmp_path_factory.mktemp("browser"))
    yield driver
    driver.quit()


class Page:
    """A flame graph in the browser, with a method for each action of a user."""

    def __init__(self, browser):
        self.browser = browser

    def actions(self):
        """A chain of a user's actions, to be performed."""
        return ActionChains(self.browser, duration=MOVE_MS)

    def resize(self, width, height, mobile=False):
        self.browser.resize(width, height, mobile)

    def script(self, code, *arguments):
        return self.browser.execute_script(code, *arguments)

    def one(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def frames(self):
        """Each drawn frame: label, share of all, and box in window pixels."""
        return self.script("""
            return Array.from(document.querySelectorAll("[data-frame]"), (group) => {
                const box = group.querySelector("rect").getBoundingClientRect();
                const [, label, share] = group.getAttribute("aria-label").match(/^(.*), ([\\d.]+)\\s%$/s);
                return { id: group.id, label, share: Number(share), above: group.classList.contains("above"),
                         hit: group.classList.contains("hit"), look: group.classList[1],
                         x: box.x, y: box.y, width: box.width, height: box.height };
            });""")

    def find(self, label):
        return [frame for frame in self.frames() if label in frame["label"]]

    def labels(self):
        return {frame["label"] for frame in self.frames()}

    def about(self):
        """All lines of the header, which this opens."""
        self.one(".about summary").click()
        return self.one(".about").text

    def element(self, label):
        """The lowest frame whose label contains this."""
        return self.one("#" + self.find(label)[0]["id"])

    def hover(self, label):
        frame = self.find(label)[0]
        chain = self.actions()
        # Firefox tells nothing of a pointer that stays where it is.
        for beside in (1, 0):
            chain.w3c_actions.pointer_action.move_to_location(round(frame["x"] + min(frame["width"] / 2, 20)) + beside,
                                                              round(frame["y"] + 8))
        chain.perform()
        return self.tip()

    def tip(self):
        """The text of the tooltip, or None."""
        card = self.one(".card")
        return card.text if card.value_of_css_property("visibility") == "visible" else None

    def menu(self, label):
        """Open a frame's menu."""
        self.hover(label)
        self.actions().context_click().perform()

    def choose(self, text):
        """Press the button of that name."""
        next(button for button in self.all("button") if button.text == text).click()

    def tap(self, label):
        frame = self.find(label)[0]
        self.browser.touch([(round(frame["x"] + min(frame["width"] / 2, 20)), round(frame["y"] + 8))])

    def swipe(self, x, y, right, down):
        """Move a finger over a point of the window."""
        self.browser.touch([(x + right * part / 8, y + down * part / 8) for part in range(9)])

    def pinch(self, x, y, apart):
        """Put a finger on a point of the window and another one beside it, and move both apart."""
        self.browser.touch([(x, y), (x - apart / 2, y)], [(x + 30, y), (x + 30 + apart / 2, y)])

    def shares(self):
        """The share of each frame but the root by its path from the root: ("main chunk", "heavy")."""
        frames = self.frames()
        whole = next(frame for frame in frames if frame["label"] == "all")
        paths = {}
        for frame in frames:
            middle = frame["x"] + frame["width"] / 2
            below = [other for other in frames if other["x"] <= middle <= other["x"] + other["width"]
                     and abs(other["y"] - whole["y"]) < abs(frame["y"] - whole["y"]) and other is not whole]
            below.sort(key=lambda other: abs(other["y"] - whole["y"]))
            path = tuple(other["label"].removesuffix(" [builtin]") for other in below + [frame])
            paths[path] = frame["share"]
        del paths[("all",)]
        return paths

    def legend(self):
        return [" ".join(entry.text.split()) for entry in self.all(".legend span")]

    def click(self, label):
        self.hover(label)
        self.actions().click().perform()

    def press(self, *keys):
        for key in keys:
            self.actions().send_keys(key).perform()

    def press_with_control(self, key):
        self.actions().key_down(Keys.CONTROL).send_keys(key).key_up(Keys.CONTROL).perform()

    def press_with_shift(self, key):
        self.actions().key_down(Keys.SHIFT).send_keys(key).key_up(Keys.SHIFT).perform()

    def place_of_time(self, seconds, axis=False):
        """The position of a time on the heat map, in pixels from its corner."""
        data, height = self.script("""const cells = document.querySelector(".cells");
            return [cells.dataset, cells.getBoundingClientRect().height];""")
        unit, width = int(data["unit"]) / 1e6, int(data["width"])
        column, rest = divmod(seconds - int(data["first"]) * unit, unit)
        left, cells = 46, height - 18
        return left + (column + 0.4) * width, height - 8 if axis else cells * (1 - rest / unit) - 1

    def heat(self, seconds):
        """The colour of a time on the heat map."""
        x, y = self.place_of_time(seconds)
        return self.script("""
            const copy = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
            copy.drawImage(document.querySelector(".cells"), -Math.floor(arguments[0]), -Math.floor(arguments[1]));
            return Array.from(copy.getImageData(0, 0, 1, 1).data);""", x, y)

    def move_to_time(self, chain, seconds, axis=False):
        box = self.script("const b = document.querySelector('.cells').getBoundingClientRect(); return [b.x, b.y];")
        x, y = self.place_of_time(seconds, axis)
        chain.w3c_actions.pointer_action.move_to_location(round(box[0] + x), round(box[1] + y))

    def hover_time(self, seconds):
        chain = self.actions()
        self.move_to_time(chain, seconds)
        chain.perform()
        return self.tip()

    def drag_time(self, first, last, axis=False):
        chain = self.actions()
        self.move_to_time(chain, first, axis)
        chain.w3c_actions.pointer_action.pointer_down()
        self.move_to_time(chain, last, axis)
        chain.w3c_actions.pointer_action.pointer_up()
        chain.perform()

    def click_time_with_shift(self, seconds):
        self.actions().key_down(Keys.SHIFT).perform()
        self.drag_time(seconds, seconds)
        self.actions().key_up(Keys.SHIFT).perform()

    def active(self):
        """The label of the frame that keys act on."""
        group = self.one("#" + self.one(".scroll").get_attribute("aria-activedescendant"))
        return group.get_attribute("aria-label").rsplit(", ", 1)[0]

    def result(self):
        return self.one("output").text

    def wait(self, condition, patience=PATIENCE):
        deadline = time.monotonic() + patience
        while not condition():
            assert time.monotonic() < deadline, "did not happen in time"
            time.sleep(0.02)

    def search(self, text):
        """Search, and wait until the result is on the page."""
        before = self.result()
        self.press_with_control("f")
        self.press(text)
        self.wait(lambda: self.result() not in ("", "Searching …", before))

    def is_zoomed_to(self, label):
        whole = self.one(".frames").rect["width"]
        return any(abs(frame["width"] - whole) < 2 and not frame["above"] for frame in self.find(label))


@pytest.fixture
def open_page(browser, make_flamegraph):
    """Opens a flame graph; fails the test if the page complains or runs what a name says."""

    def open_page(name, *options, width=1280, height=800, mobile=False, scheme="light", address=""):
        page = Page(browser)
        page.resize(width, height, mobile)
        browser.prefer(scheme)
        browser.get("about:blank")
        browser.get(make_flamegraph(name, *options).as_uri() + address)
        return page

    browser.complaints()
    yield open_page
    browser.execute_script("localStorage.clear()")
    assert browser.complaints() == []
    assert browser.execute_script("return document.documentElement.dataset.owned") is None
