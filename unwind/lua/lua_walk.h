/* SPDX-License-Identifier: MIT */
/*
 * lua_walk: walk down the frames of one Lua thread.
 *
 * A walk stands at a frame: its base and, for a Lua function, the current
 * bytecode. By the frame link (lj_frame.h, lj_debug.c) it moves to the caller's
 * frame and reports how the call was made.
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
	uint64_t pc; /* 0 if unknown or not a Lua function */
	/*
	 * C code's call has no complete frame yet, or no longer has one. The frame at
	 * base is the caller's, and native frames come before it.
	 */
	bool is_below_c;
};

/* The activation at the walk's frame. */
struct lua_activation {
	const struct function_object *function; /* NULL for the dummy frame at the bottom */
	uint64_t pc;                            /* an instruction of function->proto, or 0 */
};

enum lua_step {
	LUA_STEP_CALL,       /* the frame below called it with a call instruction */
	LUA_STEP_METAMETHOD, /* ... through a metamethod's continuation */
	LUA_STEP_PROTECTED,  /* ... as pcall, xpcall or the like */
	LUA_STEP_FROM_C,     /* native code called it: native frames come between */
	LUA_STEP_BOTTOM,     /* it is the outermost frame */
	LUA_STEP_BROKEN,     /* the link leads nowhere */
};

/* The activation at the current frame. False if its function is unknown. */
bool lua_walk_activation(const struct lua_walk *walk, struct lua_activation *ret_activation);

/* Is the walk at the bottom, with no frame left? */
static inline bool lua_walk_is_done(const struct lua_walk *walk)
{
	return walk->base <= lua_thread_bottom(walk->thread);
}

/* Is the frame an FFI callback from C code? */
bool lua_walk_is_callback(const struct lua_walk *walk);

/* Move to the frame below. On LUA_STEP_BROKEN the walk stays where it is. */
enum lua_step lua_walk_step(struct lua_walk *walk);

/* The same; with LUA_STEP_CALL it has the activation there, too. */
enum lua_step lua_walk_step_to(struct lua_walk *walk, struct lua_activation *ret_caller);

/*
 * The caller rule: a call or return is half done, so the frame at base is not
 * complete, but the interpreter's pc still leads to the caller's frame. Begin a
 * walk there. False if pc does not lead to a valid frame.
 */
bool lua_walk_find_caller(const struct lua_thread *thread, struct lua_objects *objects, uint64_t base,
			  uint64_t pc, struct lua_walk *ret_walk);

#endif
