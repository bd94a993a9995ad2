/* SPDX-License-Identifier: MIT */
/*
 * later: Lua states that are made while it runs, and closed.
 *
 * usage: later MODE LIBRARY on|off SECONDS (LIBRARY is a libluajit; with or without JIT; of CPU time, once
 * told)
 *
 * Says "ready" when it spins in the state that it begins with (with none in
 * mode load), and goes on when it is told so by a line of input:
 *
 * pool	six threads have a state each, to the end
 * churn	two threads close and open a state every 20 ms of CPU time
 * brief	the same every 3 ms
 * crowd	threads end with their state after 60 ms, others take their places
 * load	the library is loaded now, and one state runs to the end
 *
 * Of the generation-th state all functions have that number in their names. Where
 * their line is is the same, and so is how long their code is. At its end it says
 * how many generations there were.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <luajit.h>

enum { POOL = 6, PAIR = 2, NS_PER_MS = 1000000, CALLS = 200 };

/* Of the library, as it is told at run time. */
static struct {
	lua_State *(*newstate)(void);
	void (*openlibs)(lua_State *L);
	int (*setmode)(lua_State *L, int index, int mode);
	int (*loadbuffer)(lua_State *L, const char *text, size_t size, const char *name);
	int (*pcall)(lua_State *L, int arguments, int results, int handler);
	void (*call)(lua_State *L, int arguments, int results);
	void (*getfield)(lua_State *L, int index, const char *name);
	void (*pushcclosure)(lua_State *L, lua_CFunction f, int upvalues);
	void (*setfield)(lua_State *L, int index, const char *name);
	void (*close)(lua_State *L);
} lua;

static const char *library;
static bool jit;
static int64_t end_ns; /* of the CPU time of the process: beside others, it lives for longer */
static atomic_int generations;

static const char program[] = "local function work_%1$06d() local sum = 0\n"
			      "	for i = 1, 20 do sum = sum + #string.rep('x', 1000 + i) end\n"
			      "	for i = 1, 2000 do sum = sum + i %% 7 end\n"
			      "	native(3000)\n"
			      "	return sum\n"
			      "end\n"
			      "function run_%1$06d() return 1 + work_%1$06d() end\n";

static int64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static bool is_over(void)
{
	return now_ns(CLOCK_PROCESS_CPUTIME_ID) >= end_ns;
}

static void *symbol(void *handle, const char *name)
{
	void *found = dlsym(handle, name);

	if (!found)
		exit(2);
	return found;
}

static void load(void)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_GLOBAL);

	if (!handle) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	*(void **)&lua.newstate = symbol(handle, "luaL_newstate");
	*(void **)&lua.openlibs = symbol(handle, "luaL_openlibs");
	*(void **)&lua.setmode = symbol(handle, "luaJIT_setmode");
	*(void **)&lua.loadbuffer = symbol(handle, "luaL_loadbuffer");
	*(void **)&lua.pcall = symbol(handle, "lua_pcall");
	*(void **)&lua.call = symbol(handle, "lua_call");
	*(void **)&lua.getfield = symbol(handle, "lua_getfield");
	*(void **)&lua.pushcclosure = symbol(handle, "lua_pushcclosure");
	*(void **)&lua.setfield = symbol(handle, "lua_setfield");
	*(void **)&lua.close = symbol(handle, "lua_close");
}

/* C code that Lua calls, so that not all samples find the VM's own code. */
static int native(lua_State *L)
{
	volatile int sum = 0;

	(void)L;
	for (int i = 0; i < 3000; i++)
		sum += i;
	return 0;
}

static lua_State *open_state(int number)
{
	char text[sizeof(program) + 128];
	lua_State *L = lua.newstate();

	if (!L)
		exit(1);
	lua.openlibs(L);
	if (!jit)
		lua.setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
	lua.pushcclosure(L, native, 0);
	lua.setfield(L, LUA_GLOBALSINDEX, "native");
	snprintf(text, sizeof(text), program, number);
	if (lua.loadbuffer(L, text, strlen(text), "@later.lua") || lua.pcall(L, 0, 0, 0))
		exit(1);
	return L;
}

/* A state with a program of its own, for so much CPU time of this thread. */
static void live(int64_t life_ns)
{
	int number = ++generations;
	int64_t dead_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) + life_ns;
	lua_State *L = open_state(number);
	char name[32];

	snprintf(name, sizeof(name), "run_%06d", number);
	do {
		for (int i = 0; i < CALLS; i++) {
			lua.getfield(L, LUA_GLOBALSINDEX, name);
			lua.call(L, 0, 0);
		}
	} while (!is_over() && (life_ns == 0 || now_ns(CLOCK_THREAD_CPUTIME_ID) < dead_ns));
	lua.close(L);
}

struct lives {
	int64_t life_ns; /* 0: to the end */
	bool is_one;     /* of this thread */
};

static void *thread(void *context)
{
	const struct lives *lives = context;

	do
		live(lives->life_ns);
	while (!is_over() && !lives->is_one);
	return NULL;
}

static void run_threads(int count, struct lives lives)
{
	pthread_t threads[POOL];

	do {
		for (int i = 0; i < count; i++)
			if (pthread_create(&threads[i], NULL, thread, &lives))
				exit(1);
		for (int i = 0; i < count; i++)
			pthread_join(threads[i], NULL);
	} while (!is_over());
}

static void *await_word(void *told)
{
	char line[8];

	puts("ready");
	fflush(stdout);
	if (fgets(line, sizeof(line), stdin))
		atomic_store((atomic_bool *)told, true);
	return NULL;
}

/* With a state of its own, unless there is to be none yet. */
static void spin_until_told(bool has_state)
{
	static atomic_bool told;
	lua_State *L = has_state ? open_state(0) : NULL;
	pthread_t waiting;

	if (pthread_create(&waiting, NULL, await_word, &told))
		exit(1);
	while (!told) {
		if (!L)
			continue;
		lua.getfield(L, LUA_GLOBALSINDEX, "run_000000");
		lua.call(L, 0, 0);
	}
	pthread_join(waiting, NULL);
}

int main(int argc, char **argv)
{
	bool loads_later;

	if (argc != 5)
		return 1;
	library = argv[2];
	jit = strcmp(argv[3], "on") == 0;
	loads_later = strcmp(argv[1], "load") == 0;
	if (!loads_later)
		load();
	spin_until_told(!loads_later);
	end_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) + atoi(argv[4]) * INT64_C(1000000000);
	if (loads_later)
		load();
	if (strcmp(argv[1], "churn") == 0)
		run_threads(PAIR, (struct lives){ 20 * NS_PER_MS, false });
	else if (strcmp(argv[1], "brief") == 0)
		run_threads(PAIR, (struct lives){ 3 * NS_PER_MS, false });
	else if (strcmp(argv[1], "crowd") == 0)
		run_threads(PAIR, (struct lives){ 60 * NS_PER_MS, true });
	else
		run_threads(loads_later ? 1 : POOL, (struct lives){ 0, true });
	printf("%d generations\n", generations);
	return 0;
}
