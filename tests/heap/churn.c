/* SPDX-License-Identifier: MIT */
/*
 * churn: two VMs that stay, beside threads that open VMs and close them again.
 *
 * usage: churn
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

enum { THREADS = 4, OPEN_US = 30000, CLOSED_US = 2000 };

static const char program[] = "kept = {} for i = 1, 3000 do kept[i] = { i, 'text ' .. i } end";

static lua_State *open_one(void)
{
	lua_State *L = luaL_newstate();

	if (!L)
		exit(1);
	luaL_openlibs(L);
	if (luaL_loadstring(L, program) || lua_pcall(L, 0, 0, 0))
		exit(2);
	return L;
}

static void *open_and_close(void *unused)
{
	for (;;) {
		lua_State *L = open_one();

		usleep(OPEN_US);
		lua_close(L);
		usleep(CLOSED_US);
	}
	return unused;
}

int main(void)
{
	pthread_t thread;

	open_one();
	open_one();
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread, NULL, open_and_close, NULL))
			return 3;
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
