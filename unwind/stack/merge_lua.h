/* SPDX-License-Identifier: MIT */
/*
 * merge_lua: the frames of Lua threads whose native frames are unknown.
 *
 * For coroutines that do not run, and threads that were not stopped.
 */
#ifndef LJSPY_MERGE_LUA_H
#define LJSPY_MERGE_LUA_H

#include <stddef.h>

#include "unwind/capture/capture.h"
#include "unwind/lua/lua_objects.h"
#include "unwind/stack/merged_stack.h"

/* Each replaces what the stack held, and returns 0 or -ENOMEM, which leaves it cut short. */

/*
 * Fill the stack with the frames of a captured thread that native code does not
 * run: a coroutine that has yielded, has failed, or was never resumed; the latter
 * has its function as its only frame.
 */
int merge_coroutine(struct capture *capture, size_t index, struct lua_objects *objects,
		    struct merged_stack *stack);

/*
 * Fill the stack with the Lua frames of a thread that was not stopped
 * (capture_running()). Native frames are unknown, and so are those that compiled
 * code has inlined. If the interpreter runs, the stack has the frames that it
 * saved last, with a lost frame below the innermost ones. With lacks_native,
 * a lost frame at the root stands for the native ones.
 */
int merge_running(struct capture *capture, struct lua_objects *objects, bool lacks_native,
		  struct merged_stack *stack);

#endif
