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

#include <uthash.h>

#include "luajit-layouts/layout.h"
#include "memory/memory.h"

enum {
	BUILTIN_COUNT = 256,
	BUILTIN_NAME_SIZE = 48,
	C_FUNCTIONS_MAX = 16384,
};

struct builtin {
	char name[BUILTIN_NAME_SIZE];	/* "" if no table holds it */
	uint8_t op;	/* of an assembler function: its number in the dispatch table; else 0 */
};

/* A lua_CFunction that a module's table holds: "cjson.encode". */
struct c_function {
	uint64_t f;
	UT_hash_handle hh;
	char name[BUILTIN_NAME_SIZE];
};

struct builtins {
	struct builtin at[BUILTIN_COUNT];	/* by ffid */
	struct c_function *c_functions;
};

/*
 * Collect the names in the universe with this global_State. Every pointer is
 * checked, so it does no harm if the target changes its tables meanwhile.
 */
void builtins_collect(struct memory *memory, const struct layout *layout, uint64_t g,
		      struct builtins *ret_builtins);
void builtins_clear(struct builtins *builtins);

/* The name by which a module offers a lua_CFunction, or NULL. */
const char *builtins_c_function(const struct builtins *builtins, uint64_t f);

#endif
