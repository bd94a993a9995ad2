/* SPDX-License-Identifier: MIT */
/*
 * luajit: LuaJIT's encoding of values and frame links.
 *
 * These encodings are the same in every release, except for the difference
 * between GC64 and GC32, so no layout holds them. Names are LuaJIT's (lj_obj.h,
 * lj_frame.h).
 */
#ifndef LJSPY_LUAJIT_H
#define LJSPY_LUAJIT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "luajit-layouts/field.h"
#include "luajit-layouts/layout.h"

enum { SLOT_SIZE = 8 };     /* sizeof(TValue) */
enum { BYTECODE_SIZE = 4 }; /* sizeof(BCIns) */

/* GCfunc.ffid */
enum { FF_LUA = 0, FF_C = 1 };

/* Value tags, as lj_obj.h's ~n. */
enum {
	TAG_NIL = ~0,
	TAG_LIGHTUD = ~3,
	TAG_STR = ~4,
	TAG_THREAD = ~6,
	TAG_PROTO = ~7,
	TAG_FUNC = ~8,
	TAG_TAB = ~11,
	TAG_UDATA = ~12,
	TAG_NUMBER = ~13, /* GC64: also of integers; numbers have lower tags */
	TAG_INTEGER_GC32 = (int32_t)0xfffeffff,
};

/* g->gc.state (lj_gc.h). */
enum {
	GCSpause,
	GCSpropagate,
	GCSatomic,
	GCSsweepstring,
	GCSsweep,
	GCSfinalize,
};

enum { HOOK_GC = 0x40 }; /* of g->hookmask: a finalizer runs (lj_obj.h) */

/* lua_State.status: a higher value means that the thread ended with an error (lua.h). */
enum { LUA_YIELD = 1 };

/* Frame types: the low bits of a frame link (lj_frame.h). */
enum {
	FRAME_LUA_MASK = 3, /* both bits clear: the link is a bytecode pc */
	FRAME_TYPE_P = 7,
	FRAME_C = 1,
	FRAME_CONT = 2,
	FRAME_VARG = 3,
	FRAME_CP = 5,
	FRAME_PCALL = 6,
	FRAME_PCALLH = 7,
};

/* Special continuations (LJ_CONT_*). */
enum { CONT_TAILCALL = 0, CONT_FFI_CALLBACK = 1 };

/* GCproto.firstline of library functions that LuaJIT has in Lua (lib_*.c: LJLIB_LUA). */
static const uint32_t FIRSTLINE_BUILTIN = UINT32_MAX;

/* GCproto.flags. PROTO_CHILD: it makes closures, which may assign its variables. */
enum { PROTO_CHILD = 0x01, PROTO_VARARG = 0x02 };

/*
 * Since 2020, a light userdata on a 64-bit machine has so many lower bits of its pointer (lj_obj.h:
 * lightudV). Above them is the index of an element of the array at g->gc.lightudseg, whose 32 bits are the
 * pointer's upper half.
 */
enum { LIGHTUD_BITS_LO = 39 };

enum { CFRAME_FLAGS = 3 }; /* low bits of L->cframe; the rest is the stack pointer */

/* A little-endian integer of size bytes (at most 8) in a copy of an object. */
static inline uint64_t load_bytes(const uint8_t *bytes, int32_t offset, unsigned size)
{
	uint64_t value = 0;

	memcpy(&value, bytes + offset, size);
	return value;
}

/*
 * Distance of g->gc.mmudata from g. Before it come gc.root, sweep, gray, grayagain and weak (lj_obj.h:
 * GCState).
 */
static inline uint64_t gc_mmudata_offset(const struct layout *layout)
{
	enum { REFERENCES = 5 };

	return (uint64_t)layout->g_gc_root + REFERENCES * (uint64_t)layout_ref_size(layout);
}

/*
 * Distance of g->gc.estimate from g. Behind gc.root come sweep, gray, grayagain, weak, mmudata, debt and
 * estimate, all of a reference's size; 2.0 has stepmul (32 bits) before debt (lj_obj.h: GCState).
 */
