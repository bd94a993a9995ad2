# SPDX-License-Identifier: MIT
"""Made-up samples in every format, and the programs that read them."""

import os
import pathlib
import subprocess

import pytest

import chromium
from consumers import consumer
from readers import Callgrind, Firefox, Inferno, Pprof, Speedscope

ROOT = pathlib.Path(__file__).resolve().parents[2]
VARIANT = os.environ.get("VARIANT", "release")


@pytest.fixture(scope="session")
def samples_program():
    subprocess.run(["make", "-s", "make_samples", "VARIANT=" + VARIANT], cwd=ROOT, check=True)
    return ROOT / "build" / VARIANT / "tests/formats/make_samples"


@pytest.fixture(scope="session")
def make_samples(samples_program, tmp_path_factory):
    """Returns a function that makes the file of a set of samples in a format."""
    directory = tmp_path_factory.mktemp("formats")

    def make(samples, form, *options):
        path = directory / ".".join([samples, *options, form])
        if not path.exists():
            with path.open("wb") as out:
                subprocess.run([samples_program, samples, form, *options], stdout=out, check=True, timeout=60)
        return path

    return make


@pytest.fixture(scope="session")
def inferno():
    return Inferno(consumer("inferno"))


@pytest.fixture(scope="session")
def pprof():
    return Pprof(consumer("pprof"))


@pytest.fixture(scope="session")
def speedscope(tmp_path_factory):
    page = consumer("speedscope") / "dist/release/index.html"
    driver = chromium.start(tmp_path_factory.mktemp("browser"))
    yield Speedscope(page, driver, tmp_path_factory.mktemp("speedscope"))
    driver.quit()


@pytest.fixture
def firefox(tmp_path):
    opened = Firefox(consumer("firefox"), tmp_path)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def callgrind():
    return Callgrind()
