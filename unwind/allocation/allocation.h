/* SPDX-License-Identifier: MIT */
/*
 * allocation: what does LuaJIT allocate at this moment?
 *
 * LuaJIT gets all memory of its heap by g->allocf, which lj_mem_realloc() and lj_mem_newgco() call
 * (lj_gc.c). A stack that is inside of that call tells who allocates; but how much, and what for, the code
 * says only after the call: it adds the size to g->gc.total, and writes the object's type into its header.
 * So this room runs the code on from there, on the copy of the thread, as if the call had returned.
 */
#ifndef LJSPY_ALLOCATION_H
#define LJSPY_ALLOCATION_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/capture/capture.h"
#include "unwind/elf/image.h"
#include "unwind/lua/lua_objects.h"
#include "unwind/native/native.h"
#include "unwind/native/vm_decoder.h"

enum allocation_kind {
	ALLOCATION_STRING,
	ALLOCATION_UPVALUE,
	ALLOCATION_THREAD,
	ALLOCATION_PROTO,
	ALLOCATION_FUNCTION,
	ALLOCATION_TRACE,
	ALLOCATION_CDATA,
	ALLOCATION_TABLE,
	ALLOCATION_USERDATA,
	/* No objects: */
	ALLOCATION_ARRAY,        /* a table's array part, new or grown */
	ALLOCATION_HASH,         /* a table's hash part, likewise */
	ALLOCATION_STACK,        /* a coroutine's Lua stack */
	ALLOCATION_STRING_TABLE, /* see allocated.h: it does not count */
	ALLOCATION_OTHER,        /* buffers, and what LuaJIT has for itself */
	ALLOCATION_KINDS
};

/* An object that the collector knows, not a part of one. */
static inline bool allocation_is_object(enum allocation_kind kind)
{
	return kind < ALLOCATION_ARRAY;
}

/* Is it put on a list, where new ones can be counted? Only strings are not. */
static inline bool allocation_is_listed(enum allocation_kind kind)
{
	return allocation_is_object(kind) && kind != ALLOCATION_STRING;
}

struct allocation {
	enum allocation_kind kind;
	uint64_t bytes;     /* by which g->gc.total grows; not 0. See allocation_without_old_part() */
	uint64_t table;     /* address, whose part it is; else 0 */
	bool is_first_part; /* allocation_without_old_part(): that table had none */
	uint64_t prototype; /* address, of a function in Lua; else 0 */
	uint32_t ctype;     /* number, of a cdata; 0 if unknown */
	const struct global_state *global;
};

struct allocation_source {
	const struct capture *capture; /* of the thread; its stack has been merged */
	struct image *image;
	struct lua_objects *objects;
	struct native_unwinder *native; /* gets used: its walk is over */
	struct vm_decoder *decoder;
};

/* The collector's counters at one look: see allocated.h. */
struct allocation_counters;

/*
 * Subtract from the new hash part of a table that grows its old one, which LuaJIT frees in the same step
 * (lj_tab.c: lj_tab_resize). held was read when the thread was captured. Of the newest object it tells the
 * old part; the hash part of any other table has grown, and hash parts double. True if the table is new, and
 * its part, too.
 */
bool allocation_without_old_part(struct allocation *allocation, const struct allocation_counters *held);

/* False if the thread was not inside of a call of g->allocf that allocates. */
bool allocation_in_flight(const struct allocation_source *source, struct allocation *ret_allocation);

#endif
