-- SPDX-License-Identifier: MIT
-- Functions one of which makes userdata with finalizers, and that know what they allocate: finalizers.lua SECONDS
local count, first = 0, newproxy(true)
getmetatable(first).__gc = function() count = count + 1 end

local function proxies() return newproxy(first) end -- of the same metatable
local function lists(i) return { i, 2, 3 } end

local run_rounds = dofile(arg[0]:match(".*/") .. "rounds.lua")
run_rounds({ { "proxies", proxies, 1 }, { "lists", lists, 1 } }, tonumber(arg[1]), 20000)
