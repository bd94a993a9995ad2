/* SPDX-License-Identifier: MIT */
/*
 * lua_moved: a Lua stack that is being moved.
 *
 * resizestack() (lj_state.c) copies the stack and frees the old one, and the
 * allocator writes to its ends while L->stack still leads there. Then it stores
 * where the new stack is, long before it adjusts L->base and L->top. Until then
 * the new address, and later what to adjust them by, is in registers or native
 * frames.
 */
#ifndef LJSPY_LUA_MOVED_H
#define LJSPY_LUA_MOVED_H

#include "unwind/capture/capture.h"
#include "unwind/lua/lua_objects.h"

/*
 * While the target is held, with all Lua stacks captured: where the bottom of
 * one is overwritten since it is being freed, take it from the new stack. That
 * is beyond doubt: all else is the same in both.
 */
void lua_moved_capture(struct capture *capture);

/*
 * Adjust the fields of those captured threads whose L->base is outside of
 * their stack, where it is beyond doubt by how much.
 */
void lua_moved_adjust(struct capture *capture, struct lua_objects *objects);

#endif
