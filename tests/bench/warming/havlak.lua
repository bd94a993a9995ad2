-- SPDX-License-Identifier: MIT
-- Loops of random control flow graphs, found by depth-first numbers and disjoint sets, as in
-- Havlak's algorithm: recursion, nested loops and tables whose sizes differ each time.
local function connect(graph, from, to)
	graph[from], graph[to] = graph[from] or {}, graph[to] or {}
	table.insert(graph[from], to)
end

local function diamond(graph, start)
	local left, right, join = #graph + 1, #graph + 2, #graph + 3
	graph[left], graph[right], graph[join] = {}, {}, {}
	connect(graph, start, left)
	connect(graph, start, right)
	connect(graph, left, join)
	connect(graph, right, join)
	return join
end

local function random_graph(diamonds)
	local graph, at = { {} }, 1
	for i = 1, diamonds do
		local join = diamond(graph, at)
		if i % 3 == 0 then
			connect(graph, join, math.random(join))
		end
		at = join
	end
	return graph
end

local function number(graph)
	local number_of, last_of, nodes, count = {}, {}, {}, 0
	local function visit(node)
		count = count + 1
		number_of[node], nodes[count] = count, node
		for _, next_node in ipairs(graph[node]) do
			if not number_of[next_node] then
				visit(next_node)
			end
		end
		last_of[number_of[node]] = count
	end
	visit(1)
	return number_of, last_of, nodes, count
end

local function find(set_of, node)
	local passed = {}
	while set_of[node] ~= node do
		passed[#passed + 1] = node
		node = set_of[node]
	end
	for _, one in ipairs(passed) do
		set_of[one] = node
	end
	return node
end

local function loops(graph)
	local number_of, last_of, nodes, count = number(graph)
	local back, forward, header, set_of, found = {}, {}, {}, {}, 0
	for w = 1, count do
		back[w], forward[w], header[w], set_of[w] = {}, {}, 1, w
	end
	for v = 1, count do
		for _, next_node in ipairs(graph[nodes[v]]) do
			local w = number_of[next_node]
			if w <= v and v <= last_of[w] then
				table.insert(back[w], v)
			else
				forward[w][v] = true
			end
		end
	end
	for w = count, 1, -1 do
		local body, todo, has = {}, {}, {}
		for _, v in ipairs(back[w]) do
			local root = find(set_of, v)
			if v ~= w and not has[root] then
				has[root] = true
				body[#body + 1], todo[#todo + 1] = root, root
			end
		end
		while #todo > 0 do
			local x = table.remove(todo, 1)
			for y in pairs(forward[x]) do
				local root = find(set_of, y)
				if w < root and root <= last_of[w] and not has[root] then
					has[root] = true
					body[#body + 1], todo[#todo + 1] = root, root
				end
			end
		end
		for _, x in ipairs(body) do
			header[x], set_of[x] = w, w
		end
		found = found + (#body > 0 and 1 or 0)
	end
	return found
end

while true do
	assert(loops(random_graph(100 + math.random(200))) > 0)
end
