/* SPDX-License-Identifier: MIT */
/*
 * merge_lua: the frames of Lua threads whose native frames are unknown.
 *
 * For coroutines that do not run, core files of a machine whose native code ljspy
 * does not unwind, and threads that were not stopped.
 */
#ifndef LJSPY_MERGE_LUA_H
#define LJSPY_MERGE_LUA_H

#include <stddef.h>
#include <stdint.h>

#include "memory/memory.h"
#include "unwind/capture/capture.h"
#include "unwind/lua/lua_objects.h"
#include "unwind/stack/merged_stack.h"
#include "unwind/vm/vm_frame.h"

/* Each replaces what the stack held, and returns 0 or -ENOMEM, which leaves it cut short. */

/*
 * Fill the stack with the frames of a captured thread that native code does not
 * run: a coroutine that has yielded, has failed, or was never resumed; the latter
 * has its function as its only frame.
 */
int merge_coroutine(struct capture *capture, size_t index, struct lua_objects *objects,
		    struct merged_stack *stack);

/* What is known of a native thread's innermost Lua frame without native frames. */
struct merge_top {
	enum merge_top_kind {
		MERGE_TOP_UNKNOWN,
		MERGE_TOP_REGISTERS, /* the VM runs and has it in registers */
		MERGE_TOP_STORED,    /* native code runs, and the VM has stored L->base */
		MERGE_TOP_TRACE,     /* compiled code runs; it began at registers.base */
	} kind;
	struct vm_registers registers;
	uint64_t native_pc; /* of the native code that runs; 0 if none does */
};

/*
 * Fill the stack with the frames of all captured threads; the first runs, and each
 * is resumed by the next. Lost frames stand for the native frames between them.
 * memory is the target's.
 */
int merge_lua_threads(struct capture *capture, struct memory *memory, struct lua_objects *objects,
		      const struct merge_top *top, struct merged_stack *stack);

/*
 * Fill the stack with the Lua frames of a thread that was not stopped
 * (capture_running()). Native frames are unknown, and so are those that compiled
 * code has inlined. If the interpreter runs, the stack has the frames that it
 * saved last, with a lost frame below the innermost ones.
 */
int merge_running(struct capture *capture, struct lua_objects *objects, struct merged_stack *stack);

#endif
