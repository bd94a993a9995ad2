# SPDX-License-Identifier: MIT
"""Files are named from where the target's own package.path finds them, whatever directory that is."""

import gzip
import pathlib
import re

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

HERE = pathlib.Path(__file__).resolve().parent

HANDLER = """
local M = {}
function M.access(n) local sum = 0 for i = 1, n do sum = sum + i % 7 end return sum end
return M
"""

# A function is seen before the root of its file is known.
MAIN = """
local function early(n) local sum = 0 for i = 1, n do sum = sum + i % 7 end return sum end
early(5e6)
package.path = "{root}/?.lua;{root}/lua/?.lua;" .. package.path
local handler = require("acl.handler")
local begin = os.clock()
while os.clock() - begin < 0.5 do handler.access(1e5) early(1e5) end
"""


def deploy(root):
    (root / "lua/acl").mkdir(parents=True)
    (root / "lua/acl/handler.lua").write_text(HANDLER)
    (root / "main.lua").write_text(MAIN.format(root=root))


def record(directory, path, *argv):
    arguments = ["-r", ljspy.HIGH_RATE, "-o", path, "--", ljspy.luajit("luajit"), "-joff", *argv]
    result = ljspy.run("record", *arguments, cwd=directory)
    assert result.returncode == ljspy.OK, result.stderr


def report(*arguments):
    result = ljspy.run(*arguments)
    assert result.returncode == ljspy.OK, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def deploys(tmp_path_factory):
    """Recordings of the same program in two directories."""
    directory = tmp_path_factory.mktemp("srv")
    recordings = []
    for version in "app-1.2", "app-1.3":
        deploy(directory / version)
        recordings.append(directory / f"{version}.ljspy")
        record(directory, recordings[-1], directory / version / "main.lua")
    return recordings


def test_modules_begin_below_the_roots(deploys):
    groups = report("report", deploys[0], "--by", "module").split("function\n")[0]
    modules = re.findall(r"(?m)^ *[\d.]+ ± [\d.]+ +[\d.]+  (\S+)$", groups)
    assert {"acl/handler", "main"} <= set(modules)
    assert not any(str(deploys[0].parent) in module for module in modules)


def test_the_default_path_has_roots(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work/handler.lua").write_text(HANDLER)
    code = "local h = require('work.handler') for i = 1, 3000 do h.access(10000) end"
    record(tmp_path, tmp_path / "a.ljspy", "-e", code)
    assert re.search(r"(?m)  work/handler$", report("report", tmp_path / "a.ljspy", "--by", "module"))


def test_a_deploy_to_another_directory_changes_no_function(deploys):
    text = report("diff", *deploys)
    rows = re.findall(r"(?m)^ *([\d.]+ +[\d.]+) .*  (access \S+|main chunk \S+|early \S+)$", text)
    rows = {function: [float(share) for share in shares.split()] for shares, function in rows}
    assert set(rows) == {"access acl/handler.lua", "main chunk main.lua", "early main.lua"}, text
    assert min(*rows["access acl/handler.lua"], *rows["early main.lua"]) > 5, text
    assert str(deploys[0].parent) not in text.split("function\n", 1)[1]


def test_pictures_and_pprof_know_them(deploys, tmp_path):
    root = deploys[0].parent / "app-1.2"
    picture = report("report", deploys[0], "-f", "svg", "-o", "-")
    assert f"access\t{root}/lua/\tacl/handler.lua:3" in picture
    assert f"early\t{root}/\tmain.lua:2" in picture
    profile = tmp_path / "a.pb.gz"
    report("report", deploys[0], "-o", profile)
    strings = gzip.decompress(profile.read_bytes())
    assert b"acl/handler.access:3" in strings
    assert b"\x0facl/handler.lua" in strings
    assert f"access {root}/lua/acl/handler.lua:3".encode() in strings


def test_recordings_of_version_5_have_no_roots():
    old = HERE / "version-5.ljspy"
    assert "/srv/app/lua/acl/handler" in report("report", old, "--by", "module")
    assert re.search(r"access /srv/app/lua/acl/handler.lua:2", report("report", old))
