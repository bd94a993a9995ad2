-- naps.lua LIBRARY SECONDS [KIND...]: short bursts of work between naps in system calls, of these kinds by
-- name, or of all that are not fragile; KIND "list" lists them. Prints "ready", and begins after a line of
-- input; then prints for each kind, separated by tabs, its name, how many naps there were, how many of
-- them were interrupted, ended otherwise than they should, and too early, and what was wrong last.

local ffi = require("ffi")

ffi.cdef [[
int naps_count(void);
const char *naps_name(int);
int naps_is_fragile(int);
int naps_prepare(int);
int naps_nap(int);
const char *naps_last_words(void);
struct timespec { long sec, nsec; };
int clock_gettime(int, struct timespec *);
]]

local naps = ffi.load(arg[1])
local seconds = tonumber(arg[2])
local wanted = {}
for i = 3, #arg do wanted[arg[i]] = true end

local function now()
	local time = ffi.new("struct timespec")
	ffi.C.clock_gettime(1, time)
	return tonumber(time.sec) + tonumber(time.nsec) / 1e9
end

local kinds = {}
for index = 0, naps.naps_count() - 1 do
	local name, fragile = ffi.string(naps.naps_name(index)), naps.naps_is_fragile(index) ~= 0
	if wanted.list then
		print(name, fragile and "fragile" or "")
	elseif wanted[name] or (not next(wanted) and not fragile) then
		if naps.naps_prepare(index) ~= 0 then
			kinds[#kinds + 1] = { index = index, name = name, naps = 0, [0] = 0, 0, 0, 0, words = "" }
		end
	end
end
if wanted.list then os.exit(0) end

local function work(most)
	local sum = 0
	for i = 1, math.random(most) do sum = sum + i % 7 end
	return sum
end

local sink = 0
io.write("ready\n") io.flush()
io.read() -- until it is profiled
local finish = now() + seconds
local rounds = 0
-- Where each round waits for a CPU, there is still one for each second.
while now() < finish or rounds < seconds do
	rounds = rounds + 1
	for _, kind in ipairs(kinds) do
		sink = sink + work(100000)
		local ended = naps.naps_nap(kind.index)
		kind.naps = kind.naps + 1
		kind[ended] = kind[ended] + 1
		if ended == 2 then kind.words = ffi.string(naps.naps_last_words()) end
	end
end
for _, kind in ipairs(kinds) do
	print(table.concat({ kind.name, kind.naps, kind[1], kind[2], kind[3], kind.words }, "\t"))
end
-- SPDX-License-Identifier: MIT
