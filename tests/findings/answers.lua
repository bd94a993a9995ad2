-- SPDX-License-Identifier: MIT
-- Handlers for requests.conf.in.
local answers = {}

function answers.plain()
	local arguments = ngx.req.get_uri_args()
	ngx.header["X-User"] = arguments.user or "nobody"
	ngx.say("hello")
end

function answers.runs()
	os.execute("sleep 0.1") -- runs
	ngx.say("done")
end

function answers.computes()
	local sum = 0
	for i = 1, 3e7 do
		sum = sum + i % 7 -- computes
	end
	ngx.say(sum)
end

return answers