static inline uint64_t gc_estimate_offset(const struct layout *layout)
{
	enum { REFERENCES = 7 };

	return (uint64_t)layout->g_gc_root + REFERENCES * (uint64_t)layout_ref_size(layout) +
	       (layout->bytecode == BYTECODE_V20 ? sizeof(uint32_t) : 0);
}

/*
 * What the allocator was asked for: a table with its colocated array, and its parts (lj_tab.c: newtab,
 * lj_tab_free).
 */
struct table_sizes {
	uint64_t table, hash, array;
};

/* colo is GCtab.colo: slots of a colocated array; its sign says that the array has moved out. */
static inline struct table_sizes table_sizes(const struct layout *layout, uint64_t asize, uint64_t hmask,
					     uint8_t colo)
{
	const uint8_t moved_out = 0x80;

	return (struct table_sizes){
		.table = (uint64_t)layout->GCtab_size + (uint64_t)(colo & ~moved_out) * SLOT_SIZE,
		.hash = hmask ? (hmask + 1) * (uint64_t)layout->Node_size : 0,
		.array = colo == 0 || (colo & moved_out) ? asize * SLOT_SIZE : 0,
	};
}

/* What the allocator was asked for a function (lj_func.c: func_newL, lj_func_newC). */
static inline uint64_t function_size(const struct layout *layout, uint64_t ffid, uint64_t upvalues)
{
	return ffid == FF_LUA ? (uint64_t)layout->GCfuncL_uvptr + upvalues * layout_ref_size(layout)
			      : (uint64_t)layout->GCfuncC_upvalue + upvalues * SLOT_SIZE;
}

/* The tag of a tagged value. */
static inline int32_t tvalue_tag(bool gc64, uint64_t value)
{
	return gc64 ? (int32_t)((int64_t)value >> 47) : (int32_t)(value >> 32);
}

/* The object of a tagged value that holds one. */
static inline uint64_t tvalue_object(bool gc64, uint64_t value)
{
	return gc64 ? value & (((uint64_t)1 << 47) - 1) : value & UINT32_MAX;
}

/* Could an object be there? */
static inline bool may_be_object(bool gc64, uint64_t address)
{
	return address % SLOT_SIZE == 0 && address != 0 && address == tvalue_object(gc64, address);
}

/* Is the value a number? An integer has the tag itself, a double a lower one. */
static inline bool tvalue_is_number(bool gc64, uint64_t value, bool *ret_is_integer)
{
	int32_t tag = tvalue_tag(gc64, value), integer = gc64 ? TAG_NUMBER : TAG_INTEGER_GC32;

	*ret_is_integer = tag == integer;
	return (uint32_t)tag <= (uint32_t)integer;
}

/* An integer from 0 to 2^30 - 1, which may be kept as a double. False if the value is none. */
static inline bool tvalue_integer(bool gc64, uint64_t value, uint32_t *ret_integer)
{
	bool is_integer;
	double number;

	if (!tvalue_is_number(gc64, value, &is_integer))
		return false;
	memcpy(&number, &value, sizeof(number));
	if (is_integer)
		number = (int32_t)(uint32_t)value;
	if (!(number >= 0 && number < 1 << 30) || (uint32_t)number != number)
		return false;
	*ret_integer = (uint32_t)number;
	return true;
}

/* The lower 47 bits of a light userdata: a pointer, or a segment's number and what LIGHTUD_BITS_LO says. */
static inline bool tvalue_light_userdata(bool gc64, uint64_t value, uint64_t *ret_bits)
{
	bool is_one = gc64 ? tvalue_tag(true, value) == TAG_LIGHTUD : (int64_t)value >> 47 == -2;

	if (is_one)
		*ret_bits = value & (((uint64_t)1 << 47) - 1);
	return is_one;
}

/* Slots of a call frame below its base. */
static inline unsigned frame_slots(bool gc64)
{
	return gc64 ? 2 : 1;
}

#endif
