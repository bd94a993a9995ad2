/* SPDX-License-Identifier: MIT */
/*
 * host: many threads, each with a Lua state of its own.
 *
 * usage: host NUMBER THREADS
 *
 * Once a line has been read, each thread works for a moment and sleeps for longer, in a chunk that is
 * named after the process's NUMBER and its own. Only one of a process works at a time, so that many
 * threads do not fill the machine.
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MS = 1000 * 1000, WORK_NS = 10 * MS, SLEEP_US = 10000 * 1000 };

static const char program[] =
	"local function work() local sum = 0 for i = 1, 1e5 do sum = sum + i % 7 end return sum end\n"
	"return function() return 1 + work() end\n";

static const char *number;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static int64_t cpu_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return used.tv_sec * 1000ll * MS + used.tv_nsec;
}

static lua_State *open_state(int thread)
{
	lua_State *L = luaL_newstate();
	char name[64];

	snprintf(name, sizeof(name), "=process_%s_%d", number, thread);
	if (!L)
		exit(1);
	luaL_openlibs(L);
	if (luaL_loadbuffer(L, program, sizeof(program) - 1, name) || lua_pcall(L, 0, 1, 0))
		exit(1);
	return L;
}

static void *work(void *context)
{
	lua_State *L = context;

	for (;;) {
		pthread_mutex_lock(&turn);
		for (int64_t end = cpu_ns() + WORK_NS; cpu_ns() < end;) {
			lua_pushvalue(L, 1);
			lua_call(L, 0, 0);
		}
		pthread_mutex_unlock(&turn);
		usleep(SLEEP_US);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc == 3 ? atoi(argv[2]) : 0;
	lua_State *own;

	if (threads < 1)
		return 1;
	number = argv[1];
	own = open_state(0);
	pthread_mutex_lock(&turn);
	for (int i = 1; i < threads; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, work, open_state(i)))
			return 1;
	}
	puts("ready");
	fflush(stdout);
	if (getchar() == EOF)
		return 1;
	pthread_mutex_unlock(&turn);
	work(own);
	return 0;
}
