/* SPDX-License-Identifier: MIT */
/*
 * arena anonymous|memfd|shared|both SECONDS: a state with an allocator of its own, as game servers give
 * LuaJIT. Its arena is mapped without a file, in a memfd or shared. With both, a thread runs a state of
 * LuaJIT's own allocator beside a shared one. The arena keeps nothing between blocks, so the array of each
 * table in kept lies right behind its table.
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { ARENA_BYTES = 64 << 20, ALIGNMENT = 8 };

static const char program[] = "kept = {}\n"
			      "for i = 1, 1000 do local t = {} t[1] = i kept[i] = t end\n"
			      "io.write('ready\\n') io.flush()\n"
			      "local function work() local sum = 0\n"
			      "	for i = 1, 20000 do sum = sum + i % 7 end\n"
			      "	return sum\n"
			      "end\n"
			      "local function run() return 1 + work() end\n"
			      "while is_on() do run() end\n";

struct arena {
	char *next, *end;
	time_t off; /* when the program ends */
};

/* Blocks are not freed: once it works, the program makes none. */
static void *allocate(void *context, void *block, size_t old_bytes, size_t bytes)
{
	struct arena *arena = context;
	char *made = arena->next;

	if (bytes <= old_bytes)
		return bytes ? block : NULL;
	bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	if (bytes > (size_t)(arena->end - made))
		return NULL;
	arena->next += bytes;
	return block ? memcpy(made, block, old_bytes) : made;
}

static int is_on(lua_State *L)
{
	const struct arena *arena = lua_touserdata(L, lua_upvalueindex(1));

	lua_pushboolean(L, time(NULL) < arena->off);
	return 1;
}

static char *map_arena(const char *memory)
{
	const bool in_memfd = strcmp(memory, "memfd") == 0;
	int fd = in_memfd ? memfd_create("arena", MFD_CLOEXEC) : -1;
	const bool is_shared = strcmp(memory, "shared") == 0 || strcmp(memory, "both") == 0;
	int flags = is_shared ? MAP_SHARED : MAP_PRIVATE;

	if (in_memfd && (fd < 0 || ftruncate(fd, ARENA_BYTES)))
		return MAP_FAILED;
	return mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, flags | (in_memfd ? 0 : MAP_ANONYMOUS), fd, 0);
}

static int run(lua_State *L, struct arena *arena)
{
	if (!L)
		return 1;
	luaL_openlibs(L);
	lua_pushlightuserdata(L, arena);
	lua_pushcclosure(L, is_on, 1);
	lua_setglobal(L, "is_on");
	if (luaL_loadbuffer(L, program, strlen(program), "@arena.lua") || lua_pcall(L, 0, 0, 0)) {
		fprintf(stderr, "%s\n", lua_tostring(L, -1));
		return 1;
	}
	return 0;
}

static void *run_other(void *arena)
{
	run(luaL_newstate(), arena);
	return NULL;
}

int main(int argc, char **argv)
{
	struct arena arena = { 0 };
	pthread_t other;

	if (argc != 3)
		return 1;
	arena.off = time(NULL) + atoi(argv[2]);
	arena.next = map_arena(argv[1]);
	if (arena.next == MAP_FAILED)
		return 1;
	arena.end = arena.next + ARENA_BYTES;
	if (strcmp(argv[1], "both") == 0 && pthread_create(&other, NULL, run_other, &arena))
		return 1;
	return run(lua_newstate(allocate, &arena), &arena);
}
