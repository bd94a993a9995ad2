/* SPDX-License-Identifier: MIT */
/*
 * trace_listing: one trace as jit.dump prints it: bytecode, IR with snapshots, machine code.
 *
 * jit.dump prints bytecode while it is recorded. LuaJIT does not keep that; ljspy finds it
 * again (trace_path.h), and says where it cannot.
 */
#ifndef LJSPY_TRACE_LISTING_H
#define LJSPY_TRACE_LISTING_H

#include "unwind/jit/traces.h"
#include "unwind/listing/listing.h"
#include "unwind/lua/global_state.h"

struct trace_listing;

/* Of the trace with this number, which may not exist. NULL when memory is short. */
struct trace_listing *trace_listing_new(struct memory *live, const struct global_state *global,
					uint32_t number);
void trace_listing_free(struct trace_listing *listing);

/* While the target is held: copy the trace and all that its listing needs; replaces what it copied before. */
void trace_listing_read(struct trace_listing *listing);

/* The copied trace; NULL if there is none with that number. */
const struct trace *trace_listing_trace(const struct trace_listing *listing);

/* Make its lines. samples may be NULL. 0 or -ENOMEM. */
int trace_listing_make(struct trace_listing *listing, const struct listing_samples *samples,
		       struct listing *ret_listing);

#endif
