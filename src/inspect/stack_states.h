/* SPDX-License-Identifier: MIT */
/*
 * stack_states: find the states that a thread runs on its native stack, without a stop.
 *
 * A C frame in use and its Lua thread point to each other. Remains of frames that
 * the thread has left do not.
 */
#ifndef LJSPY_STACK_STATES_H
#define LJSPY_STACK_STATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "memory/memory.h"
#include "memory/snapshot.h"
#include "src/linux/proc/maps.h"
#include "unwind/capture/capture.h"
#include "unwind/capture/lua_image.h"
#include "unwind/capture/unknown_states.h"

/*
 * What is known of where a thread's native stack is, beside those of others. Stacks made one after the other
 * may be one mapping: glibc 2.43 guards them by MADV_GUARD_INSTALL (Linux 6.13), which maps nothing else in
 * between.
 */
struct stack_place {
	uint64_t address;    /* on the stack; 0: it is that of the only thread */
	bool is_end;         /* the address is at its end: see own_stack_address() */
	uint64_t below;      /* the next lower address on another thread's stack; 0: none */
	bool below_is_end;   /* is_end of that one */
	uint64_t above;      /* the next higher one; UINT64_MAX: none */
	bool others_unknown; /* of some other threads there is no address */
};

/*
 * The stack in this mapping around place->address. False if its bounds to others' in the mapping are unknown.
 */
bool stack_states_bound(const struct mapping *mapping, const struct stack_place *place,
			struct native_stack *ret_stack);

/*
 * Clues to states that are not known; returns how many. Searches the outer part of
 * the stack. Overwrites the snapshot.
 */
size_t stack_states_find(struct snapshot *snapshot, const struct lua_image *lua, struct memory *live,
			 pid_t pid, const struct memory_range *stack,
			 struct state_clue ret_clues[static STATE_CLUES_MAX]);

#endif
