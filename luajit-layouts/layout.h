/* SPDX-License-Identifier: MIT */
/*
 * layout: where one LuaJIT build keeps its fields.
 *
 * Fields have LuaJIT's names, with an underscore for the dot:
 * GCproto.firstline is layout->GCproto_firstline. Offsets are in bytes from the
 * start of the structure; LAYOUT_ABSENT where the build has no such field.
 * Sources: lj_obj.h, lj_jit.h, lj_frame.h, lj_dispatch.h and vm_x64.dasc /
 * vm_x86.dasc of the build's revision.
 */
#ifndef LJSPY_LAYOUT_H
#define LJSPY_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	LAYOUT_ABSENT = -1,  /* the build has no such field */
	LAYOUT_UNKNOWN = -2, /* only while ljspy gathers evidence */
	LAYOUT_NAME_MAX = 64,
	LAYOUT_TRACE_HEADER_MAX = 152, /* a GCtrace is no larger, in bytes */
	LAYOUT_OBJECT_MAX = 256,       /* other objects and lua_State are no larger; g and J are */
};

/*
 * Every field, once: X(structure, field). The fields of a group changed
 * together in LuaJIT's history. Code that visits all fields (to print, compare,
 * load or mutate them) expands these lists.
 *
 * g is global_State, J is jit_State, L is lua_State, GG is the GG_State that
 * holds g, J and the dispatch table; GG_J and GG_dispatch are distances from
 * g. CFRAME offsets are from the interpreter's stack pointer, which is also
 * raw(L->cframe). IR_KGC is the number of that IR opcode.
 */

/* A structure to a line. */
/* clang-format off */

/* The same in every release; they depend only on the width of references. */
#define LAYOUT_OBJECT_FIELDS(X) \
	X(L, status) X(L, glref) X(L, base) X(L, top) X(L, maxstack) \
	X(L, stack) X(L, openupval) X(L, env) X(L, cframe) X(L, stacksize) \
	X(GChead, nextgc) X(GChead, marked) X(GChead, gct) \
	X(GCfunc, ffid) X(GCfunc, nupvalues) X(GCfunc, env) X(GCfunc, pc) \
	X(GCfuncC, f) X(GCfuncC, upvalue) X(GCfuncL, uvptr) \
	X(GCproto, numparams) X(GCproto, framesize) X(GCproto, sizebc) \
	X(GCproto, k) X(GCproto, uv) X(GCproto, sizekgc) X(GCproto, sizekn) \
	X(GCproto, sizept) X(GCproto, sizeuv) X(GCproto, flags) \
	X(GCproto, trace) X(GCproto, chunkname) X(GCproto, firstline) \
	X(GCproto, numline) X(GCproto, lineinfo) X(GCproto, uvinfo) \
	X(GCproto, varinfo) X(GCproto, size) \
	X(GCtab, colo) X(GCtab, array) X(GCtab, metatable) X(GCtab, node) \
	X(GCtab, asize) X(GCtab, hmask) X(GCtab, size) \
	X(Node, val) X(Node, key) X(Node, next) X(Node, size) \
	X(GCudata, env) X(GCudata, len) X(GCudata, metatable) X(GCudata, size) \
	X(GCupval, closed) X(GCupval, tv) X(GCupval, v) X(GCupval, size)

/* The end of lua_State, where forks add fields. */
#define LAYOUT_THREAD_FIELDS(X) \
	X(L, exdata) X(L, exdata2) X(L, size)

/* strhash, strmask, strnum are str.tab, str.mask, str.num since June 2020. */
#define LAYOUT_GLOBAL_FIELDS(X) \
	X(GCstr, len) X(GCstr, size) \
	X(g, gc_total) X(g, gc_state) X(g, gc_root) X(g, strhash) \
	X(g, strmask) X(g, strnum) X(g, hookmask) X(g, vmstate) \
	X(g, mainthref) X(g, tmpbuf_L) X(g, jit_L) X(g, registrytv) \
	X(g, bc_cfunc_int) X(g, cur_L) X(g, jit_base) X(g, ctype_state) \
	X(g, gcroot) X(g, vmthref)

#define LAYOUT_TRACE_FIELDS(X) \
	X(GCtrace, nsnap) X(GCtrace, nins) X(GCtrace, ir) X(GCtrace, nk) \
	X(GCtrace, nsnapmap) X(GCtrace, snap) X(GCtrace, snapmap) \
	X(GCtrace, startpt) X(GCtrace, startpc) X(GCtrace, startins) \
	X(GCtrace, szmcode) X(GCtrace, mcode) X(GCtrace, mcloop) \
	X(GCtrace, nchild) X(GCtrace, spadjust) X(GCtrace, traceno) \
	X(GCtrace, link) X(GCtrace, root) X(GCtrace, nextroot) \
	X(GCtrace, nextside) X(GCtrace, topslot) X(GCtrace, linktype) \
	X(GCtrace, size) \
	X(SnapShot, mapofs) X(SnapShot, ref) X(SnapShot, mcofs) \
	X(SnapShot, nslots) X(SnapShot, topslot) X(SnapShot, nent) \
	X(SnapShot, count) X(SnapShot, size)

