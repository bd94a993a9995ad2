/* SPDX-License-Identifier: MIT */
#include "luajit-layouts/tables.h"

/*
 * Each table is text, included into an array whose elements have exactly the
 * fields of its group. Rows name their fields.
 */
#define ROW_HEAD \
	const char *name, *from; \
	unsigned modes; \
	enum layout_bytecode bytecode; \
	enum layout_vmstates vmstates; \
	bool mcofs;
#define ROW_MEMBER(structure, field) int32_t structure##_##field;

static const struct object_row {
	ROW_HEAD LAYOUT_OBJECT_FIELDS(ROW_MEMBER)
} object_rows[] = {
#include "luajit-layouts/rows/object.inc"
};
static const struct cframe_row {
	ROW_HEAD LAYOUT_CFRAME_FIELDS(ROW_MEMBER)
} cframe_rows[] = {
#include "luajit-layouts/rows/cframe.inc"
};
static const struct global_row {
	ROW_HEAD LAYOUT_GLOBAL_FIELDS(ROW_MEMBER)
} global_rows[] = {
#include "luajit-layouts/rows/global.inc"
};
static const struct jit_row {
	ROW_HEAD LAYOUT_JIT_FIELDS(ROW_MEMBER)
} jit_rows[] = {
#include "luajit-layouts/rows/jit.inc"
};
static const struct trace_row {
	ROW_HEAD LAYOUT_TRACE_FIELDS(ROW_MEMBER)
} trace_rows[] = {
#include "luajit-layouts/rows/trace.inc"
};
static const struct thread_row {
	ROW_HEAD LAYOUT_THREAD_FIELDS(ROW_MEMBER)
} thread_rows[] = {
#include "luajit-layouts/rows/thread.inc"
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

size_t layout_row_count(enum layout_group group)
{
	switch (group) {
	case LAYOUT_GROUP_OBJECT: return COUNT(object_rows);
	case LAYOUT_GROUP_CFRAME: return COUNT(cframe_rows);
	case LAYOUT_GROUP_GLOBAL: return COUNT(global_rows);
	case LAYOUT_GROUP_JIT: return COUNT(jit_rows);
	case LAYOUT_GROUP_TRACE: return COUNT(trace_rows);
	case LAYOUT_GROUP_THREAD: return COUNT(thread_rows);
	case LAYOUT_GROUP_COUNT: break;
	}
	return 0;
}

#define COPY_HEAD(ret, row) \
	do { \
		(ret)->name = (row)->name; \
		(ret)->from = (row)->from; \
		(ret)->modes = (row)->modes; \
		(ret)->bytecode = (row)->bytecode; \
		(ret)->vmstates = (row)->vmstates; \
		(ret)->mcofs = (row)->mcofs; \
	} while (0)
#define COPY_FIELD(structure, field) ret_row->offsets.structure##_##field = row->structure##_##field;
#define COPY_ROW(rows, FIELDS) \
	do { \
		const __typeof__((rows)[0]) *row = &(rows)[index]; \
		COPY_HEAD(ret_row, row); \
		FIELDS(COPY_FIELD) \
	} while (0)

void layout_row_get(enum layout_group group, size_t index, struct layout_row *ret_row)
{
	layout_clear(&ret_row->offsets);
	switch (group) {
	case LAYOUT_GROUP_OBJECT: COPY_ROW(object_rows, LAYOUT_OBJECT_FIELDS); break;
	case LAYOUT_GROUP_CFRAME: COPY_ROW(cframe_rows, LAYOUT_CFRAME_FIELDS); break;
	case LAYOUT_GROUP_GLOBAL: COPY_ROW(global_rows, LAYOUT_GLOBAL_FIELDS); break;
	case LAYOUT_GROUP_JIT: COPY_ROW(jit_rows, LAYOUT_JIT_FIELDS); break;
	case LAYOUT_GROUP_TRACE: COPY_ROW(trace_rows, LAYOUT_TRACE_FIELDS); break;
	case LAYOUT_GROUP_THREAD: COPY_ROW(thread_rows, LAYOUT_THREAD_FIELDS); break;
	case LAYOUT_GROUP_COUNT: break;
	}
}
