/* SPDX-License-Identifier: MIT */
/*
 * stack_states: states that a thread runs which is not stopped for it, by its native stack.
 *
 * Of all that lies there, what a thread is in holds on to: a C frame whose Lua
 * thread holds the frame in its turn. What it has left behind does not.
 */
#ifndef LJSPY_STACK_STATES_H
#define LJSPY_STACK_STATES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "memory/memory.h"
#include "memory/snapshot.h"
#include "src/linux/proc/maps.h"
#include "unwind/capture/lua_image.h"
#include "unwind/capture/unknown_states.h"

/* Of states that are not known; the outer part of the stack is searched. The snapshot is used up. */
size_t stack_states_find(struct snapshot *snapshot, const struct lua_image *lua, struct memory *live,
			 pid_t pid, const struct mapping *stack,
			 struct state_clue ret_clues[static STATE_CLUES_MAX]);

#endif
