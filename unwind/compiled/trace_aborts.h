/* SPDX-License-Identifier: MIT */
/*
 * trace_aborts: why LuaJIT has last failed to record a trace at a bytecode.
 *
 * The jit_State notes the 64 latest bytecodes whose recording was aborted (lj_trace.c,
 * penalty_pc): each with the reason, and with a penalty that doubles from abort to abort
 * until LuaJIT gives up. LuaJIT forgets them when it flushes all traces. They go by
 * address: code that has replaced other code at the same address takes over its reason.
 */
#ifndef LJSPY_TRACE_ABORTS_H
#define LJSPY_TRACE_ABORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/memory.h"
#include "unwind/lua/global_state.h"

enum { TRACE_ABORTS_MAX = 64 /* PENALTY_SLOTS */ };

struct trace_abort {
	uint64_t pc;        /* where recording began: a loop, or a function's first instruction */
	unsigned times;     /* how often it was aborted, until now or until LuaJIT gave up */
	const char *reason; /* static; NULL if the numbers of this build's reasons are unknown */
};

struct trace_aborts {
	struct trace_abort at[TRACE_ABORTS_MAX];
	size_t count;
};

/* Read the aborts of a global_State with a JIT compiler. False if they are unreadable or make no sense. */
bool trace_aborts_read(struct memory *live, const struct global_state *global,
		       struct trace_aborts *ret_aborts);

/* The abort at this bytecode; NULL if none is noted. */
const struct trace_abort *trace_aborts_find(const struct trace_aborts *aborts, uint64_t pc);

#endif
