/* SPDX-License-Identifier: MIT */
/*
 * vms COUNT MIB: as many states, each in a thread of its own, and each with so much in small
 * strings; as much from malloc(), in small blocks. Tells "vm BYTES" of each state, then "ready".
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VMS_MAX = 16, BLOCK = 500, KIB = 1024, MIB = KIB * KIB };

static const char program[] = "kept = {} for i = 1, ... do kept[i] = i .. string.rep('x', 480) end\n"
			      "collectgarbage() collectgarbage('stop')\n";

#ifndef __GLIBC__
/* glibc's, which libgcc asks first: not found. */
int _dl_find_object(void *address, void *ret_object);
int _dl_find_object(void *address, void *ret_object)
{
	(void)address;
	(void)ret_object;
	return -1;
}
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int mib;

static void *run(void *argument)
{
	lua_State *L = luaL_newstate();

	luaL_openlibs(L);
	if (luaL_loadbuffer(L, program, strlen(program), "@vms.lua"))
		exit(1);
	lua_pushinteger(L, (lua_Integer)mib * MIB / BLOCK);
	if (lua_pcall(L, 1, 0, 0))
		exit(1);
	pthread_mutex_lock(&lock);
	printf("vm %lld\n", (long long)lua_gc(L, LUA_GCCOUNT, 0) * KIB + lua_gc(L, LUA_GCCOUNTB, 0));
	*(int *)argument += 1;
	pthread_mutex_unlock(&lock);
	for (;;)
		pause();
	return NULL;
}

int main(int argc, char **argv)
{
	int count = argc == 3 ? atoi(argv[1]) : 0, done = 0;
	pthread_t threads[VMS_MAX];

	if (count > VMS_MAX || count < 1)
		return 2;
	mib = atoi(argv[2]);
	for (long i = 0; i < (long)mib * MIB / BLOCK; i++)
		memset(malloc(BLOCK), 'y', BLOCK);
	for (int i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, run, &done))
			return 1;
	for (int told = 0; told < count; usleep(1000)) {
		pthread_mutex_lock(&lock);
		told = done;
		pthread_mutex_unlock(&lock);
	}
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
