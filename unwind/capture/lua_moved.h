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

#include "memory/snapshot.h"
#include "unwind/elf/registers.h"
#include "unwind/lua/lua_objects.h"
#include "unwind/lua/lua_thread.h"

/*
 * While the target is held, with the thread's Lua stack captured: if the stack is being
 * freed and its bottom is overwritten, take the bottom from the new stack. There is no
 * doubt: all else is the same in both. registers are those of the native thread.
 */
void lua_moved_capture(struct snapshot *snapshot, const struct registers *registers,
		       struct lua_thread *thread);

/*
 * If L->base of a captured thread is outside of its stack, adjust L->base and L->top,
 * unless it is in doubt by how much.
 */
void lua_moved_adjust(struct snapshot *snapshot, const struct registers *registers,
		      struct lua_objects *objects, struct lua_thread *thread);

#endif
