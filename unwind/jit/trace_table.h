/* SPDX-License-Identifier: MIT */
/*
 * trace_table: from the machine code of one trace to Lua frames.
 *
 * Made once for a trace, from its path (trace_path.h) and the alignment of
 * its machine code (trace_code.h). Each piece of code gets the point of the
 * path that it was most likely compiled from. Which of a point's frames are
 * certain is another question: those on which all points agree that the code
 * could possibly belong to.
 */
#ifndef LJSPY_TRACE_TABLE_H
#define LJSPY_TRACE_TABLE_H

#include "unwind/jit/trace_code.h"
#include "unwind/jit/traces.h"
#include "unwind/lua/lua_objects.h"

struct trace_table;

/* Never NULL but when memory is short; a trace that cannot be understood has an empty table. */
struct trace_table *trace_table_new(const struct traces *traces, const struct trace *trace,
				    const struct layout *layout, struct lua_objects *objects,
				    const uint8_t *code, trace_exit_number exit_number,
				    const void *context);
void trace_table_free(struct trace_table *table);

/* Bytes of memory that it takes. */
size_t trace_table_size(const struct trace_table *table);

/* The prototypes of all its frames; owned by it. */
const uint64_t *trace_table_protos(const struct trace_table *table, size_t *ret_count);

/* The frames at an offset of the code, as traces_frames(); 0 if the table does not tell. */
size_t trace_table_frames(const struct trace_table *table, uint32_t offset,
			  struct trace_frame *ret_frames, size_t max);

/* The earliest snapshot that the code at an offset may belong to: known also when the path is not. */
bool trace_table_snapshot(const struct trace_table *table, uint32_t offset, uint32_t *ret_snapshot);

#endif
