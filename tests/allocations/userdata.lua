-- SPDX-License-Identifier: MIT
-- Makes userdata, strings and tables of about one size: userdata.lua SECONDS
local function proxies() for _ = 1, 8 do newproxy() end return newproxy() end
local function texts(i) return "a text of about forty bytes " .. i end
local function tables(i) return { i } end

local makers = { { "proxies", proxies, 6 }, { "texts", texts, 8 }, { "tables", tables, 2 } }

local run_rounds = dofile(arg[0]:match(".*/") .. "rounds.lua")
run_rounds(makers, tonumber(arg[1]), 10000)
