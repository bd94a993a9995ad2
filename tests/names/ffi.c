/* SPDX-License-Identifier: MIT */
/*
 * ffi: Lua calls a C function of the program's own through the FFI for ever. All is one module.
 *
 * usage: ffi on|off: the JIT compiler
 */
#include <lauxlib.h>
#include <lua.h>
#include <luajit.h>
#include <lualib.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 20000 };

/* FAR: in a section of their own, which the linker puts somewhere else. */
#ifdef FAR
#define PLACED __attribute__((noinline, section(".far")))
#else
#define PLACED __attribute__((noinline))
#endif

static PLACED unsigned int spin(unsigned int value)
{
	for (unsigned int i = 0; i < ROUNDS; i++) {
		value = value * 1664525u + 1013904223u;
		__asm__ volatile("" : "+r"(value));
	}
	return value;
}

unsigned int work(unsigned int value);

PLACED unsigned int work(unsigned int value)
{
	return spin(value) + 1;
}

/* Too far for an address relative to code. */
static unsigned int (*volatile const address)(unsigned int) = work;

int main(int argc, char **argv)
{
	static const char script[] =
		"local work = require('ffi').cast('unsigned (*)(unsigned)', work)\n"
		"local function calls(n) for i = 1, 100 do n = work(n) end return n end\n"
		"local n = 1\n"
		"while true do n = calls(n) end\n";
	lua_State *L = luaL_newstate();

	if (!L || argc != 2)
		return 1;
	luaL_openlibs(L);
	luaJIT_setmode(L, 0,
		       LUAJIT_MODE_ENGINE | (strcmp(argv[1], "on") == 0 ? LUAJIT_MODE_ON : LUAJIT_MODE_OFF));
	lua_pushlightuserdata(L, (void *)(uintptr_t)address);
	lua_setglobal(L, "work");
	puts("ready");
	fflush(stdout);
	return luaL_dostring(L, script);
}
