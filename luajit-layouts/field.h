/* SPDX-License-Identifier: MIT */
/*
 * field: reads one field of a LuaJIT object.
 */
#ifndef LJSPY_FIELD_H
#define LJSPY_FIELD_H

#include <stdbool.h>
#include <stdint.h>

#include "luajit-layouts/layout.h"
#include "memory/memory.h"

/* An integer of size bytes (1, 2, 4 or 8), zero-extended; false when it cannot be read. */
bool field_read(struct memory *memory, uint64_t address, unsigned size, uint64_t *ret);

/* A GCRef or MRef; false when it cannot be read. */
bool field_reference(struct memory *memory, const struct layout *layout, uint64_t address, uint64_t *ret);

/* The type of the object at address (GCT_*): the complement of its tag. False when it cannot be read. */
bool field_gct(struct memory *memory, const struct layout *layout, uint64_t address, uint8_t *ret);

/* GCobj types (gct in lj_obj.h: ~LJ_TSTR and so on). */
enum {
	GCT_STRING = 4,
	GCT_UPVALUE = 5,
	GCT_THREAD = 6,
	GCT_PROTO = 7,
	GCT_FUNCTION = 8,
	GCT_TRACE = 9,
	GCT_CDATA = 10,
	GCT_TABLE = 11,
	GCT_USERDATA = 12,
};

#endif
