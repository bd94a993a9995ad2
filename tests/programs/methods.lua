-- Methods, with inheritance through an __index table: no frame for the lookup.
-- stack: main deposit@deposit (audit@audit)? spin
-- stack: main withdraw@special_withdraw (withdraw@withdraw (audit@audit)? | balance@balance)? spin
-- stack: main new@new (main_new@new)? [setmetatable]
local spin, ready = dofile("harness.lua")

local Account = {}
Account.__index = Account

function Account.new(class, balance) -- @new
	local self = setmetatable({ total = balance }, class)
	return self
end

function Account:audit() -- @audit
	self.total = self.total + spin() % 1
end

function Account:deposit(amount) -- @deposit
	self.total = self.total + amount
	self:audit()
	spin()
end

function Account:withdraw(amount) -- @withdraw
	self.total = self.total - amount
	self:audit()
	spin()
end

function Account:balance() -- @balance
	return self.total + spin() % 1
end

local Special = setmetatable({}, Account)
Special.__index = Special

function Special:withdraw(amount) -- @special_withdraw
	Account.withdraw(self, amount)
	spin()
	return (self:balance())
end

local finish = ready()
while os.clock() < finish do
	local account = Account.new(Special, 10)
	account:deposit(5)
	account:withdraw(3)
end
-- SPDX-License-Identifier: MIT
