/* SPDX-License-Identifier: MIT */
/*
 * heap_running: where the Lua that runs stands.
 *
 * lua_State.base is old while Lua runs, in the interpreter or compiled; the stack of the native thread that
 * runs it tells. Only frames whose slots are in memory are here: not what a trace has inlined.
 */
#ifndef LJSPY_HEAP_RUNNING_H
#define LJSPY_HEAP_RUNNING_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/stack/merged_stack.h"

/* A Lua function's. */
struct heap_running_frame {
	uint64_t thread, base;
	uint64_t pc;    /* of its instruction; 0 if unknown */
	uint64_t trace; /* the GCtrace that runs for it; 0: it is not compiled */
};

/* Zeroed memory has none. */
struct heap_running {
	struct heap_running_frame *frames; /* leaf first; owned */
	size_t count, size;
};

/* Replace what there is by a stack's frames of one global_State. 0 or -ENOMEM, which leaves none. */
int heap_running_set(struct heap_running *running, const struct merged_stack *stack, uint64_t g);
void heap_running_clear(struct heap_running *running);

/* The innermost frame of a thread; NULL if there is none, or running is NULL. */
const struct heap_running_frame *heap_running_top(const struct heap_running *running, uint64_t thread);

#endif
