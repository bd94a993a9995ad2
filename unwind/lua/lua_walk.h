/* SPDX-License-Identifier: MIT */
/*
 * lua_walk: down the frames of one Lua thread.
 *
 * A walk stands at a frame: its base and, for a Lua function, the bytecode
 * being executed. Following the frame link (lj_frame.h, lj_debug.c) it moves
 * to the caller's frame and says how the one was called from the other.
 */
#ifndef LJSPY_LUA_WALK_H
#define LJSPY_LUA_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "output/sample/lost.h"
#include "unwind/lua/lua_objects.h"
#include "unwind/lua/lua_thread.h"

struct lua_walk {
	const struct lua_thread *thread;
	struct lua_objects *objects;
	uint64_t base;
	uint64_t pc;		/* 0 if unknown, or for other than Lua functions */
	/*
	 * What C code has called is not whole yet, or is not any more: the frame
	 * at base is that of the caller, and native frames come before it.
	 */
	bool is_below_c;
};

/* What stands at the walk's frame. */
struct lua_activation {
	const struct function_object *function;	/* NULL for the dummy frame at the bottom */
	uint64_t pc;		/* an instruction of function->proto, or 0 */
};

enum lua_step {
	LUA_STEP_CALL,		/* the frame below called it with a call instruction */
	LUA_STEP_METAMETHOD,	/* ... through a metamethod's continuation */
	LUA_STEP_PROTECTED,	/* ... as pcall, xpcall or the like */
	LUA_STEP_FROM_C,	/* it was called by native code: native frames come between */
	LUA_STEP_BOTTOM,	/* it was the outermost frame */
	LUA_STEP_BROKEN,	/* the link leads nowhere */
};

/* False if what stands here is no function that is known. */
bool lua_walk_activation(const struct lua_walk *walk, struct lua_activation *ret_activation);

/* Is the walk at the bottom: no frame is left? */
bool lua_walk_is_done(const struct lua_walk *walk);

/* Was the frame called back by C code through the FFI? */
bool lua_walk_is_callback(const struct lua_walk *walk);

/* Move to the frame below. On LUA_STEP_BROKEN the walk stays where it is. */
enum lua_step lua_walk_step(struct lua_walk *walk);

/*
 * The caller rule: a call or return is half done, so the frame at base is not
 * whole, but pc (as the interpreter holds it) still leads to the caller's
 * frame. False if it does not lead to a frame in which pc makes sense.
 */
bool lua_walk_find_caller(const struct lua_thread *thread, struct lua_objects *objects,
			  uint64_t base, uint64_t pc, struct lua_walk *ret_walk);

#endif
