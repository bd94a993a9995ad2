/* SPDX-License-Identifier: MIT */
/*
 * vms: VMs that allocate, each in a thread of its own, and know how much: two at the same time, or as many as
 * are asked for in turns.
 *
 * usage: vms ROUNDS.LUA SECONDS [VMS] (of CPU time, for all together)
 *
 * Prints "ready" when all have begun, and what each has allocated (rounds.lua), then "the end".
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

enum { VMS_MAX = 64, TURN = 200000 /* calls */ };

/* io and print are those of all VMs: they say nothing but the sums. */
static const char program[] = "local rounds, seconds, number, begin, tell, pass, turn = ...\n"
			      "local begun = false\n"
			      "local function start() begin() begun = turn > 0 end\n"
			      "io = { stdout = { write = start, flush = function() end } }\n"
			      "function print(name, bytes) if bytes then tell(name, bytes) end end\n"
			      "local function make(i) return { i, 2, 3 } end\n"
			      "local function spend(i)\n"
			      "	local x = i\n"
			      "	for _ = 1, 20 do x = (x * 1103515245 + 12345) % 2147483648 end\n"
			      "	if begun and i % turn == 0 then pass() end\n"
			      "	return x\n"
			      "end\n"
			      "dofile(rounds)({ { 'vm' .. number, make, 1 } }, seconds, 0, spend)\n";

static pthread_barrier_t barrier;
static char **arguments;

/* The VM whose turn it is, if they take turns; those that have ended have none. */
static bool in_turns, has_ended[VMS_MAX];
static int vm_count = 2, turn;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_passed = PTHREAD_COND_INITIALIZER;

static void await_turn(int number)
{
	pthread_mutex_lock(&lock);
	while (in_turns && turn != number)
		pthread_cond_wait(&has_passed, &lock);
	pthread_mutex_unlock(&lock);
}

static void pass_turn(int number)
{
	pthread_mutex_lock(&lock);
	for (int i = 1; i <= vm_count && turn == number; i++)
		if (!has_ended[(number + i) % vm_count])
			turn = (number + i) % vm_count;
	pthread_cond_broadcast(&has_passed);
	pthread_mutex_unlock(&lock);
}

static int begin(lua_State *L)
{
	if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
		puts("ready");
		fflush(stdout);
	}
	await_turn((int)lua_tointeger(L, lua_upvalueindex(1)));
	return 0;
}

static int next_turn(lua_State *L)
{
	const int number = (int)lua_tointeger(L, lua_upvalueindex(1));

	pass_turn(number);
	await_turn(number);
	return 0;
}

static int tell(lua_State *L)
{
	printf("%s\t%.0f\n", lua_tostring(L, 1), lua_tonumber(L, 2));
	return 0;
}

static void push(lua_State *L, lua_CFunction function, int number)
{
	lua_pushinteger(L, number);
	lua_pushcclosure(L, function, 1);
}

static void *run(void *argument)
{
	const int number = *(int *)argument;
	lua_State *L = luaL_newstate();

	if (!L)
		exit(1);
	luaL_openlibs(L);
	if (luaL_loadstring(L, program))
		exit(2);
	lua_pushstring(L, arguments[1]);
	lua_pushnumber(L, atof(arguments[2]));
	lua_pushinteger(L, number);
	push(L, begin, number);
	push(L, tell, number);
	push(L, next_turn, number);
	lua_pushinteger(L, in_turns ? TURN : 0);
	if (lua_pcall(L, 7, 0, 0)) {
		fprintf(stderr, "%s\n", lua_tostring(L, -1));
		exit(3);
	}
	lua_close(L);
	has_ended[number] = true;
	pass_turn(number);
	return NULL;
}

int main(int argc, char *argv[])
{
	pthread_t threads[VMS_MAX];
	int numbers[VMS_MAX];

	if (argc < 3 || argc > 4)
		return 1;
	arguments = argv;
	in_turns = argc == 4;
	if (in_turns)
		vm_count = atoi(argv[3]);
	if (vm_count < 1 || vm_count > VMS_MAX)
		return 1;
	pthread_barrier_init(&barrier, NULL, (unsigned int)vm_count);
	for (int i = 0; i < vm_count; i++) {
		numbers[i] = i;
		if (pthread_create(&threads[i], NULL, run, &numbers[i]))
			return 1;
	}
	for (int i = 0; i < vm_count; i++)
		pthread_join(threads[i], NULL);
	puts("the end");
	return 0;
}
