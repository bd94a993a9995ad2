/* SPDX-License-Identifier: MIT */
/*
 * lua_thread: one lua_State and its stack, as captured.
 *
 * A thread here is LuaJIT's: a coroutine or a main thread. Its stack is
 * copied whole, since stale slots above the top cost less to copy than it
 * costs to find out, while the target is held, where the top is.
 */
#ifndef LJSPY_LUA_THREAD_H
#define LJSPY_LUA_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/snapshot.h"
#include "unwind/lua/global_state.h"

enum {
	LUA_STACK_BYTES_MAX = 1 << 20,	/* LuaJIT's own limit is 65,500 slots of 8 bytes */
	CFRAMES_MAX = 4096,		/* C frames of one thread that are followed */
};

struct lua_thread {
	uint64_t address;
	struct global_state *global;
	const struct layout *layout;
	uint64_t base, top;
	uint64_t stack, stack_end;	/* the slots that exist */
	uint64_t cframe;		/* innermost C frame: an interpreter's stack pointer; 0 if none */
	uint8_t status;
	uint64_t exdata, exdata2;	/* a program's own; 0 in builds without */
	uint64_t parent;		/* the parked thread that it runs for, see request_parent(); 0 if none */
	uint32_t request_context;	/* of a coroutine: see request_context(), */
	bool has_request_context;	/* ... and whether it is known */
	const uint8_t *slots;		/* bytes of [stack, stack_end); NULL if not captured */
};

/*
 * Interpret a lua_State's bytes (layout->L_size of them). False if they
 * cannot be a thread of this global_State.
 */
bool lua_thread_load(struct lua_thread *thread, struct global_state *global,
		     uint64_t address, const uint8_t *bytes);

/* As coroutine.status() has it (lib_base.c), which tells less. */
enum coroutine_state {
	COROUTINE_SUSPENDED,
	COROUTINE_NOT_STARTED,
	COROUTINE_RUNNING,
	COROUTINE_NORMAL,	/* active, and has resumed another one */
	COROUTINE_ACTIVE,	/* one of the two before, where the build does not tell which */
	COROUTINE_DEAD,
	COROUTINE_STATE_COUNT
};

/* cur_L is the global_State's, 0 if it has none. */
enum coroutine_state lua_thread_state(const struct lua_thread *thread, uint64_t cur_L);

/* Find the slots in the snapshot; to be called when it changes no more. */
void lua_thread_view(struct lua_thread *thread, struct snapshot *snapshot);

/* Does a frame's base lie within the stack? */
bool lua_thread_holds_base(const struct lua_thread *thread, uint64_t base);

/* A slot by address; false outside of the stack or if misaligned. */
bool lua_thread_slot(const struct lua_thread *thread, uint64_t address, uint64_t *ret_value);

/* The frame link below a base (lj_frame.h: frame_ftsz, frame_pc). */
bool lua_thread_link(const struct lua_thread *thread, uint64_t base, uint64_t *ret_link);

/* The object in a frame's function slot; false if it is no function and no thread. */
bool lua_thread_function(const struct lua_thread *thread, uint64_t base, uint64_t *ret_object);

/* The base of the outermost frame: the dummy frame that every thread starts with. */
uint64_t lua_thread_bottom(const struct lua_thread *thread);

#endif
