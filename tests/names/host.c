/* SPDX-License-Identifier: MIT */
/*
 * host: Lua calls a C function that runs code of a library for ever.
 *
 * usage: host LIBRARY FUNCTION
 */
#include <dlfcn.h>
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>

static void (*function)(void);

static int run(lua_State *L)
{
	(void)L;
	function();
	return 0;
}

int main(int argc, char **argv)
{
	lua_State *L = luaL_newstate();
	void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;

	if (!L || !library)
		return 1;
	*(void **)&function = dlsym(library, argv[2]);
	if (!function)
		return 1;
	luaL_openlibs(L);
	lua_register(L, "run", run);
	puts("ready");
	fflush(stdout);
	return luaL_dostring(L, "local function calls() run() return 1 end return calls()");
}
