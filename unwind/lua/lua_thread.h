/* SPDX-License-Identifier: MIT */
/*
 * lua_thread: a captured lua_State and its stack.
 *
 * A thread here is LuaJIT's: a coroutine or a main thread. ljspy copies the whole
 * stack: while the target is held, copying the stale slots above the top costs
 * less than finding the top.
 */
#ifndef LJSPY_LUA_THREAD_H
#define LJSPY_LUA_THREAD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "memory/snapshot.h"
#include "unwind/lua/global_state.h"
#include "unwind/lua/luajit.h"

enum {
	LUA_STATE_BYTES_MAX = 160,     /* no layout has a larger lua_State */
	LUA_STACK_BYTES_MAX = 1 << 20, /* LuaJIT's own limit is 65,500 slots of 8 bytes */
	CFRAMES_MAX = 4096,            /* C frames followed for one thread */
};

struct lua_thread {
	uint64_t address;
	struct global_state *global;
	const struct layout *layout;
	uint64_t base, top;
	uint64_t stack, stack_end; /* the allocated slots */
	uint64_t cframe;           /* innermost C frame: an interpreter's stack pointer; 0 if none */
	uint8_t status;
	uint64_t exdata,
		exdata2; /* the request and its context, 0 if unknown (unwind/nginx/light_threads.h) */
	uint64_t parent; /* the parked thread that it runs for (request_parent()); 0 if none */
	uint32_t request_context; /* a coroutine's phase (request_context()), 0 without a request; */
	bool has_request_context; /* ... whether that is known */
	const uint8_t *slots;     /* bytes of [stack, stack_end); NULL if not captured */
};

/*
 * Interpret a lua_State's bytes (layout->L_size of them). False if they
 * cannot be a thread of this global_State.
 */
bool lua_thread_load(struct lua_thread *thread, struct global_state *global, uint64_t address,
		     const uint8_t *bytes);

/* The same for any global_State, at *ret_g; thread->global is NULL. */
bool lua_thread_parse(struct lua_thread *thread, const struct layout *layout, uint64_t address,
		      const uint8_t *bytes, uint64_t *ret_g);

/* The states of coroutine.status() (lib_base.c), in more detail. */
enum coroutine_state {
	COROUTINE_SUSPENDED,
	COROUTINE_NOT_STARTED,
	COROUTINE_RUNNING,
	COROUTINE_NORMAL, /* active, and has resumed another coroutine */
	COROUTINE_ACTIVE, /* running or normal; the build does not tell which */
	COROUTINE_PARKED, /* active, but native code has left its C stack for another one (fibers) */
	COROUTINE_DEAD,
	COROUTINE_STATE_COUNT
};

/* Is a coroutine in this state in the midst of its work, on the stack of the thread that runs it? */
static inline bool coroutine_is_at_work(enum coroutine_state state)
{
	return state == COROUTINE_RUNNING || state == COROUTINE_NORMAL || state == COROUTINE_ACTIVE;
}

/* The thread's state. cur_L is the global_State's g->cur_L, or 0 if it has none. */
enum coroutine_state lua_thread_state(const struct lua_thread *thread, uint64_t cur_L);

/* Set thread->slots to its bytes in the snapshot. Call it when the snapshot is complete. */
void lua_thread_view(struct lua_thread *thread, struct snapshot *snapshot);

/*---- Frames: inline, as a walk asks for some hundred words ----*/

/* The base of the outermost frame: the dummy frame at the bottom of every thread. */
static inline uint64_t lua_thread_bottom(const struct lua_thread *thread)
{
	return thread->stack + frame_slots(thread->layout->gc64) * SLOT_SIZE;
}

/* Does a frame's base lie within the stack? */
static inline bool lua_thread_contains_base(const struct lua_thread *thread, uint64_t base)
{
	return base >= lua_thread_bottom(thread) && base <= thread->stack_end && base % SLOT_SIZE == 0;
}

/* The slot at an address. False if it is outside the stack, misaligned or not captured. */
static inline bool lua_thread_slot(const struct lua_thread *thread, uint64_t address, uint64_t *ret_value)
{
	if (!thread->slots || address < thread->stack || address >= thread->stack_end ||
	    thread->stack_end - address < SLOT_SIZE || address % SLOT_SIZE)
		return false;
	memcpy(ret_value, thread->slots + (address - thread->stack), sizeof(*ret_value));
	return true;
}

/* The frame link below a base (lj_frame.h: frame_ftsz, frame_pc). */
static inline bool lua_thread_link(const struct lua_thread *thread, uint64_t base, uint64_t *ret_link)
{
	uint64_t value;

	if (!lua_thread_slot(thread, base - SLOT_SIZE, &value))
		return false;
	*ret_link = thread->layout->gc64 ? value : value >> 32;
	return true;
}

/* The object in a frame's function slot. False if unreadable or, in GC64, neither function nor thread. */
bool lua_thread_function(const struct lua_thread *thread, uint64_t base, uint64_t *ret_object);

#endif
