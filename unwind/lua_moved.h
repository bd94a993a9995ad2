/*
 * lua_moved: a Lua stack that is being moved.
 *
 * resizestack() (lj_state.c) stores where the new stack is long before it
 * adjusts L->base and L->top. What it adjusts them by is, until then, in its
 * registers or in its native frame.
 */
#ifndef LJSPY_LUA_MOVED_H
#define LJSPY_LUA_MOVED_H

#include "unwind/capture.h"
#include "unwind/lua_objects.h"

/*
 * Adjust the fields of those captured threads whose L->base is outside of
 * their stack, where it is beyond doubt by how much.
 */
void lua_moved_adjust(struct capture *capture, struct lua_objects *objects);

#endif
