-- SPDX-License-Identifier: MIT
-- One-way constraints between variables, planned and executed: many small methods, called
-- through classes, as in DeltaBlue.
local function class(base)
	local members = setmetatable({}, base)
	members.__index = members
	function members.new(...)
		local object = setmetatable({}, members)
		object:init(...)
		return object
	end
	return members
end

local Variable = class()
function Variable:init(value)
	self.value, self.mark, self.stays, self.constraints = value, 0, true, {}
end

local Constraint = class()
Constraint.__index = Constraint
function Constraint:join(strength, ...)
	self.strength = strength
	for _, variable in ipairs({ ... }) do
		variable.constraints[#variable.constraints + 1] = self
	end
end

local Edit = class(Constraint)
function Edit:init(variable, strength)
	self.out = variable
	self:join(strength, variable)
end
function Edit:execute() end
function Edit:inputs()
	return {}
end

local Equal = class(Constraint)
function Equal:init(from, to, strength)
	self.from, self.out = from, to
	self:join(strength, from, to)
end
function Equal:execute()
	self.out.value = self.from.value
end
function Equal:inputs()
	return { self.from }
end

local Scale = class(Constraint)
function Scale:init(from, factor, offset, to, strength)
	self.from, self.factor, self.offset, self.out = from, factor, offset, to
	self:join(strength, from, factor, offset, to)
end
function Scale:execute()
	self.out.value = self.from.value * self.factor.value + self.offset.value
end
function Scale:inputs()
	return { self.from, self.factor, self.offset }
end

local Planner = class()
function Planner:init()
	self.mark = 0
end
function Planner:is_known(constraint)
	for _, variable in ipairs(constraint:inputs()) do
		if not (variable.mark == self.mark or variable.stays) then
			return false
		end
	end
	return true
end
function Planner:add_users(variable, list)
	for _, constraint in ipairs(variable.constraints) do
		if constraint.out ~= variable then
			list[#list + 1] = constraint
		end
	end
end
function Planner:plan(sources)
	local plan, todo = {}, sources
	self.mark = self.mark + 1
	while #todo > 0 do
		local constraint = table.remove(todo)
		if constraint.out.mark ~= self.mark and self:is_known(constraint) then
			plan[#plan + 1] = constraint
			constraint.out.mark = self.mark
			self:add_users(constraint.out, todo)
		end
	end
	return plan
end

local function execute(plan)
	for i = 1, #plan do
		plan[i]:execute()
	end
end

local function chain(length)
	local planner, first = Planner.new(), Variable.new(0)
	local last = first
	for i = 1, length do
		local variable = Variable.new(0)
		Equal.new(last, variable, i % 5)
		last = variable
	end
	local plan = planner:plan({ Edit.new(first, 1) })
	for i = 0, 50 do
		first.value = i
		execute(plan)
	end
	assert(last.value == 50)
end

local function projection(length)
	local planner, factor, offset = Planner.new(), Variable.new(10), Variable.new(1000)
	local sources, last = {}, nil
	for i = 1, length do
		sources[i], last = Variable.new(i), Variable.new(i)
		Scale.new(sources[i], factor, offset, last, i % 4)
	end
	for i = 1, length do
		sources[i].value = i
		local plan = planner:plan({ Edit.new(sources[i], 2) })
		for _ = 1, 10 do
			execute(plan)
		end
	end
	assert(last.value == 10 * length + 1000)
end

while true do
	chain(300)
	projection(200)
end
