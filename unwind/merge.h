/*
 * merge: native and Lua frames of one captured thread, in their true order.
 *
 * The native stack is walked from its leaf. Wherever it passes through the
 * VM or through a trace, the Lua frames that run there are put in its place,
 * down to the one that native code had called; the native frames outside of
 * it follow. What cannot be known is a lost frame with its reason.
 */
#ifndef LJSPY_MERGE_H
#define LJSPY_MERGE_H

#include <stddef.h>
#include <stdint.h>

#include "output/sample.h"
#include "unwind/capture.h"
#include "unwind/lost.h"
#include "unwind/native.h"
#include "unwind/vm_decoder.h"
#include "unwind/traces.h"
#include "unwind/vm_frame.h"

enum {
	/* LuaJIT's stack has 65,500 slots, and no frame takes fewer than two. */
	MERGE_FRAMES_MAX = 65536,
};

enum merged_kind {
	MERGED_LUA,		/* a Lua function: proto, pc */
	MERGED_C_FUNCTION,	/* a builtin or lua_CFunction: function */
	MERGED_NATIVE,		/* pc */
	MERGED_VM,		/* pc, in LuaJIT's interpreter */
	MERGED_TRACE,		/* trace, pc */
	MERGED_CHILD,		/* nothing runs here: what is above runs for the coroutine below */
	MERGED_LOST,		/* lost */
};

struct merged_frame {
	enum merged_kind kind;
	struct lua_universe *universe;	/* of Lua, C functions and traces; NULL for native code */
	const struct proto *proto;	/* of a trace: where it starts; may be NULL there */
	const struct function_object *function;	/* NULL when a trace knows only the prototype */
	uint64_t pc;			/* bytecode of a Lua function (0 if unknown), machine code else */
	bool is_return_address;		/* machine code: the call is before pc */
	bool compiled;
	bool pc_is_near;		/* compiled: pc is the snapshot's, not the exact one */
	bool called_by_metamethod;	/* Lua and C functions: through a continuation */
	const struct proto *caller;	/* whose instruction at caller_pc called it; NULL if none */
	uint64_t caller_pc;
	const struct trace *trace;
	enum lost_reason lost;
};

struct merged_stack {
	struct merged_frame *frames;	/* leaf first; owned */
	size_t count, size;
	enum vm_state vm_state;
};

/*
 * Fill the stack, replacing what it held. What the interpreter had half done is
 * finished in the capture. -ENOMEM leaves the stack cut short.
 */
int merge_stacks(struct capture *capture, struct image *image,
		 struct lua_objects *objects, struct native_unwinder *native,
		 struct vm_decoder *decoder, struct merged_stack *stack);

/*
 * Fill the stack with the frames of one of the captured threads, which native
 * code does not run: a coroutine that has yielded, has failed, or was never
 * resumed; that one has its function as its only frame.
 */
int merge_coroutine(struct capture *capture, size_t index, struct lua_objects *objects,
		    struct merged_stack *stack);

/* What is known of a native thread's innermost Lua frame where no native frames are. */
struct merge_top {
	enum merge_top_kind {
		MERGE_TOP_UNKNOWN,
		MERGE_TOP_REGISTERS,	/* the VM runs and holds it in registers */
		MERGE_TOP_STORED,	/* native code runs, and the VM has stored L->base */
		MERGE_TOP_TRACE,	/* compiled code runs that began at registers.base */
	} kind;
	struct vm_registers registers;
	uint64_t native_pc;	/* of native code that runs; 0 if none does */
};

/*
 * Fill the stack with the frames of all captured threads, each resumed by the
 * next one, the first of which runs. Where native frames were, it says that
 * they are lost. memory is the target's.
 */
int merge_lua_threads(struct capture *capture, struct memory *memory, struct lua_objects *objects,
		      const struct merge_top *top, struct merged_stack *stack);

/*
 * Fill the stack with the Lua frames of a thread that was not stopped
 * (capture_running()). Native frames are not known, nor is what compiled code
 * has inlined; where the interpreter runs, its frames are those that it saved
 * last, with a lost frame below them.
 */
int merge_running(struct capture *capture, struct lua_objects *objects, struct merged_stack *stack);

void merged_stack_clear(struct merged_stack *stack);

#endif
