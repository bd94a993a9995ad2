/* SPDX-License-Identifier: MIT */
/*
 * naps: Lua that sleeps, beside threads that take naps, each much shorter than a copy of its heap takes.
 *
 * usage: naps THREADS [busy [large] | turns]
 *
 * busy: Lua, too, takes only naps. Beside it is a VM in which nothing happens: a small one, or a large one.
 * turns: Lua alone, which sleeps or takes naps; SIGUSR1 makes it change between both.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

static const char program[] =
	"kept = {} for i = 1, 32 do kept[i] = string.rep(string.char(64 + i), 2^20) end";

static const char step[] = "kept[0] = {}";
static const char small_program[] = "kept = {} for i = 1, 100 do kept[i] = {} end";
static const char large_program[] =
	"kept = {} for i = 1, 48 do kept[i] = string.rep(string.char(64 + i), 2^20) end";

static int open_other(const char *its_program)
{
	lua_State *L = luaL_newstate();

	if (!L)
		return -1;
	luaL_openlibs(L);
	return luaL_dostring(L, its_program);
}

static void *nap(void *unused)
{
	for (;;)
		usleep(100);
	return unused;
}

static volatile sig_atomic_t is_busy = 1;

static void change(int number)
{
	(void)number;
	is_busy = !is_busy;
}

int main(int argc, char *argv[])
{
	lua_State *L = luaL_newstate();
	pthread_t thread;

	if (argc < 2 || argc > 4 || !L)
		return 1;
	luaL_openlibs(L);
	if (luaL_loadstring(L, program) || lua_pcall(L, 0, 0, 0))
		return 2;
	if (argc >= 3 && strcmp(argv[2], "turns") == 0) {
		is_busy = 0;
		signal(SIGUSR1, change);
	} else if (argc >= 3 && open_other(argc == 4 ? large_program : small_program)) {
		return 4;
	}
	for (int i = 0; i < atoi(argv[1]); i++)
		if (pthread_create(&thread, NULL, nap, NULL))
			return 3;
	puts("ready");
	fflush(stdout);
	while (argc >= 3 && (!is_busy || !luaL_dostring(L, step)))
		usleep(100);
	pause();
	return 0;
}
