/* SPDX-License-Identifier: MIT */
/*
 * runner: a program that LuaJIT is linked into runs a script.
 *
 * usage: runner SCRIPT ARG1 ARG2
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	lua_State *L = luaL_newstate();

	if (!L || argc != 4)
		return 1;
	luaL_openlibs(L);
	lua_createtable(L, 2, 0);
	for (int i = 1; i <= 2; i++) {
		lua_pushstring(L, argv[i + 1]);
		lua_rawseti(L, -2, i);
	}
	lua_setglobal(L, "arg");
	if (luaL_loadfile(L, argv[1]) || lua_pcall(L, 0, 0, 0)) {
		fprintf(stderr, "%s\n", lua_tostring(L, -1));
		return 1;
	}
	return 0;
}
