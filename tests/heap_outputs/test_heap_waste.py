# SPDX-License-Identifier: MIT
"""What `ljspy heap` says of waste, against programs that tell it of themselves."""

import json

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

# Each counts what it makes by collectgarbage("count"), with the collector off.
PROGRAM = """
collectgarbage() collectgarbage("stop") jit.off()
local function bytes() return collectgarbage("count") * 1024 end
local told = {}

local sparse = {}
for i = 1, 100 do sparse[i] = false end
local before = bytes()
for i = 1, 100 do
    local t = {}
    for j = 1, 512 do t[j] = j end
    for j = 2, 512 do t[j] = nil end
    sparse[i] = t
end
told.sparse = bytes() - before

local dense = {}
for i = 1, 100 do dense[i] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20} end

local has_buffers, buffer = pcall(require, "string.buffer")
told.buffers = 0
if has_buffers then
    buffers = {}
    for i = 1, 10 do buffers[i] = buffer.new() end
    local payload = ("x"):rep(100000)
    local before = bytes()
    for i = 1, 10 do buffers[i]:put(payload) end
    told.buffers = bytes() - before
    -- Five are read to the last ten bytes, five stay full.
    for i = 1, 5 do buffers[i]:skip(#payload - 10) end
end

local equal = {}
local before = bytes()
for i = 1, 1000 do equal[i] = false end
before = bytes()
for i = 1, 1000 do equal[i] = ("the same text "):rep(50) end
told.equal = bytes() - before

local function make(i) return function() return i end end
closures = {}
for i = 1, 777 do closures[i] = make(i) end

for name, value in pairs(told) do io.write(name, " ", string.format("%d", value), "\\n") end
io.write("ready\\n") io.flush() io.read()
"""


def test_waste_is_what_the_program_says(runtime):
    with ljspy.Target([ljspy.luajit(runtime), "-e", PROGRAM]) as target:
        told = {name: int(value) for name, value in map(str.split, target.read_until(b"ready\n").splitlines()[:-1])}
        ljspy.sleeps(target.pid)
        done = ljspy.run("heap", "-p", target.pid, "-f", "json", "-o", "-", "--strings")
        text = ljspy.run("heap", "-p", target.pid).stdout
    assert done.returncode == ljspy.OK, done.stderr
    ((vm,),) = [process["vms"] for process in json.loads(done.stdout)["processes"]]
    waste = vm["waste"]
    # Of each 512 slots one is used.
    (sparse,) = [row for row in waste["tables"] if row["path"].startswith('local "sparse"')]
    assert sparse["count"] == 100
    assert sparse["bytes"] == pytest.approx(told["sparse"] * 511 / 512, rel=0.05)
    assert not any("dense" in row["path"] for row in waste["tables"])
    # Buffers have powers of two.
    if told["buffers"]:
        assert waste["sparse_buffers"]["count"] == 5
        assert waste["sparse_buffers"]["bytes"] == pytest.approx(told["buffers"] / 2, rel=0.001)
        assert [row["count"] for row in waste["buffers"]] == [5]
    # The second of two equal strings takes nothing, but for what telling takes.
    assert told["equal"] < 2048 and "No two strings are equal" in text
    (closures,) = [row for row in vm["closures"] if row["function"].endswith("command line):1>") or row["count"] == 777]
    assert closures["count"] == 777
