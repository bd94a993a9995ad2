/* SPDX-License-Identifier: MIT */
/*
 * host: several Lua states in one process, each with a program of its own.
 *
 * usage: host on|off SECONDS (with or without JIT)
 *
 * Threads "lua-0" to "lua-3" own a state each; the main thread runs twenty states
 * in turn; thread "nested" has a state that calls another one, which calls the
 * first again. Function names tell in which state they are.
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <luajit.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 4, IN_TURN = 20 };

static const char *jit;
static time_t end;

static const char program[] = "local function work_%1$d() local sum = 0\n"
			      "	for i = 1, 20 do sum = sum + #string.rep('x', 1000 + i) end\n"
			      "	for i = 1, 2000 do sum = sum + i %% 7 end\n"
			      "	return sum\n"
			      "end\n"
			      "function run_%1$d() return 1 + work_%1$d() end\n"
			      "function outer_%1$d() local a = cross() return a end\n"
			      "function middle_%1$d() local a = cross_back() return a end\n";

static lua_State *open_state(int number)
{
	lua_State *L = luaL_newstate();
	char text[sizeof(program) + 128], name[32];

	if (!L)
		exit(1);
	luaL_openlibs(L);
	if (strcmp(jit, "on") != 0)
		luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
	snprintf(text, sizeof(text), program, number);
	snprintf(name, sizeof(name), "@state_%d.lua", number);
	if (luaL_loadbuffer(L, text, strlen(text), name) || lua_pcall(L, 0, 0, 0)) {
		fprintf(stderr, "%s\n", lua_tostring(L, -1));
		exit(1);
	}
	return L;
}

static void call(lua_State *L, const char *function, int number)
{
	char name[32];

	snprintf(name, sizeof(name), "%s_%d", function, number);
	lua_getglobal(L, name);
	lua_call(L, 0, 0);
}

static void *own_state(void *context)
{
	int number = *(int *)context;
	lua_State *L = open_state(number);

	while (time(NULL) < end)
		call(L, "run", number);
	lua_close(L);
	return NULL;
}

/*---- One state within another ----*/

enum { OUTER = 100, INNER = 101 };

struct nest {
	lua_State *outer, *inner;
};

static struct nest *nest_of(lua_State *L)
{
	return lua_touserdata(L, lua_upvalueindex(1));
}

static int cross(lua_State *L)
{
	call(nest_of(L)->inner, "middle", INNER);
	return 0;
}

static int cross_back(lua_State *L)
{
	call(nest_of(L)->outer, "run", OUTER);
	return 0;
}

static void *nested(void *unused)
{
	struct nest nest = { open_state(OUTER), open_state(INNER) };

	(void)unused;
	lua_pushlightuserdata(nest.outer, &nest);
	lua_pushcclosure(nest.outer, cross, 1);
	lua_setglobal(nest.outer, "cross");
	lua_pushlightuserdata(nest.inner, &nest);
	lua_pushcclosure(nest.inner, cross_back, 1);
	lua_setglobal(nest.inner, "cross_back");
	while (time(NULL) < end)
		call(nest.outer, "outer", OUTER);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS + 1];
	lua_State *in_turn[IN_TURN];
	int numbers[THREADS];

	if (argc != 3)
		return 1;
	jit = argv[1];
	end = time(NULL) + atoi(argv[2]);
	for (int i = 0; i < IN_TURN; i++)
		in_turn[i] = open_state(THREADS + i);
	for (int i = 0; i < THREADS; i++) {
		char name[16];

		numbers[i] = i;
		if (pthread_create(&threads[i], NULL, own_state, &numbers[i]))
			return 1;
		snprintf(name, sizeof(name), "lua-%d", i);
		pthread_setname_np(threads[i], name);
	}
	if (pthread_create(&threads[THREADS], NULL, nested, NULL))
		return 1;
	pthread_setname_np(threads[THREADS], "nested");
	puts("ready");
	fflush(stdout);
	while (time(NULL) < end)
		for (int i = 0; i < IN_TURN; i++)
			call(in_turn[i], "run", THREADS + i);
	return 0;
}
