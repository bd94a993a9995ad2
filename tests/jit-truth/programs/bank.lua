-- Accounts as objects: methods, inheritance, closures, tables that grow.
local Account = {}
Account.__index = Account

function Account.new(owner, balance)
	return setmetatable({ owner = owner, balance = balance, log = {}, entries = 0 }, Account)
end

function Account:note(kind, amount)
	local n = self.entries % 100 + 1
	self.log[n] = kind == "in" and amount or -amount
	self.entries = self.entries + 1
end

function Account:deposit(amount)
	if amount < 0 then
		error("negative")
	end
	self.balance = self.balance + amount
	self:note("in", amount)
end

function Account:withdraw(amount)
	if amount > self:available() then
		return false
	end
	self.balance = self.balance - amount
	self:note("out", amount)
	return true
end

function Account:available()
	return self.balance
end

local Credit = setmetatable({}, { __index = Account })
Credit.__index = Credit

function Credit.new(owner, balance, limit)
	local self = Account.new(owner, balance)
	self.limit = limit
	return setmetatable(self, Credit)
end

function Credit:available()
	return self.balance + self.limit
end

local function fee(rate)
	return function(amount)
		return amount * rate
	end
end

local fees = { fee(0.01), fee(0.02) }

local function transfer(from, to, amount)
	local cost = fees[amount % 2 + 1](amount)
	if from:withdraw(amount + cost) then
		to:deposit(amount)
		return true
	end
	return false
end

local function total(accounts)
	local sum = 0
	for _, account in ipairs(accounts) do
		sum = sum + account:available()
	end
	return sum
end

local accounts = {}
for i = 1, 20 do
	accounts[i] = i % 2 == 0 and Account.new("a" .. i, 1000 * i)
		or Credit.new("c" .. i, 500 * i, 1000)
end

local finish = os.clock() + tonumber(arg[1] or 1)
local seed = 42
while os.clock() < finish do
	for _ = 1, 10000 do
		seed = (seed * 16807) % 2147483647
		local from = accounts[seed % 20 + 1]
		local to = accounts[(seed + 7) % 20 + 1]
		if not transfer(from, to, seed % 50) then
			from:deposit(200)
		end
	end
	total(accounts)
end
-- SPDX-License-Identifier: MIT
