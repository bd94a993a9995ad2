-- Planets and moons: fields of tables, arithmetic, helpers that are inlined.
local sqrt = math.sqrt

local function distance2(dx, dy, dz)
	return dx * dx + dy * dy + dz * dz
end

local function pull(body, dx, dy, dz, amount)
	body.vx = body.vx - dx * amount
	body.vy = body.vy - dy * amount
	body.vz = body.vz - dz * amount
end

local function interact(a, b, dt)
	local dx = a.x - b.x
	local dy = a.y - b.y
	local dz = a.z - b.z
	local d2 = distance2(dx, dy, dz)
	local magnitude = dt / (d2 * sqrt(d2))
	pull(a, dx, dy, dz, b.mass * magnitude)
	pull(b, dx, dy, dz, -a.mass * magnitude)
end

local function move(body, dt)
	body.x = body.x + dt * body.vx
	body.y = body.y + dt * body.vy
	body.z = body.z + dt * body.vz
end

local function advance(bodies, count, dt)
	for i = 1, count do
		local body = bodies[i]
		for j = i + 1, count do
			interact(body, bodies[j], dt)
		end
	end
	for i = 1, count do
		move(bodies[i], dt)
	end
end

local function energy(bodies, count)
	local e = 0
	for i = 1, count do
		local b = bodies[i]
		e = e + 0.5 * b.mass * distance2(b.vx, b.vy, b.vz)
		for j = i + 1, count do
			local c = bodies[j]
			e = e - b.mass * c.mass / sqrt(distance2(b.x - c.x, b.y - c.y, b.z - c.z))
		end
	end
	return e
end

local bodies = {}
for i = 1, 5 do
	bodies[i] = {
		x = i * 1.1, y = i * 0.7 - 2, z = 0.1 * i,
		vx = 0.01 * i, vy = -0.02 * i, vz = 0.005,
		mass = i == 1 and 39 or 0.01 / i,
	}
end

local finish = os.clock() + tonumber(arg[1] or 1)
while os.clock() < finish do
	for _ = 1, 5000 do
		advance(bodies, #bodies, 0.001)
	end
	energy(bodies, #bodies)
end
-- SPDX-License-Identifier: MIT
