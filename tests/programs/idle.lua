-- Asleep: a sampler of CPU time sees nothing.
-- stack: main [io.read]
-- no-testimony: it does nothing
local _, ready = dofile("harness.lua")

ready()
io.read()
-- SPDX-License-Identifier: MIT
