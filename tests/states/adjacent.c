/* SPDX-License-Identifier: MIT */
/*
 * adjacent threads|outer|inner SECONDS: states whose C frames lie in one mapping.
 *
 * threads: five threads have their stacks in one mapping, as those that glibc 2.43 makes one after the other.
 * The second and fourth one work in functions busy_1 and busy_3, the others sleep in sleeps_0, sleeps_2 and
 * sleeps_4. outer, inner: the only thread works in inner_works. outer_calls of another state has called it
 * through C. The state of that name is made first.
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

enum { THREADS = 5, STACK_BYTES = 256 << 10 };

static time_t end;
static lua_State *inner;

static int over(lua_State *L)
{
	lua_pushboolean(L, time(NULL) >= end);
	return 1;
}

static int nap(lua_State *L)
{
	(void)L;
	sleep((unsigned int)(end - time(NULL)));
	return 0;
}

static void load(lua_State *L, const char *name, const char *body)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "local over, call = ...\n"
		 "local function %1$s() %2$s end\n"
		 "local done = %1$s()\n"
		 "return done\n",
		 name, body);
	if (luaL_loadbuffer(L, text, strlen(text), "=adjacent"))
		exit(1);
}

static const char works[] =
	"while not over() do local n = 0 for i = 1, 1e5 do n = n + i % 7 end end return 1";
static const char calls[] = "call() return 1";

static lua_State *open_state(void)
{
	lua_State *L = luaL_newstate();

	if (!L)
		exit(1);
	luaL_openlibs(L);
	return L;
}

/* In the state, run a function of this name, which works or calls C. */
static void do_in(lua_State *L, const char *name, const char *body, lua_CFunction call)
{
	load(L, name, body);
	lua_pushcfunction(L, over);
	lua_pushcfunction(L, call);
	lua_call(L, 2, 0);
}

static void *thread(void *context)
{
	const int number = *(const int *)context;
	char name[16];

	snprintf(name, sizeof(name), "%s_%d", number % 2 ? "busy" : "sleeps", number);
	do_in(open_state(), name, number % 2 ? works : calls, nap);
	return NULL;
}

static int cross(lua_State *L)
{
	(void)L;
	do_in(inner, "inner_works", works, nap);
	return 0;
}

int main(int argc, char **argv)
{
	static int numbers[THREADS];
	pthread_t threads[THREADS];
	char *stacks;

	if (argc != 3)
		return 1;
	end = time(NULL) + atoi(argv[2]);
	if (strcmp(argv[1], "threads") != 0) {
		lua_State *first = open_state(), *second = open_state(), *outer;
		const bool outer_first = strcmp(argv[1], "outer") == 0;

		outer = outer_first ? first : second;
		inner = outer_first ? second : first;
		puts("ready");
		fflush(stdout);
		do_in(outer, "outer_calls", calls, cross);
		return 0;
	}
	stacks = mmap(NULL, THREADS * STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	if (stacks == MAP_FAILED)
		return 1;
	for (int i = 0; i < THREADS; i++) {
		pthread_attr_t attributes;

		numbers[i] = i;
		pthread_attr_init(&attributes);
		if (pthread_attr_setstack(&attributes, stacks + (size_t)i * STACK_BYTES, STACK_BYTES) ||
		    pthread_create(&threads[i], &attributes, thread, &numbers[i]))
			return 1;
	}
	puts("ready");
	fflush(stdout);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
