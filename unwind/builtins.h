/*
 * builtins: the names of LuaJIT's own library functions.
 *
 * A builtin is known by its number (GCfunc.ffid), which differs by version
 * and build flags. The names are where any Lua program finds them: in the
 * tables of package.loaded, that is registry._LOADED (lib_package.c).
 */
#ifndef LJSPY_BUILTINS_H
#define LJSPY_BUILTINS_H

#include <stdint.h>

#include "luajit-layouts/layout.h"
#include "memory/memory.h"

enum { BUILTIN_COUNT = 256, BUILTIN_NAME_SIZE = 48 };

struct builtins {
	char names[BUILTIN_COUNT][BUILTIN_NAME_SIZE];	/* by ffid; "" if no table holds it */
};

/*
 * Collect the names in the universe with this global_State. Every pointer is
 * checked, so it does no harm if the target changes its tables meanwhile.
 */
void builtins_collect(struct memory *memory, const struct layout *layout, uint64_t g,
		      struct builtins *ret_builtins);

#endif
