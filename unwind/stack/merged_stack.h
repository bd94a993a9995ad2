/* SPDX-License-Identifier: MIT */
/*
 * merged_stack: native and Lua frames of one thread, in their true order.
 */
#ifndef LJSPY_MERGED_STACK_H
#define LJSPY_MERGED_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/sample/lost.h"
#include "output/sample/sample.h"
#include "unwind/elf/image.h"
#include "unwind/jit/traces.h"
#include "unwind/lua/lua_objects.h"

enum {
	/* LuaJIT's stack has 65,500 slots, and each frame takes at least two. */
	MERGE_FRAMES_MAX = 65536,
};

enum merged_kind {
	MERGED_LUA,        /* a Lua function: proto, pc */
	MERGED_C_FUNCTION, /* a builtin or lua_CFunction: function */
	MERGED_NATIVE,     /* pc */
	MERGED_VM,         /* pc, in LuaJIT's interpreter */
	MERGED_TRACE,      /* trace, pc */
	MERGED_CHILD,      /* no call: the frames above run for the coroutine below */
	MERGED_LOST,       /* lost */
};

struct merged_frame {
	enum merged_kind kind;
	struct global_state *global;            /* of Lua, C functions and traces; NULL for native code */
	const struct proto *proto;              /* of a trace: where it starts, or NULL */
	const struct function_object *function; /* NULL if a trace has only the prototype */
	uint64_t pc;            /* bytecode of a Lua function (0 if unknown), machine code else */
	bool is_return_address; /* machine code: the call is before pc */
	bool compiled;
	bool pc_is_near;            /* compiled: pc is the snapshot's, and not exact */
	bool called_by_metamethod;  /* Lua and C functions: through a continuation */
	const struct proto *caller; /* its instruction at caller_pc called this frame; NULL if none did */
	uint64_t caller_pc;
	const struct trace *trace;
	/*
	 * Of a Lua function whose slots are known: its thread, and the address of its first slot; else NULL
	 * and 0.
	 */
	const struct lua_thread *thread;
	uint64_t base;
	uint64_t trace_pc;  /* compiled: the machine code that runs for it; 0 if unknown */
	uint8_t trace_slot; /* compiled: the trace's slot at base; 0 if unknown */
	enum lost_reason lost;
};

struct merged_stack {
	struct merged_frame *frames; /* leaf first; owned */
	size_t count, size;
	enum vm_state vm_state;
	uint64_t native_end; /* no frame of the native stack lies from here on; 0: unknown, as part is lost */
	bool passes_copy;    /* a part is lost that lies beyond the copy of the native stack */
	bool out_of_memory;  /* the stack is cut short */
};

/* Empty the stack, to fill it anew; merged_stack_clear() frees its memory. */
void merged_stack_begin(struct merged_stack *stack, enum vm_state vm_state);
void merged_stack_clear(struct merged_stack *stack);

/* Add the next frame outwards, for the caller to fill in; NULL when memory is short. Frames may move. */
struct merged_frame *merged_stack_add(struct merged_stack *stack, enum merged_kind kind);

void merged_stack_add_lost(struct merged_stack *stack, enum lost_reason reason);

/* Is there no room, or no memory, for more frames? */
bool merged_stack_is_full(const struct merged_stack *stack);

#endif
