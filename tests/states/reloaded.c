/* SPDX-License-Identifier: MIT */
/*
 * reloaded: libraries with LuaJIT that take each other's place.
 *
 * usage: reloaded SECONDS LIBRARY...
 *
 * Loads each library in turn, runs Lua in it for so much CPU time, and unloads it; twice over.
 * The functions of the turn-th one have that number in their names. Says where each is loaded.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

static const char program[] = "local function work_%1$d(n)\n"
			      "	local t = {}\n"
			      "	for i = 1, n do t[i] = tostring(i) .. 'x' end\n"
			      "	return #table.concat(t)\n"
			      "end\n"
			      "local function run_%1$d()\n"
			      "	local sum = 0\n"
			      "	for i = 1, 50 do sum = sum + work_%1$d(100) end\n"
			      "	return sum\n"
			      "end\n"
			      "local finish = os.clock() + %2$s\n"
			      "while os.clock() < finish do run_%1$d() end\n";

static void *symbol(void *library, const char *name)
{
	void *found = dlsym(library, name);

	if (!found)
		exit(2);
	return found;
}

static void run(void *library, const char *text)
{
	lua_State *(*newstate)(void) = (lua_State * (*)(void)) symbol(library, "luaL_newstate");
	void (*openlibs)(lua_State *) = (void (*)(lua_State *))symbol(library, "luaL_openlibs");
	int (*loadstring)(lua_State *, const char *) = (int (*)(lua_State *, const char *))symbol(
		library, "luaL_loadstring");
	int (*pcall)(lua_State *, int, int, int) = (int (*)(lua_State *, int, int, int))symbol(library,
											       "lua_pcall");
	void (*close)(lua_State *) = (void (*)(lua_State *))symbol(library, "lua_close");
	lua_State *L = newstate();

	openlibs(L);
	if (loadstring(L, text) || pcall(L, 0, 0, 0))
		exit(3);
	close(L);
}

int main(int argc, char *argv[])
{
	for (int turn = 0; turn < 2 * (argc - 2); turn++) {
		void *library = dlopen(argv[2 + turn % (argc - 2)], RTLD_NOW | RTLD_LOCAL);
		char text[sizeof(program) + 128];
		Dl_info info;

		if (!library || !dladdr(symbol(library, "lua_newstate"), &info))
			return 2;
		printf("%d at %p\n", turn, info.dli_fbase);
		fflush(stdout);
		snprintf(text, sizeof(text), program, turn, argv[1]);
		run(library, text);
		dlclose(library);
	}
	return 0;
}
