/* SPDX-License-Identifier: MIT */
/*
 * confirm_layout: confirm the layout of a process that is busy.
 *
 * Objects in the middle of a change confirm nothing (lua_process.h). Where too
 * many of them change for a look while the process runs, it is held for one.
 */
#ifndef LJSPY_CONFIRM_LAYOUT_H
#define LJSPY_CONFIRM_LAYOUT_H

#include "src/inspect/lua_process.h"
#include "src/linux/threads/hold.h"

/* Where something is open and the process can be held. What came of it is seen by lua_process_needs_confirming(). */
void confirm_while_held(struct lua_process *process, struct hold *hold);

/* The same without a hold at hand, for as long as it may go on. */
void confirm_process(struct lua_process *process, pid_t pid, bool (*may_go_on)(void *context), void *context);

#endif
