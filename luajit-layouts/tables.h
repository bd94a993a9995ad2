/* SPDX-License-Identifier: MIT */
/*
 * tables: the layouts that LuaJIT has had, as data.
 *
 * A build's layout consists of one row of each table. A row stands for every
 * revision between two dates in which that group of fields did not move. To
 * add a layout, add a row. LAYOUT_ABSENT marks fields that a revision does not
 * have; fields that no row mentions stay LAYOUT_UNKNOWN.
 */
#ifndef LJSPY_TABLES_H
#define LJSPY_TABLES_H

#include <stdbool.h>
#include <stddef.h>

#include "luajit-layouts/layout.h"

enum layout_mode {
	LAYOUT_X64_GC64, /* x86-64, LJ_GC64 */
	LAYOUT_X64_GC32, /* x86-64 with 32-bit references */
	LAYOUT_ARM64,
	LAYOUT_I386,
	LAYOUT_MODE_COUNT
};

/* mode as a bit: a row may serve several. */
#define LAYOUT_MODE(mode) (1u << (mode))

enum layout_group {
	LAYOUT_GROUP_OBJECT,
	LAYOUT_GROUP_CFRAME,
	LAYOUT_GROUP_GLOBAL,
	LAYOUT_GROUP_JIT, /* as built without LUAJIT_USE_GDBJIT */
	LAYOUT_GROUP_TRACE,
	LAYOUT_GROUP_THREAD,
	LAYOUT_GROUP_COUNT
};

struct layout_row {
	const char *name;              /* date, project and mode of the first revision it holds for */
	const char *from;              /* its sources, in words */
	unsigned modes;                /* LAYOUT_MODE() bits: a row may serve several */
	enum layout_bytecode bytecode; /* global and jit rows: numbering of its first revision */
	enum layout_vmstates vmstates; /* global rows: numbering of VM states */
	bool mcofs;                    /* jit and trace rows: do its revisions have SnapShot.mcofs? */
	struct layout offsets;         /* LAYOUT_UNKNOWN for fields of other groups */
};

size_t layout_row_count(enum layout_group group);

/* index is below layout_row_count(). The row's strings are constants. */
void layout_row_get(enum layout_group group, size_t index, struct layout_row *ret_row);

#endif
