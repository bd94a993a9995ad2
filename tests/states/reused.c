/* SPDX-License-Identifier: MIT */
/*
 * reused: two threads, one after the other, have the same id, and a Lua state of their own each.
 *
 * Each works in a Lua function, first_job or second_job, then sleeps. Prints for each thread, in ms, the CPU
 * time that it had and how long it was there: "first_job 600 900". Prints "no such id" if the kernel does
 * not give the id again.
 */
#include <fcntl.h>
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WORK_FIRST_MS = 600, WORK_SECOND_MS = 500, SLEEP_MS = 300, GAP_MS = 1000, TRIES = 200 };

struct job {
	const char *name;
	int work_ms;
	pid_t wanted; /* 0: any */
	pid_t tid;    /* of the thread that has done it; 0: it had another id than the wanted one */
};

static const char program[] = "local function %1$s(used)\n"
			      "	local n = 0\n"
			      "	while used() < %2$d do for i = 1, 1e4 do n = n + i %% 7 end end\n"
			      "	return n\n"
			      "end\n"
			      "local n = %1$s(...)\n"
			      "return n\n";

static long clock_ms(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int used(lua_State *L)
{
	lua_pushnumber(L, (lua_Number)clock_ms(CLOCK_THREAD_CPUTIME_ID));
	return 1;
}

static void *run(void *context)
{
	struct job *job = context;
	long begin_ms = clock_ms(CLOCK_MONOTONIC);
	char text[sizeof(program) + 64];
	lua_State *L;

	if (job->wanted && job->wanted != gettid())
		return NULL;
	L = luaL_newstate();
	luaL_openlibs(L);
	snprintf(text, sizeof(text), program, job->name, job->work_ms);
	if (luaL_loadbuffer(L, text, strlen(text), "@job.lua"))
		exit(1);
	lua_pushcfunction(L, used);
	lua_call(L, 1, 0);
	usleep(SLEEP_MS * 1000);
	printf("%s %ld %ld\n", job->name, clock_ms(CLOCK_THREAD_CPUTIME_ID),
	       clock_ms(CLOCK_MONOTONIC) - begin_ms);
	job->tid = gettid();
	return NULL;
}

static void run_thread(struct job *job)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, job) || pthread_join(thread, NULL))
		exit(1);
}

/* The next process or thread, of anybody, has this id. */
static bool choose_id(pid_t tid)
{
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY);
	bool chosen = fd >= 0 && dprintf(fd, "%d", (int)tid - 1) > 0;

	if (fd >= 0)
		close(fd);
	return chosen;
}

int main(void)
{
	lua_State *L = luaL_newstate(); /* ljspy attaches to a process with LuaJIT */
	struct job first = { .name = "first_job", .work_ms = WORK_FIRST_MS };
	struct job second = { .name = "second_job", .work_ms = WORK_SECOND_MS };

	usleep(GAP_MS * 1000);
	run_thread(&first);
	second.wanted = first.tid;
	usleep(GAP_MS * 1000);
	for (int i = 0; i < TRIES && !second.tid && choose_id(first.tid); i++)
		run_thread(&second);
	if (!second.tid)
		puts("no such id");
	lua_close(L);
	return 0;
}
