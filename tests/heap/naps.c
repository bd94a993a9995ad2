/* SPDX-License-Identifier: MIT */
/*
 * naps: Lua that sleeps, beside threads that take naps, each much shorter than a copy of its heap takes.
 *
 * usage: naps THREADS [busy]
 *
 * busy: Lua, too, takes only naps. Beside it is a small VM in which nothing happens.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

static const char program[] =
	"kept = {} for i = 1, 32 do kept[i] = string.rep(string.char(64 + i), 2^20) end";

static const char step[] = "kept[0] = {}";
static const char small_program[] = "kept = {} for i = 1, 100 do kept[i] = {} end";

static int open_small(void)
{
	lua_State *L = luaL_newstate();

	return L ? luaL_dostring(L, small_program) : -1;
}

static void *nap(void *unused)
{
	for (;;)
		usleep(100);
	return unused;
}

int main(int argc, char *argv[])
{
	lua_State *L = luaL_newstate();
	pthread_t thread;

	if (argc < 2 || argc > 3 || !L)
		return 1;
	luaL_openlibs(L);
	if (luaL_loadstring(L, program) || lua_pcall(L, 0, 0, 0))
		return 2;
	if (argc == 3 && open_small())
		return 4;
	for (int i = 0; i < atoi(argv[1]); i++)
		if (pthread_create(&thread, NULL, nap, NULL))
			return 3;
	puts("ready");
	fflush(stdout);
	while (argc == 3 && !luaL_dostring(L, step))
		usleep(100);
	pause();
	return 0;
}
