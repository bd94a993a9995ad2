/* SPDX-License-Identifier: MIT */
/*
 * trace_copy: copy one trace of a list, with its IR and snapshots, to look into it.
 */
#ifndef LJSPY_TRACE_COPY_H
#define LJSPY_TRACE_COPY_H

#include <stdbool.h>

#include "luajit-layouts/layout.h"
#include "memory/memory.h"
#include "unwind/compiled/trace_list.h"
#include "unwind/trace/trace.h"

/*
 * Copy the block of a trace. False if it cannot be read or is another trace by now.
 * ret_trace->bytes is the caller's to free, with trace_copy_clear().
 */
bool trace_copy_read(struct memory *live, const struct layout *layout, const struct trace_summary *summary,
		     struct trace *ret_trace);
void trace_copy_clear(struct trace *trace);

#endif
