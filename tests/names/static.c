/* SPDX-License-Identifier: MIT */
/*
 * static: Lua calls a C function that calls another one through the procedure
 * linkage table for ever, in a program that has one only for functions whose
 * code is chosen when the program begins.
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>

#include "slow_jump.h"

__attribute__((noinline)) static void chosen(void)
{
	wait_a_little();
}

static void (*choose(void))(void)
{
	return chosen;
}

void callee(void) __attribute__((ifunc("choose")));

int calls_plt(lua_State *L);
int calls_plt(lua_State *L)
{
	(void)L;
	for (;;) {
		forget_addresses();
		callee();
	}
}

int main(void)
{
	lua_State *L = luaL_newstate();

	if (!L)
		return 1;
	luaL_openlibs(L);
	lua_register(L, "calls_plt", calls_plt);
	puts("ready");
	fflush(stdout);
	return luaL_dostring(L, "local function calls() calls_plt() return 1 end return calls()");
}
