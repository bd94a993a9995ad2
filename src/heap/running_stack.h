/* SPDX-License-Identifier: MIT */
/*
 * running_stack: where the Lua of a VM stands when its heap is copied.
 *
 * In the hold, capture the native thread on whose stack the VM runs; after it, unwind what was captured. A VM
 * that waits in no C frame has no such thread, and its threads tell by themselves where they are. Private to
 * src/heap.
 */
#ifndef LJSPY_RUNNING_STACK_H
#define LJSPY_RUNNING_STACK_H

#include <stdbool.h>

#include "src/inspect/lua_process.h"
#include "src/linux/threads/hold.h"
#include "unwind/heap/heap_running.h"

/* Zeroed memory has none. */
struct running_stack {
	struct capture_hints hints;
	struct heap_running frames; /* running_stack_unwind() */
	bool is_captured;
};

/* Just before a hold, make it short: see lua_process_rehearse(). */
void running_stack_prepare(struct running_stack *stack, struct lua_process *process,
			   const struct global_state *global);

/*
 * For the read() of a hold, after the heap was copied. There is none to unwind if no stopped or sleeping
 * thread runs the VM, or if the copy itself tells what runs.
 */
void running_stack_capture(struct running_stack *stack, struct lua_process *process, struct memory *copy,
			   const struct global_state *global, const struct hold *hold);
/* The same of a core file. */
void running_stack_capture_core(struct running_stack *stack, struct lua_process *process,
				const struct global_state *global);

/* What was captured is not of the moment of the copy. */
void running_stack_forget(struct running_stack *stack);

/* Set the frames: none if nothing is captured, the stack cannot be unwound, or memory is short. */
void running_stack_unwind(struct running_stack *stack, struct lua_process *process,
			  const struct global_state *global);
void running_stack_clear(struct running_stack *stack);

#endif