/* Distances from g; every build option moves them. */
#define LAYOUT_GG_FIELDS(X) \
	X(GG, J) X(GG, dispatch)

#define LAYOUT_JIT_FIELDS(X) \
	X(J, L) X(J, pc) X(J, fn) X(J, pt) X(J, state) X(J, trace) \
	X(J, sizetrace) X(J, exitstubgroup) X(J, startpc) X(J, parent) \
	X(J, exitno) X(J, mcarea) X(J, szmcarea) X(IR, KGC)

#define LAYOUT_CFRAME_FIELDS(X) \
	X(CFRAME, MULTRES) X(CFRAME, NRES) X(CFRAME, ERRF) X(CFRAME, L) \
	X(CFRAME, PC) X(CFRAME, PREV) X(CFRAME, size)

#define LAYOUT_FIELDS(X) \
	LAYOUT_OBJECT_FIELDS(X) LAYOUT_THREAD_FIELDS(X) LAYOUT_GLOBAL_FIELDS(X) \
	LAYOUT_TRACE_FIELDS(X) LAYOUT_GG_FIELDS(X) LAYOUT_JIT_FIELDS(X) \
	LAYOUT_CFRAME_FIELDS(X)

/* clang-format on */

/* The bytecode numberings (lj_bc.h) of releases. */
enum layout_bytecode {
	BYTECODE_V20,        /* 2.0: 93 opcodes */
	BYTECODE_V21,        /* 2.1 since 2013: 97 opcodes */
	BYTECODE_V21_BITOPS, /* 2.1 since July 2026: 104 opcodes */
	BYTECODE_COUNT
};

/* The numberings of VM states (lj_obj.h, LJ_VMST_*). */
enum layout_vmstates {
	VMSTATES_LUAJIT,    /* every release, luajit2, moonjit */
	VMSTATES_TARANTOOL, /* Tarantool's since December 2020: Lua, fast and C functions each have one */
	VMSTATES_COUNT
};

struct layout {
	char name[LAYOUT_NAME_MAX];
	bool gc64; /* 64-bit GC references and two-slot frames (LJ_GC64, LJ_FR2) */
	bool has_jit;
	enum layout_bytecode bytecode;
	enum layout_vmstates vmstates;
#define LAYOUT_MEMBER(structure, field) int32_t structure##_##field;
	LAYOUT_FIELDS(LAYOUT_MEMBER)
#undef LAYOUT_MEMBER
};

/* The fields of LAYOUT_FIELDS, for loops. */
struct layout_field {
	const char *structure, *field;
	const char *name; /* "structure.field" */
	size_t place;     /* offset in struct layout */
};

extern const struct layout_field layout_fields[];
extern const size_t layout_field_count;

static inline int32_t layout_offset(const struct layout *layout, const struct layout_field *field)
{
	return *(const int32_t *)(const void *)((const char *)layout + field->place);
}

static inline int32_t *layout_offset_in(struct layout *layout, const struct layout_field *field)
{
	return (int32_t *)(void *)((char *)layout + field->place);
}

/* Bytes of a GCRef or MRef. */
static inline unsigned layout_ref_size(const struct layout *layout)
{
	return layout->gc64 ? 8 : 4;
}

/* Set every offset to LAYOUT_UNKNOWN and the rest to zeros. */
void layout_clear(struct layout *layout);

/* Set J's and the traces' fields to LAYOUT_ABSENT, as in a build without the JIT compiler. */
void layout_without_jit(struct layout *layout);

/* The first field that both know but that differs, as "structure.field", or NULL. */
const char *layout_conflict(const struct layout *left, const struct layout *right);

/* The first field that is LAYOUT_UNKNOWN, as "structure.field"; NULL if the layout is complete. */
const char *layout_missing(const struct layout *layout);

/*
 * A field of a complete layout that is absent though every build has it, or
 * lies outside of its structure, as "structure.field"; NULL if the layout is
 * usable. A GCtrace's header is at most LAYOUT_TRACE_HEADER_MAX bytes.
 */
const char *layout_unusable(const struct layout *layout);

/* Fill in the fields that layout does not know but from does. */
void layout_fill(struct layout *layout, const struct layout *from);

/* Set the fields in which the two differ to LAYOUT_UNKNOWN. */
void layout_keep_common(struct layout *layout, const struct layout *other);

#endif
