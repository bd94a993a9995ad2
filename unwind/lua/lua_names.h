/* SPDX-License-Identifier: MIT */
/*
 * lua_names: the name of a Lua function and the line of an instruction.
 *
 * The name is the caller's name for the function, as in LuaJIT's own traceback
 * (lj_debug.c: lj_debug_funcname, lj_debug_slotname). The line comes from the
 * prototype's line table (lj_debug_line).
 */
#ifndef LJSPY_LUA_NAMES_H
#define LJSPY_LUA_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luajit-layouts/layout.h"
#include "memory/memory.h"
#include "unwind/lua/lua_objects.h"

enum { LUA_NAME_SIZE = 256 };

/*
 * The caller's name for the function that its instruction at pc calls: a local,
 * global, field, method or upvalue, or a metamethod's event. False if there is no
 * name. memory reads the string constants, which live as long as the caller's
 * prototype.
 */
bool lua_call_name(struct memory *memory, const struct layout *layout, const struct proto *caller,
		   uint64_t pc, char ret_name[static LUA_NAME_SIZE]);

/*
 * The name of the local variable in a slot when the instruction at pc runs, or of an upvalue.
 * Points into the prototype's bytes, or is a constant. False if there is none.
 */
bool lua_local_name(const struct layout *layout, const struct proto *proto, uint64_t pc, uint32_t slot,
		    const char **ret_name);
bool lua_upvalue_name(const struct layout *layout, const struct proto *proto, uint32_t index,
		      const char **ret_name);

enum { LUA_LOCALS_MAX = 256 }; /* of one function at one instruction; LuaJIT allows 200 (LJ_MAX_LOCVAR) */

struct lua_local {
	const char *name;    /* as from lua_local_name() */
	uint32_t begin, end; /* its scope: numbers of instructions, from begin up to before end */
};

/*
 * All local variables in scope when the instruction at pc runs; they are in the first
 * slots, one each. Returns how many. 0 also for a prototype without debug information.
 */
size_t lua_locals(const struct layout *layout, const struct proto *proto, uint64_t pc,
		  struct lua_local ret_locals[static LUA_LOCALS_MAX]);

/* Has the prototype names of local variables? */
bool lua_has_locals(const struct layout *layout, const struct proto *proto);

/* The line of the instruction at pc. 0 if pc is not in the prototype, or without a line table. */
uint32_t lua_line(const struct layout *layout, const struct proto *proto, uint64_t pc);

/*
 * Is this the main chunk of a file or string, not a function in it? False if that is unknown: stripped
 * bytecode has neither a first line nor a number of lines (lj_bcread.c of v2.1: lj_bcread_proto), and
 * LuaJIT does not take its functions for main chunks, either (lj_debug.c: lj_debug_getinfo).
 */
bool lua_is_main_chunk(const struct proto *proto);

/*
 * Is it a function of LuaJIT's library that is written in Lua, such as
 * table.foreach? Its chunk name is its name (lib_*.c: LJLIB_LUA).
 */
bool lua_is_builtin(const struct proto *proto);

/*
 * A chunk name as a function's file. "=label" and "@file" stay as they are.
 * Bytecode is "=?". Source text becomes =[string "..."], up to its first control
 * character and cut to a fixed length.
 */
void lua_chunk_file(const char *chunkname, char ret_file[static CHUNKNAME_MAX + 16]);

#endif
