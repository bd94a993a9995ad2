// SPDX-License-Identifier: MIT
// An event loop with much on its stack, as libuv's has and those of servers around it:
// it works outside of Lua, works in Lua, and sleeps, in turn.
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

enum { SETTINGS_BYTES = 8 << 10, EVENTS_BYTES = 24 << 10, WORK_MS = 5, SLEEP_MS = 10 };

volatile unsigned int worked;

__attribute__((noinline)) static void work_outside(void)
{
	struct timespec now;
	long end;

	clock_gettime(CLOCK_MONOTONIC, &now);
	end = now.tv_sec * 1000 + now.tv_nsec / 1000000 + WORK_MS;
	do {
		for (unsigned int i = 0; i < 100000; i++)
			worked += i;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < end);
}

__attribute__((noinline)) static void turn(lua_State *L)
{
	char events[EVENTS_BYTES];

	memset(events, 1, sizeof(events));
	__asm__ volatile("" : : "r"(events) : "memory");
	work_outside();
	lua_getglobal(L, "work_inside");
	lua_call(L, 0, 0);
	poll(NULL, 0, SLEEP_MS);
	__asm__ volatile("" : : "r"(events) : "memory");
}

int main(void)
{
	lua_State *L = luaL_newstate();
	char settings[SETTINGS_BYTES];

	if (!L)
		return 1;
	luaL_openlibs(L);
	if (luaL_dostring(
		    L, "function work_inside() local s = 0 for i = 1, 1e6 do s = s + i % 7 end return s end"))
		return 1;
	memset(settings, 1, sizeof(settings));
	__asm__ volatile("" : : "r"(settings) : "memory");
	puts("ready");
	fflush(stdout);
	/* Without an unwind table, only code that returns tells of its caller. */
	while (L) {
		turn(L);
		__asm__ volatile("" : "+r"(L) : "r"(settings) : "memory");
	}
	return 0;
}
