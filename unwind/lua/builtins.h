/* SPDX-License-Identifier: MIT */
/*
 * builtins: the names of LuaJIT's own library functions.
 *
 * A builtin is known by its number (GCfunc.ffid), which differs by version
 * and build flags. The names are where any Lua program finds them: in the
 * tables of package.loaded, that is registry._LOADED (lib_package.c), and in
 * the metatables of files, buffers and cdata.
 */
#ifndef LJSPY_BUILTINS_H
#define LJSPY_BUILTINS_H

#include <stdint.h>

#include "luajit-layouts/layout.h"
#include "memory/hash.h"
#include "memory/memory.h"

enum {
	BUILTIN_COUNT = 256,
	BUILTIN_NAME_SIZE = 48,
	OFFERED_MAX = 16384,
};

struct builtin {
	char name[BUILTIN_NAME_SIZE];	/* "" if no table holds it */
	uint8_t op;	/* of an assembler function: its number in the dispatch table; else 0 */
};

/*
 * A function without a number that a module's table holds: a lua_CFunction
 * ("cjson.encode") by its machine code, or one that LuaJIT has in Lua
 * ("table.foreach") by its GCproto.
 */
struct offered_function {
	uint64_t code;
	UT_hash_handle hh;
	char name[BUILTIN_NAME_SIZE];
};

struct builtins {
	struct builtin at[BUILTIN_COUNT];	/* by ffid */
	struct offered_function *offered;
};

/*
 * Collect the names in the global_State with this global_State. Every pointer is
 * checked, so it does no harm if the target changes its tables meanwhile.
 */
void builtins_collect(struct memory *memory, const struct layout *layout, uint64_t g,
		      struct builtins *ret_builtins);
void builtins_clear(struct builtins *builtins);

/* The name by which a module offers this code, or NULL. */
const char *builtins_offered(const struct builtins *builtins, uint64_t code);

#endif
