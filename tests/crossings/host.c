/* SPDX-License-Identifier: MIT */
/*
 * host: a C program that crosses between Lua and native code in every way
 * there is, over and over. The stacks that it can be found in are listed in
 * crossings.lua.
 *
 * usage: host crossings.lua on|off SECONDS           (with or without JIT)
 *        host crossings.lua on|off SECONDS alarms    (and interrupted by signals)
 *        host crossings.lua park                     (waits for input in burn)
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <luajit.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Keeps the call before it from becoming a jump. */
#define NOT_A_TAIL_CALL __asm__ volatile("" ::: "memory")
#define OUT_OF_LINE __attribute__((noinline))

static volatile double sink;
static bool parks;

OUT_OF_LINE void burn(void);
void burn(void)
{
	char byte;

	if (parks && read(STDIN_FILENO, &byte, 1) <= 0)
		exit(0);
	for (int i = 0; i < 3000; i++)
		sink += i;
}

/*---- Signals ----*/

void on_alarm(int signal);
void on_alarm(int signal)
{
	(void)signal;
	for (int i = 0; i < 10; i++)
		burn();
	/* So that the last call, once the loop is unrolled, is no jump that leaves no frame. */
	__asm__ volatile("");
}

/* The handler has about a third of the time. */
static void set_alarms(void)
{
	const struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	const struct itimerval often = { .it_interval.tv_usec = 200, .it_value.tv_usec = 200 };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
}

/*---- C functions called from Lua ----*/

int burn_in_c(lua_State *L);
int burn_in_c(lua_State *L)
{
	(void)L;
	burn();
	NOT_A_TAIL_CALL;
	return 0;
}

/* Calls its argument. */
int bounce(lua_State *L);
int bounce(lua_State *L)
{
	lua_pushvalue(L, 1);
	lua_call(L, 0, 0);
	return 0;
}

/* Indexes its argument, which has a metamethod for that. */
int index_it(lua_State *L);
int index_it(lua_State *L)
{
	lua_getfield(L, 1, "missing");
	return 0;
}

/* Runs its argument as a coroutine. */
int resume_it(lua_State *L);
int resume_it(lua_State *L)
{
	lua_State *thread = lua_newthread(L);

	lua_pushvalue(L, 1);
	lua_xmove(L, thread, 1);
	lua_resume(thread, 0);
	return 0;
}

void in_hook(lua_State *L, lua_Debug *event);
void in_hook(lua_State *L, lua_Debug *event)
{
	(void)L;
	(void)event;
	burn();
	NOT_A_TAIL_CALL;
}

int with_hook(lua_State *L);
int with_hook(lua_State *L)
{
	lua_sethook(L, in_hook, LUA_MASKCOUNT, 100);
	lua_pushvalue(L, 1);
	lua_call(L, 0, 0);
	lua_sethook(L, NULL, 0, 0);
	return 0;
}

/*---- Ways into Lua ----*/

OUT_OF_LINE static void run_call(lua_State *L, const char *name)
{
	lua_getglobal(L, name);
	lua_call(L, 0, 0);
	NOT_A_TAIL_CALL;
}

OUT_OF_LINE static void run_pcall(lua_State *L)
{
	lua_getglobal(L, "from_pcall");
	lua_pcall(L, 0, 0, 0);
	NOT_A_TAIL_CALL;
}

int in_cpcall(lua_State *L);
int in_cpcall(lua_State *L)
{
	lua_getglobal(L, "from_cpcall");
	lua_call(L, 0, 0);
	return 0;
}

OUT_OF_LINE static void run_cpcall(lua_State *L)
{
	lua_cpcall(L, in_cpcall, NULL);
	NOT_A_TAIL_CALL;
}

OUT_OF_LINE static void run_resume(lua_State *L)
{
	lua_State *thread = lua_newthread(L);

	lua_getglobal(L, "from_resume");
	lua_xmove(L, thread, 1);
	lua_resume(thread, 0);
	lua_settop(L, 0);
	NOT_A_TAIL_CALL;
}

int main(int argc, char **argv)
{
	static const char *const names[] = {
		"from_call",      "calls_c",       "indexes", "indexes_in_c", "finalizes",    "is_hooked",
		"sorts",          "substitutes",   "resumes", "wraps",        "resumes_in_c", "calls_ffi",
		"is_called_back", "makes_garbage", "parses",  "compiles",
	};
	lua_State *L = luaL_newstate();
	const luaL_Reg functions[] = {
		{ "burn_in_c", burn_in_c }, { "bounce", bounce },       { "index_it", index_it },
		{ "resume_it", resume_it }, { "with_hook", with_hook }, { NULL, NULL },
	};

	if (!L || argc < 3)
		return 1;
	luaL_openlibs(L);
	for (const luaL_Reg *added = functions; added->name; added++)
		lua_register(L, added->name, added->func);
	parks = strcmp(argv[2], "park") == 0;
	if (strcmp(argv[2], "on") != 0)
		luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
	if (luaL_dofile(L, argv[1])) {
		fprintf(stderr, "%s\n", lua_tostring(L, -1));
		return 1;
	}
	if (argc > 4)
		set_alarms();
	puts("ready");
	fflush(stdout);
	for (time_t end = time(NULL) + (parks ? 240 : atoi(argv[3])); time(NULL) < end;) {
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			run_call(L, names[i]);
		run_pcall(L);
		run_cpcall(L);
		run_resume(L);
	}
	lua_close(L);
	return 0;
}
