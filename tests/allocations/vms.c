/* SPDX-License-Identifier: MIT */
/*
 * vms: VMs that allocate at the same time, each in a thread of its own, and know how much.
 *
 * usage: vms ROUNDS.LUA SECONDS (of CPU time, for all together)
 *
 * Prints "ready" when all have begun, and what each has allocated (rounds.lua), then "the end".
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

enum { VMS = 2 };

/* io and print are those of all VMs: they say nothing but the sums. */
static const char program[] = "local rounds, seconds, number, begin, tell = ...\n"
			      "io = { stdout = { write = begin, flush = function() end } }\n"
			      "function print(name, bytes) if bytes then tell(name, bytes) end end\n"
			      "local function make(i) return { i, 2, 3 } end\n"
			      "local function spend(i)\n"
			      "	local x = i\n"
			      "	for _ = 1, 20 do x = (x * 1103515245 + 12345) % 2147483648 end\n"
			      "	return x\n"
			      "end\n"
			      "dofile(rounds)({ { 'vm' .. number, make, 1 } }, seconds, 0, spend)\n";

static pthread_barrier_t barrier;
static char **arguments;

static int begin(lua_State *L)
{
	(void)L;
	if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
		puts("ready");
		fflush(stdout);
	}
	return 0;
}

static int tell(lua_State *L)
{
	printf("%s\t%.0f\n", lua_tostring(L, 1), lua_tonumber(L, 2));
	return 0;
}

static void *run(void *number)
{
	lua_State *L = luaL_newstate();

	if (!L)
		exit(1);
	luaL_openlibs(L);
	if (luaL_loadstring(L, program))
		exit(2);
	lua_pushstring(L, arguments[1]);
	lua_pushnumber(L, atof(arguments[2]));
	lua_pushinteger(L, *(int *)number);
	lua_pushcfunction(L, begin);
	lua_pushcfunction(L, tell);
	if (lua_pcall(L, 5, 0, 0)) {
		fprintf(stderr, "%s\n", lua_tostring(L, -1));
		exit(3);
	}
	lua_close(L);
	return NULL;
}

int main(int argc, char *argv[])
{
	pthread_t threads[VMS];
	int numbers[VMS];

	if (argc != 3)
		return 1;
	arguments = argv;
	pthread_barrier_init(&barrier, NULL, VMS);
	for (int i = 0; i < VMS; i++) {
		numbers[i] = i;
		if (pthread_create(&threads[i], NULL, run, &numbers[i]))
			return 1;
	}
	for (int i = 0; i < VMS; i++)
		pthread_join(threads[i], NULL);
	puts("the end");
	return 0;
}
