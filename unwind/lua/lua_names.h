/* SPDX-License-Identifier: MIT */
/*
 * lua_names: what a Lua function is called, and on which line it is.
 *
 * The name is the caller's, as LuaJIT's own traceback gives it (lj_debug.c:
 * lj_debug_funcname, lj_debug_slotname); the line comes from the prototype's
 * line table (lj_debug_line).
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
 * What the instruction at pc of the caller calls the function that it calls:
 * a local, global, field, method or upvalue, or a metamethod's event. False
 * if it has no name for it. memory serves the string constants, which live
 * for as long as the caller's prototype does.
 */
bool lua_call_name(struct memory *memory, const struct layout *layout,
		   const struct proto *caller, uint64_t pc, char ret_name[static LUA_NAME_SIZE]);

/* The line of an instruction; 0 in code that was stripped of its line table. */
uint32_t lua_line(const struct layout *layout, const struct proto *proto, uint64_t pc);

/* Is this the body of a file or string, not a function in it? */
bool lua_is_main_chunk(const struct proto *proto);

/*
 * Is it a function of LuaJIT's own library that is written in Lua, such as
 * table.foreach? Its chunk name is its name (lib_*.c: LJLIB_LUA).
 */
bool lua_is_builtin(const struct proto *proto);

/*
 * A chunk name as a function's file: "=label" and "@file" as they are; of
 * source text, which has neither mark, its first line as in [string "..."];
 * of anything else the part before the first control character.
 */
void lua_chunk_file(const char *chunkname, char ret_file[static CHUNKNAME_MAX + 16]);

#endif
