/* SPDX-License-Identifier: MIT */
/*
 * errors: errors that leave Lua for the C code that called it.
 *
 * usage: errors LIBRARY SECONDS (LIBRARY is a libluajit)
 *
 * They are raised all the time and at depth: out of protected calls, coroutines
 * that C resumes, protected calls of C functions and of the parser.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

/* Of the library. */
static struct {
	lua_State *(*newstate)(void);
	void (*openlibs)(lua_State *L);
	int (*loadstring)(lua_State *L, const char *text);
	int (*pcall)(lua_State *L, int arguments, int results, int handler);
	int (*cpcall)(lua_State *L, lua_CFunction function, void *context);
	int (*error)(lua_State *L, const char *format, ...);
	int (*resume)(lua_State *L, int arguments);
	lua_State *(*newthread)(lua_State *L);
	void (*getfield)(lua_State *L, int index, const char *name);
	void (*setfield)(lua_State *L, int index, const char *name);
	void (*pushcclosure)(lua_State *L, lua_CFunction function, int upvalues);
	void (*settop)(lua_State *L, int index);
} lua;

static const char program[] =
	"local function raise(n) if n == 0 then fail() end local a = raise(n - 1) return a end\n"
	"function deep() local ok = pcall(raise, 10) return raise(8) end\n"
	"function crossing() protected(deep) protected(function() protected(deep) error('x') end) return deep() end\n"
	"function parked() coroutine.yield() return crossing() end\n";

static int fail(lua_State *L)
{
	return lua.error(L, "x");
}

static int protected(lua_State *L)
{
	lua.settop(L, 1);
	lua.pcall(L, 0, 0, 0);
	return 0;
}

static void *symbol(void *handle, const char *name)
{
	void *found = dlsym(handle, name);

	if (!found)
		exit(2);
	return found;
}

static void load(const char *library)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_GLOBAL);

	if (!handle)
		exit(2);
	*(void **)&lua.newstate = symbol(handle, "luaL_newstate");
	*(void **)&lua.openlibs = symbol(handle, "luaL_openlibs");
	*(void **)&lua.loadstring = symbol(handle, "luaL_loadstring");
	*(void **)&lua.pcall = symbol(handle, "lua_pcall");
	*(void **)&lua.cpcall = symbol(handle, "lua_cpcall");
	*(void **)&lua.error = symbol(handle, "luaL_error");
	*(void **)&lua.resume = symbol(handle, "lua_resume");
	*(void **)&lua.newthread = symbol(handle, "lua_newthread");
	*(void **)&lua.getfield = symbol(handle, "lua_getfield");
	*(void **)&lua.setfield = symbol(handle, "lua_setfield");
	*(void **)&lua.pushcclosure = symbol(handle, "lua_pushcclosure");
	*(void **)&lua.settop = symbol(handle, "lua_settop");
}

static void run(lua_State *L)
{
	lua_State *co = lua.newthread(L);

	lua.getfield(co, LUA_GLOBALSINDEX, "parked");
	lua.resume(co, 0);
	lua.resume(co, 0);
	lua.getfield(L, LUA_GLOBALSINDEX, "crossing");
	lua.pcall(L, 0, 0, 0);
	lua.cpcall(L, fail, NULL);
	lua.loadstring(L, "x = = 1");
	lua.settop(L, 0);
}

int main(int argc, char **argv)
{
	lua_State *L;
	time_t end;

	if (argc != 3)
		return 1;
	load(argv[1]);
	L = lua.newstate();
	lua.openlibs(L);
	lua.pushcclosure(L, fail, 0);
	lua.setfield(L, LUA_GLOBALSINDEX, "fail");
	lua.pushcclosure(L, protected, 0);
	lua.setfield(L, LUA_GLOBALSINDEX, "protected");
	if (lua.loadstring(L, program) || lua.pcall(L, 0, 0, 0))
		return 1;
	end = time(NULL) + atoi(argv[2]);
	puts("ready");
	fflush(stdout);
	while (time(NULL) < end)
		for (int i = 0; i < 100; i++)
			run(L);
	return 0;
}
