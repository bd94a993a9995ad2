/* SPDX-License-Identifier: MIT */
/*
 * vms: many VMs with small heaps, which LuaJIT's allocator puts side by side.
 *
 * usage: vms COUNT
 *
 * Prints "ready" when all are there, and sleeps.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

static const char program[] =
	"kept = {}\n"
	"for i = 1, 500 do kept[i] = { i, 'text ' .. i } end\n"
	/* Its stack has memory of its own. */
	"local function deep(n) if n == 0 then coroutine.yield() end return 1 + deep(n - 1) end\n"
	"waiting = coroutine.create(deep)\n"
	"coroutine.resume(waiting, 9000)\n";

int main(int argc, char *argv[])
{
	if (argc != 2)
		return 1;
	for (int i = 0; i < atoi(argv[1]); i++) {
		lua_State *L = luaL_newstate();

		if (!L)
			return 1;
		luaL_openlibs(L);
		if (luaL_loadstring(L, program) || lua_pcall(L, 0, 0, 0)) {
			fprintf(stderr, "%s\n", lua_tostring(L, -1));
			return 2;
		}
	}
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
