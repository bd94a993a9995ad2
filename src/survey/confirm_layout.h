/* SPDX-License-Identifier: MIT */
/*
 * confirm_layout: confirm the layout of a process that is busy.
 *
 * Objects in the middle of a change confirm nothing (lua_process.h). If too many
 * of them change while the process runs, ljspy holds it to look at them.
 */
#ifndef LJSPY_CONFIRM_LAYOUT_H
#define LJSPY_CONFIRM_LAYOUT_H

#include "src/inspect/lua_process.h"
#include "src/linux/threads/hold.h"

/*
 * lua_process_refresh(process, true) until nothing is open, some times: a process that is not held
 * confirms its layout only at a quiet moment. 0 or a negative errno.
 */
int confirm_while_it_runs(struct lua_process *process);

/*
 * Confirm what is open while the process is held, if it can be held.
 * lua_process_needs_confirming() tells the result.
 */
void confirm_while_held(struct lua_process *process, struct hold *hold);

/*
 * The same with a tracer of its own, for as long as may_go_on() returns true. The process is
 * free only when the calling thread has ended.
 */
void confirm_process(struct lua_process *process, pid_t pid, bool (*may_go_on)(void *context), void *context);

#endif
