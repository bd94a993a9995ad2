/* SPDX-License-Identifier: MIT */
/*
 * not_compiled: places in the bytecode where LuaJIT does not begin a trace, and why.
 *
 * Facts: lj_trace.c (trace_start, blacklist_pc, penalty_pc), lj_obj.h (GCproto.flags).
 */
#ifndef LJSPY_NOT_COMPILED_H
#define LJSPY_NOT_COMPILED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/memory.h"
#include "unwind/compiled/trace_aborts.h"
#include "unwind/lua/lua_objects.h"

enum { NOT_COMPILED_MAX = 64 /* places in a prototype */ };

enum not_compiled_cause {
	NOT_COMPILED_BLACKLISTED, /* recording has failed too often: never again */
	NOT_COMPILED_ABORTED,     /* recording has failed: again when it is hot again */
	NOT_COMPILED_OFF,         /* jit.off() for the whole function */
};

struct not_compiled {
	uint64_t pc; /* a loop, or the function's first instruction */
	bool is_loop;
	enum not_compiled_cause cause;
	const char *reason; /* of the last failure, static; NULL if it is not known any more */
	unsigned times;     /* how often recording has failed; 0 if that is not known any more */
};

/* What a glance at a prototype shows. */
enum not_compiled_glance {
	NOT_COMPILED_NOWHERE, /* also of an unreadable prototype */
	NOT_COMPILED_SOMEWHERE,
	NOT_COMPILED_EVERYWHERE, /* jit.off() */
};

/* Tell which prototypes may have such places, with little reading: the target is held. */
void not_compiled_glance(struct memory *live, const struct layout *layout, const struct trace_aborts *aborts,
			 const uint64_t *protos, size_t count, enum not_compiled_glance *ret_glances);

/* Find the places in a prototype. Return how many. */
size_t not_compiled_find(const struct layout *layout, const struct proto *proto,
			 const struct trace_aborts *aborts, enum not_compiled_glance glance,
			 struct not_compiled ret_places[static NOT_COMPILED_MAX]);

#endif
