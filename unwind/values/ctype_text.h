/* SPDX-License-Identifier: MIT */
/*
 * ctype_text: how a C type reads, such as "struct conn *" or "int32_t[4]".
 *
 * Facts: lj_ctype.h (CType, CTInfo), lj_ctype.c (lj_ctype_repr).
 */
#ifndef LJSPY_CTYPE_TEXT_H
#define LJSPY_CTYPE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

enum { CTYPE_TEXT_SIZE = 256, CTYPE_NAME_SIZE = 128 };

/* What a CType is: the highest four bits of its info (lj_ctype.h). */
enum ctype_kind {
	CT_NUM = 0,
	CT_STRUCT,
	CT_PTR,
	CT_ARRAY,
	CT_VOID,
	CT_ENUM,
	CT_FUNC,
	CT_TYPEDEF,
	CT_ATTRIB,
};

struct ctype {
	uint32_t info, size;
	char name[CTYPE_NAME_SIZE]; /* empty if it has none */
};

static inline enum ctype_kind ctype_kind(const struct ctype *type)
{
	return (enum ctype_kind)(type->info >> 28);
}

/* The type that it is made of: what a pointer points to, and the like. */
static inline uint32_t ctype_child(const struct ctype *type)
{
	return type->info & 0xffff;
}

bool ctype_is_floating(const struct ctype *type);
bool ctype_is_unsigned(const struct ctype *type);

/* Where C types are looked up. get() is false for a number that no type has. */
struct ctypes {
	bool (*get)(void *context, uint32_t id, struct ctype *ret_type);
	void *context;
};

/* False if the type is unknown. "ctype" is the type of what ffi.typeof() returns. */
bool ctype_text(const struct ctypes *types, uint32_t id, char ret_text[static CTYPE_TEXT_SIZE]);

/*
 * The type of an object whose first four bytes these are, as LuaJIT names it: for what ffi.typeof() returned,
 * it tells which type that is, as in "ctype<struct conn>" (lj_ctype.c and lib_ffi.c: __tostring). False if it
 * is unknown.
 */
bool ctype_object_text(const struct ctypes *types, uint32_t id, uint32_t bytes,
		       char ret_text[static CTYPE_TEXT_SIZE]);

/* Is it the type of what ffi.typeof() returns? */
bool ctype_is_ctypeid(const struct ctypes *types, uint32_t id);

/* The type itself, without attributes and names that stand for another type. False if it is unknown. */
bool ctype_raw(const struct ctypes *types, uint32_t id, struct ctype *ret_type);

#endif
