/* SPDX-License-Identifier: MIT */
/*
 * trace_list: list the traces of one global_State.
 *
 * ljspy reads the list in batches while the target is held. Later batches may be newer.
 * Facts: lj_jit.h (GCtrace, TraceLink), lj_record.c (lj_record_setup).
 */
#ifndef LJSPY_TRACE_LIST_H
#define LJSPY_TRACE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/memory.h"
#include "unwind/lua/lua_objects.h"
#include "unwind/lua/global_state.h"

enum { TRACE_LIST_BATCH = 256 };

enum trace_kind {
	TRACE_ROOT,
	TRACE_SIDE,     /* starts at an exit of its parent */
	TRACE_STITCHED, /* continues after a call that its parent could not compile */
	TRACE_KIND_COUNT
};

/* How a trace ends; LuaJIT's own numbers. */
enum trace_linktype {
	TRACE_LINK_NONE,
	TRACE_LINK_ROOT,
	TRACE_LINK_LOOP,
	TRACE_LINK_TAILREC,
	TRACE_LINK_UPREC,
	TRACE_LINK_DOWNREC,
	TRACE_LINK_INTERP,
	TRACE_LINK_RETURN,
	TRACE_LINK_STITCH,
	TRACE_LINK_COUNT
};

struct trace_summary {
	uint32_t number;
	uint64_t address; /* of the GCtrace */
	uint64_t mcode;
	uint32_t szmcode; /* bytes */
	enum trace_kind kind;
	uint32_t root;   /* a side trace's root */
	uint32_t parent; /* of a side trace; of a stitched one if known; else 0 */
	uint32_t exitno; /* the parent's exit where a side trace starts */
	enum trace_linktype linktype;
	uint32_t link;         /* number of the trace that it links to; 0 if none */
	uint32_t snapshots;    /* also the number of exits */
	uint32_t instructions; /* IR instructions, without constants */
	uint64_t startpt, startpc;
};

/*
 * Read the compiled traces from number *next on, from at most TRACE_LIST_BATCH numbers.
 * Set *next to the number to continue at, 0 at the end. False if J cannot be read.
 */
bool trace_list_read(struct memory *live, const struct global_state *global, uint32_t *next,
		     struct trace_summary ret_traces[static TRACE_LIST_BATCH], size_t *ret_count);

/* What the compiler may use (jit.opt), and has; sizes in bytes. */
struct trace_limits {
	uint64_t mcode_allocated, mcode_max; /* machine code areas; maxmcode */
	uint64_t mcode_area;                 /* one more of them; sizemcode */
	uint32_t hotexit;                    /* an exit taken so often begins a side trace */
};

bool trace_list_limits(struct memory *live, const struct global_state *global,
		       struct trace_limits *ret_limits);

#endif
