/* SPDX-License-Identifier: MIT */
/*
 * builtins: the names of LuaJIT's own library functions.
 *
 * A builtin's number (GCfunc.ffid) identifies it, but differs by version and build
 * flags. So ljspy finds the names where a Lua program finds them: in the tables of
 * package.loaded, which is registry._LOADED (lib_package.c), and in the metatables
 * of files, buffers, cdata and lua-nginx-module's TCP sockets.
 */
#ifndef LJSPY_BUILTINS_H
#define LJSPY_BUILTINS_H

#include <stdint.h>

#include "luajit-layouts/layout.h"
#include "memory/hash.h"
#include "memory/memory.h"
#include "unwind/lua/lua_table.h"

enum {
	BUILTIN_COUNT = 256,
	BUILTIN_NAME_SIZE = LUA_TABLE_KEY_SIZE,
	OFFERED_MAX = 16384,
};

struct builtin {
	char name[BUILTIN_NAME_SIZE]; /* "" if no table holds it */
	uint8_t op;                   /* an assembler function's number in the dispatch table; else 0 */
};

/*
 * A function without a number in a module's table. code is the machine code's
 * address for a lua_CFunction ("cjson.encode"), and the GCproto's for a function
 * that LuaJIT has in Lua ("table.foreach").
 */
struct offered_function {
	uint64_t code;
	UT_hash_handle hh;
	char name[BUILTIN_NAME_SIZE];
};

struct builtins {
	struct builtin at[BUILTIN_COUNT]; /* by ffid */
	struct offered_function *offered;
	char version[BUILTIN_NAME_SIZE]; /* jit.version: "LuaJIT 2.1.0-beta3"; "" if unknown */
};

/*
 * Collect the names in the global_State of the global_State g. The target may change
 * its tables meanwhile: every pointer is checked. The caller clears *ret_builtins.
 */
void builtins_collect(struct memory *memory, const struct layout *layout, uint64_t g,
		      struct builtins *ret_builtins);
void builtins_clear(struct builtins *builtins);

/* The name under which a module's table holds this code, or NULL. Owned by builtins. */
const char *builtins_offered(const struct builtins *builtins, uint64_t code);

#endif
