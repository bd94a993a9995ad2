/* SPDX-License-Identifier: MIT */
/*
 * lua_top: find the innermost Lua frame.
 *
 * The VM stores L->base and SAVE_PC only around some calls out of it. In
 * between, its registers hold the current values; while a call or return is
 * half done, they disagree. The rules, and the order in which to try them,
 * come from single-stepping real builds.
 *
 * Each function sets ret_walk to the innermost frame; it returns false if no
 * rule holds.
 */
#ifndef LJSPY_LUA_TOP_H
#define LJSPY_LUA_TOP_H

#include <stdbool.h>

#include "unwind/capture/capture.h"
#include "unwind/elf/registers.h"
#include "unwind/lua/lua_walk.h"
#include "unwind/vm/vm_frame.h"

/* The thread to find it of, and what it is read by. */
struct lua_running {
	const struct lua_thread *thread;
	uint64_t cframe; /* the thread's C frame */
	struct lua_objects *objects;
	struct memory *stack; /* the copied native stack */
};

/*
 * The leaf is in the VM's own code, and its C frame is cframe, linked to the
 * thread. If this is false, the innermost frame cannot be known.
 */
bool lua_top_in_vm(const struct lua_running *running, struct image *image, const struct registers *registers,
		   struct lua_walk *ret_walk);

/* The same by the interpreter's registers, between its instructions. */
bool lua_top_by_registers(const struct lua_running *running, const struct vm_registers *vm,
			  struct lua_walk *ret_walk);

/*
 * The VM called native code; frame has the VM's registers as the native walk
 * found them.
 */
bool lua_top_below_native(const struct lua_running *running, struct image *image,
			  const struct registers *frame, struct lua_walk *ret_walk);

/* The VM's registers are unknown: by L->base and the position saved last. */
bool lua_top_as_stored(const struct lua_running *running, struct lua_walk *ret_walk);

/* vm_exit_interp: the trace is left, the stack whole, BASE set, and PC at the instruction, not past it. */
bool lua_top_leaving_trace(const struct lua_running *running, const struct registers *registers,
			   struct lua_walk *ret_walk);

/*
 * The walk has come down to a frame that native code interrupted (a hook, a
 * finalizer, an error handler): set the walk's pc to what the VM's C frame saved.
 */
void lua_top_resume(struct lua_walk *walk, struct memory *stack, uint64_t cframe);

#endif
