/* SPDX-License-Identifier: MIT */
/*
 * bare: a state as game servers and sandboxes open it, without the standard
 * libraries or with few of them, and with functions of the program's own.
 *
 * usage: bare none|some|many SECONDS (many: states without any, all but one of which do nothing)
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { IDLE = 400 };

static const char program[] = "local function work() local sum = 0\n"
			      "	for i = 1, 20000 do sum = sum + i % 7 end\n"
			      "	return sum\n"
			      "end\n"
			      "local function run() return 1 + work() end\n"
			      "while is_on() do run() end\n";

static int is_on(lua_State *L)
{
	lua_pushboolean(L, time(NULL) < (time_t)lua_tonumber(L, lua_upvalueindex(1)));
	return 1;
}

static void open_some(lua_State *L)
{
	static const lua_CFunction some[] = { luaopen_base, luaopen_string, luaopen_jit };

	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		lua_pushcfunction(L, some[i]);
		lua_pushstring(L, "");
		lua_call(L, 1, 0);
	}
}

int main(int argc, char **argv)
{
	lua_State *L;

	if (argc != 3)
		return 1;
	for (int i = 0; i < IDLE && strcmp(argv[1], "many") == 0; i++)
		luaL_newstate();
	L = luaL_newstate();
	if (strcmp(argv[1], "some") == 0)
		open_some(L);
	lua_pushnumber(L, (lua_Number)(time(NULL) + atoi(argv[2])));
	lua_pushcclosure(L, is_on, 1);
	lua_setglobal(L, "is_on");
	puts("ready");
	fflush(stdout);
	if (luaL_loadbuffer(L, program, strlen(program), "@bare.lua") || lua_pcall(L, 0, 0, 0)) {
		fprintf(stderr, "%s\n", lua_tostring(L, -1));
		return 1;
	}
	return 0;
}
