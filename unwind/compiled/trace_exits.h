/* SPDX-License-Identifier: MIT */
/*
 * trace_exits: how often the exits of a trace were taken.
 *
 * LuaJIT counts an exit each time that it goes back to the interpreter there. From the
 * time hotexit on it tries to record a side trace; once that is made, the exit leads to it
 * and is no longer counted (lj_trace.c, trace_hotside; lj_jit.h, SnapShot.count).
 */
#ifndef LJSPY_TRACE_EXITS_H
#define LJSPY_TRACE_EXITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luajit-layouts/layout.h"
#include "memory/memory.h"
#include "unwind/compiled/trace_list.h"

enum { TRACE_EXITS_MAX = 512 /* of a trace; LuaJIT's maxsnap is 500 */ };

struct trace_exit {
	uint32_t number;
	uint32_t taken;     /* how often, in all */
	bool has_side;      /* a side trace was made: taken is not known */
	uint64_t proto, pc; /* where the interpreter goes on; 0 if unknown */
};

/* The exits of a trace that were taken. False if it cannot be read or is another trace by now. */
bool trace_exits_read(struct memory *live, const struct layout *layout, const struct trace_summary *trace,
		      struct trace_exit ret_exits[static TRACE_EXITS_MAX], size_t *ret_count);

#endif
