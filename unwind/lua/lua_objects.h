/* SPDX-License-Identifier: MIT */
/*
 * lua_objects: the functions and prototypes seen in a process.
 *
 * ljspy copies a closure's header and its prototype while the target is held. It
 * compares a known prototype with its current header. So an object at a reused
 * address never gets the name of the old one.
 */
#ifndef LJSPY_LUA_OBJECTS_H
#define LJSPY_LUA_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "luajit-layouts/layout.h"
#include "memory/snapshot.h"
#include "unwind/lua/luajit.h"

enum {
	PROTO_BYTES_MAX = 4 << 20,       /* of one prototype; LuaJIT's limits allow no useful larger one */
	CHUNKNAME_MAX = 4096,            /* bytes kept of a chunk name */
	LUA_OBJECTS_MAX = 16384,         /* functions or prototypes kept; above it, all are forgotten */
	LUA_OBJECTS_BYTES_MAX = 8 << 20, /* bytes of prototypes kept, likewise */
};

/* A GCproto and everything in the same allocation. */
struct proto {
	uint64_t address;
	uint64_t serial;      /* unique in this process, never reused */
	const uint8_t *bytes; /* the object's own bytes */
	size_t size;          /* of bytes: GCproto.sizept */
	uint32_t sizebc;
	uint32_t firstline, numline;
	uint8_t framesize, numparams, flags;
	uint64_t bc;     /* address of the first bytecode */
	char *chunkname; /* NUL-terminated, as in memory */
};

/* A GCfunc in the current snapshot. */
struct function_object {
	uint64_t address;
	uint8_t ffid;
	uint64_t pc;               /* GCfunc.pc: bytecode to run */
	uint64_t f;                /* GCfuncC.f; 0 for Lua functions */
	const struct proto *proto; /* NULL for C functions and unreadable prototypes */
};

struct lua_objects;

/* NULL when out of memory. */
struct lua_objects *lua_objects_new(void);
void lua_objects_free(struct lua_objects *objects);

/*
 * Begin a new snapshot: nothing counts as seen in it yet. This call ends the life
 * of pointers that other functions returned before. learn says that the target is
 * held. Without it, new prototypes are read but not kept.
 */
void lua_objects_begin(struct lua_objects *objects, bool learn);

/*
 * While the target is held: copy the headers of these functions (duplicates
 * allowed) and of their prototypes, and all of each new prototype.
 */
void lua_objects_capture(struct lua_objects *objects, struct snapshot *snapshot, const struct layout *layout,
			 const uint64_t *functions, size_t count);

/* The same for prototypes without a known function. */
void lua_objects_capture_protos(struct lua_objects *objects, struct snapshot *snapshot,
				const struct layout *layout, const uint64_t *protos, size_t count);

/*
 * While the target is held: capture the functions in the upvalues of these Lua
 * functions, which must be captured already.
 */
void lua_objects_capture_upvalues(struct lua_objects *objects, struct snapshot *snapshot,
				  const struct layout *layout, const uint64_t *functions, size_t count);

/* The function in an upvalue in the current snapshot. NULL if there is none or it was not captured. */
const struct function_object *lua_objects_upvalue(const struct lua_objects *objects, uint64_t function,
						  unsigned index);

/* The prototype at the address in the current snapshot, or NULL. */
const struct proto *lua_objects_proto(const struct lua_objects *objects, uint64_t address);

/* The prototype in the current snapshot that has an instruction at this pc, or NULL. */
const struct proto *lua_objects_proto_of_pc(struct lua_objects *objects, uint64_t pc);

/* The function at the address in the current snapshot, or NULL. */
const struct function_object *lua_objects_function(const struct lua_objects *objects, uint64_t address);

/*
 * The prototype with this header (layout->GCproto_size bytes), but for its bytes and chunk name.
 * False if it cannot be one.
 */
bool proto_from_header(const struct layout *layout, const uint8_t *header, uint64_t address,
		       struct proto *ret_proto);

/*---- Loads from a prototype's bytes, by the target's addresses; inline, as each frame needs some ----*/

/* False outside its bounds. */
static inline bool proto_load(const struct proto *proto, uint64_t address, void *ret_copy, size_t length)
{
	uint64_t offset = address - proto->address;

	if (address < proto->address || offset > proto->size || length > proto->size - offset)
		return false;
	memcpy(ret_copy, proto->bytes + offset, length);
	return true;
}

/* Is this pc one of the prototype's instructions? */
static inline bool proto_contains_pc(const struct proto *proto, uint64_t pc)
{
	return pc >= proto->bc && pc < proto->bc + (uint64_t)proto->sizebc * BYTECODE_SIZE &&
	       (pc - proto->bc) % BYTECODE_SIZE == 0;
}

static inline bool proto_instruction(const struct proto *proto, uint64_t pc, uint32_t *ret_instruction)
{
	return proto_contains_pc(proto, pc) &&
	       proto_load(proto, pc, ret_instruction, sizeof(*ret_instruction));
}

/*---- Constants of a prototype ----*/

/*
 * The object constant with this number: they lie below GCproto.k (lj_obj.h, proto_kgc). False outside its
 * bounds.
 */
bool proto_kgc(const struct layout *layout, const struct proto *proto, uint32_t number, uint64_t *ret_object);

/* The bits of the number constant with this number: they lie from GCproto.k on (lj_obj.h, proto_knumtv). */
bool proto_knum(const struct layout *layout, const struct proto *proto, uint32_t number, uint64_t *ret_bits);

#endif
