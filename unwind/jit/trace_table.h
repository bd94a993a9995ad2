/* SPDX-License-Identifier: MIT */
/*
 * trace_table: map the machine code of one trace to Lua frames.
 *
 * ljspy makes the table once for a trace, from its path (trace_path.h) and the
 * alignment of its machine code (trace_code.h). Each piece of code gets the path point
 * that it was most likely compiled from. A frame of that point is certain if all points
 * that the code could belong to agree on it.
 */
#ifndef LJSPY_TRACE_TABLE_H
#define LJSPY_TRACE_TABLE_H

#include "unwind/trace/trace_code.h"
#include "unwind/trace/trace.h"
#include "unwind/lua/lua_objects.h"

struct trace_table;

/* NULL only when out of memory. A trace that makes no sense gets an empty table. code has szmcode bytes. */
struct trace_table *trace_table_new(const struct trace_numbers *numbers, const struct trace *trace,
				    const struct layout *layout, struct lua_objects *objects,
				    const uint8_t *code, const struct trace_exits *exits);
void trace_table_free(struct trace_table *table);

/* The table's memory in bytes. */
size_t trace_table_size(const struct trace_table *table);

/* The addresses of all frames' prototypes, owned by the table. */
const uint64_t *trace_table_protos(const struct trace_table *table, size_t *ret_count);

/* The frames at an offset of the code, as traces_frames() returns them; 0 if the table has none. */
size_t trace_table_frames(const struct trace_table *table, uint32_t offset, struct trace_frame *ret_frames,
			  size_t max);

/*
 * The earliest snapshot that the code at an offset may belong to. It may be known even if
 * the path is not. False if unknown, or if the base has moved.
 */
bool trace_table_snapshot(const struct trace_table *table, uint32_t offset, uint32_t *ret_snapshot);

#endif
