/* SPDX-License-Identifier: MIT */
/*
 * lua_top: which Lua frame is the innermost one, right now.
 *
 * L->base and SAVE_PC are stored only around some calls out of the VM; in
 * between the truth is in the interpreter's registers, and while a call or
 * return is half done not even there in one piece. The rules, and the order
 * in which they are tried, were found by single-stepping real builds.
 */
#ifndef LJSPY_LUA_TOP_H
#define LJSPY_LUA_TOP_H

#include <stdbool.h>

#include "unwind/capture/capture.h"
#include "unwind/elf/registers.h"
#include "unwind/lua/lua_walk.h"
#include "unwind/vm/vm_frame.h"

/*
 * A leaf in the VM's own code, whose C frame is cframe and linked to the
 * thread. False if no rule holds: then what is on top cannot be known.
 */
bool lua_top_in_vm(struct image *image, struct lua_objects *objects,
		   struct memory *stack, const struct lua_thread *thread, uint64_t cframe,
		   const struct registers *registers, struct lua_walk *ret_walk);

/* The same by what the interpreter holds, between its instructions. */
bool lua_top_by_registers(struct lua_objects *objects, struct memory *stack,
			  const struct lua_thread *thread, uint64_t cframe,
			  const struct vm_registers *vm, struct lua_walk *ret_walk);

/*
 * Native code called from the VM; frame is the VM's frame as the native walk
 * found it.
 */
bool lua_top_below_native(struct image *image, struct lua_objects *objects,
			  struct memory *stack, const struct lua_thread *thread, uint64_t cframe,
			  const struct registers *frame, struct lua_walk *ret_walk);

/* Nothing is known of the VM's registers: L->base, and the position that was saved last. */
bool lua_top_as_stored(struct lua_objects *objects, struct memory *stack,
		       const struct lua_thread *thread, uint64_t cframe, struct lua_walk *ret_walk);

/* vm_exit_interp: a trace was left, the stack is whole again, BASE and PC are set but PC not yet past. */
bool lua_top_leaving_trace(struct lua_objects *objects, const struct lua_thread *thread,
			   const struct registers *registers, struct lua_walk *ret_walk);

/*
 * The walk has come down to a frame that native code interrupted (a hook, a
 * finalizer, an error handler): the VM's C frame has saved its position.
 */
void lua_top_resume(struct lua_walk *walk, struct memory *stack, uint64_t cframe);

#endif
