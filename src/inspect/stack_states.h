/* SPDX-License-Identifier: MIT */
/*
 * stack_states: find the states that a thread runs on its native stack, without a stop.
 *
 * A C frame in use and its Lua thread point to each other. Remains of frames that
 * the thread has left do not.
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

/*
 * Clues to states that are not known; returns how many. Searches the outer part of
 * the stack. Overwrites the snapshot.
 */
size_t stack_states_find(struct snapshot *snapshot, const struct lua_image *lua, struct memory *live,
			 pid_t pid, const struct mapping *stack,
			 struct state_clue ret_clues[static STATE_CLUES_MAX]);

#endif
