-- SPDX-License-Identifier: MIT
-- Without fault: a process that waits for input.
print("ready")
io.stdout:flush()
io.read()
