/* SPDX-License-Identifier: MIT */
/*
 * lua_moved: repair the copy of a Lua stack that LuaJIT is moving.
 *
 * resizestack() (lj_state.c) copies the stack and frees the old one; the allocator
 * writes to the old one's ends while L->stack still points there. Then resizestack()
 * stores the new address, long before it adjusts L->base and L->top. Until it stores
 * it, registers or native frames hold the new address; later, they hold the distance
 * to adjust by.
 */
#ifndef LJSPY_LUA_MOVED_H
#define LJSPY_LUA_MOVED_H

#include "unwind/capture/capture.h"
#include "unwind/lua/lua_objects.h"

/*
 * While the target is held, with all Lua stacks captured: if a stack is being freed
 * and its bottom is overwritten, take the bottom from the new stack. There is no
 * doubt: all else is the same in both.
 */
void lua_moved_capture(struct capture *capture);

/*
 * Adjust L->base and L->top of captured threads whose L->base is outside of their
 * stack, if there is no doubt by how much.
 */
void lua_moved_adjust(struct capture *capture, struct lua_objects *objects);

#endif
