-- SPDX-License-Identifier: MIT
-- Pieces put on a board of bits until none fits, as in the meteor puzzle: deep recursion with
-- bit operations, and branches that go both ways.
local bit = require("bit")
local band, bor, lshift, rshift = bit.band, bit.bor, bit.lshift, bit.rshift
local PIECES, WAYS, DEPTH = 10, 12, 6

local function shape()
	local bits = 0
	for _ = 1, 5 do
		bits = bor(bits, lshift(1, math.random(0, 23)))
	end
	return bits
end

local shapes = {}
for piece = 1, PIECES do
	shapes[piece] = {}
	for way = 1, WAYS do
		shapes[piece][way] = shape()
	end
end

local function first_free(board)
	local cell = 1
	while band(board, 1) == 1 do
		board = rshift(board, 1)
		cell = cell + 1
	end
	return cell
end

local function solve(board, used, depth)
	if depth > DEPTH then
		return 1
	end
	local solutions, cell = 0, first_free(board)
	for piece = 1, PIECES do
		if band(used, lshift(1, piece)) == 0 then
			for way = 1, WAYS do
				local bits = shapes[piece][way]
				if band(board, bits) == 0 and (way + cell) % 5 ~= 0 then
					solutions = solutions + solve(bor(board, bits), bor(used, lshift(1, piece)), depth + 1)
				end
			end
		end
	end
	return solutions
end

while true do
	solve(0, 0, 1)
	shapes[math.random(PIECES)][math.random(WAYS)] = shape()
end
