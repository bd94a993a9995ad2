/* SPDX-License-Identifier: MIT */
/*
 * lua_objects: the functions and prototypes that have been seen in a process.
 *
 * A closure's header and its prototype are copied while the target is held.
 * What is known from before is compared with the header as it is now, so an
 * address that the collector gave to another object never lends its name.
 */
#ifndef LJSPY_LUA_OBJECTS_H
#define LJSPY_LUA_OBJECTS_H

#include <stddef.h>
#include <stdint.h>

#include "luajit-layouts/layout.h"
#include "memory/snapshot.h"

enum {
	PROTO_BYTES_MAX = 4 << 20,	/* of one prototype; LuaJIT's own limits allow no useful larger one */
	CHUNKNAME_MAX = 4096,		/* bytes kept of a chunk name */
	LUA_OBJECTS_MAX = 16384,	/* functions kept; all are forgotten above */
	LUA_OBJECTS_BYTES_MAX = 8 << 20,	/* and of their prototypes, likewise */
};

/* GCproto, with everything that is allocated in one piece with it. */
struct proto {
	uint64_t address;
	uint64_t serial;		/* unique in this process, never reused */
	const uint8_t *bytes;		/* the object's own bytes */
	size_t size;			/* of bytes: GCproto.sizept */
	uint32_t sizebc;
	uint32_t firstline, numline;
	uint8_t framesize, numparams, flags;
	uint64_t bc;			/* address of the first bytecode */
	char *chunkname;		/* NUL-terminated, as in memory */
};

/* GCfunc as it was in the present snapshot. */
struct function_object {
	uint64_t address;
	uint8_t ffid;
	uint64_t pc;			/* GCfunc.pc: bytecode to run */
	uint64_t f;			/* GCfuncC.f; 0 for Lua functions */
	const struct proto *proto;	/* NULL for C functions, or if it could not be read */
};

struct lua_objects;

struct lua_objects *lua_objects_new(void);
void lua_objects_free(struct lua_objects *objects);

/*
 * Forget what the last snapshot held. Pointers handed out before stay valid
 * until the next call. If the target is not held, nothing may be learnt of it:
 * new prototypes are read, but not kept.
 */
void lua_objects_begin(struct lua_objects *objects, bool learn);

/*
 * While the target is held: copy the headers of these functions (duplicates
 * allowed) and of their prototypes, and what is new of them.
 */
void lua_objects_capture(struct lua_objects *objects, struct snapshot *snapshot,
			 const struct layout *layout,
			 const uint64_t *functions, size_t count);

/* The same for prototypes that are known without a function. */
void lua_objects_capture_protos(struct lua_objects *objects, struct snapshot *snapshot,
				const struct layout *layout,
				const uint64_t *protos, size_t count);

/*
 * While the target is held: the functions that the upvalues of these Lua
 * functions hold. The functions must have been captured.
 */
void lua_objects_capture_upvalues(struct lua_objects *objects, struct snapshot *snapshot,
				  const struct layout *layout,
				  const uint64_t *functions, size_t count);

/* The function that an upvalue holds in the present snapshot; NULL if it holds none or was not captured. */
const struct function_object *lua_objects_upvalue(const struct lua_objects *objects,
						  uint64_t function, unsigned index);

/* The prototype at the address in the present snapshot, or NULL. */
const struct proto *lua_objects_proto(const struct lua_objects *objects, uint64_t address);

/* The prototype of the present snapshot that has an instruction at this pc, or NULL. */
const struct proto *lua_objects_proto_of_pc(struct lua_objects *objects, uint64_t pc);

/* The function at the address in the present snapshot, or NULL. */
const struct function_object *lua_objects_function(const struct lua_objects *objects,
						   uint64_t address);

/* Bounds-checked loads from a prototype's bytes, by address; false outside of it. */
bool proto_load(const struct proto *proto, uint64_t address, void *copy, size_t length);
bool proto_instruction(const struct proto *proto, uint64_t pc, uint32_t *ret_instruction);

/* Is this pc one of the prototype's instructions? */
bool proto_holds_pc(const struct proto *proto, uint64_t pc);

#endif
