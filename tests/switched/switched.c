/* SPDX-License-Identifier: MIT */
/*
 * switched: native code that Lua calls, and that goes over to a stack of its own.
 *
 * usage: switched main|thread on|off SECONDS (which thread runs it; with or without JIT; of CPU time)
 *
 * In turn, for the same number of steps each:
 *
 * context	swapcontext(), to a stack that was mapped
 * fiber	a switch in assembly, as C coroutine libraries have it, to a stack of malloc()
 * calling	swapcontext(), and there a call of Lua
 * nested	the same of a coroutine that Lua has resumed, and a call in a Lua thread of its own there
 * alarm	a signal's alternate stack
 *
 * Says "ready", and at its end how much CPU time was spent in each, in milliseconds.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include <lauxlib.h>
#include <lua.h>
#include <luajit.h>
#include <lualib.h>

enum { STACK_BYTES = 256 << 10, STEPS = 200000, KINDS = 5 };

static const char *const kinds[KINDS] = { "context", "fiber", "calling", "nested", "alarm" };

static const char program[] =
	"local function work()\n" /* 1 */
	"	local sum = 0\n"
	"	for i = 1, 60000 do sum = sum + i % 7 end\n"
	"	return sum\n"
	"end\n"
	"function called() return 1 + work() end\n"            /* 6 */
	"local function context() on_context() return 1 end\n" /* 7 */
	"local function fiber() on_fiber() return 1 end\n"     /* 8 */
	"local function calling() on_calling() return 1 end\n" /* 9 */
	"local function inner() on_nested() return 1 end\n"    /* 10 */
	"local function nested() coroutine.wrap(inner)() return 1 end\n"
	"local function alarm() on_alarm() return 1 end\n" /* 12 */
	"function run() return context() + fiber() + calling() + nested() + alarm() end\n";

static char *mapped_stack, *heap_stack, *signal_stack;
static ucontext_t caller, callee;
static void *caller_sp;
static lua_State *other_thread;
static uint64_t spent_ns[KINDS];
static volatile int raised;
static const char *jit;
static int seconds;

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

__attribute__((noinline, noclone)) void burn(void)
{
	for (volatile int i = 0; i < STEPS; i++)
		;
}

/*---- Switches ----*/

/* void switch_stack(void **ret_old_sp, void *sp) */
__asm__(".text\n"
	"switch_stack:\n"
	"	push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
	"	mov %rsp, (%rdi)\n"
	"	mov %rsi, %rsp\n"
	"	pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n"
	"	ret\n");
void switch_stack(void **ret_old_sp, void *sp);

static void in_fiber(void)
{
	void *gone;

	burn();
	switch_stack(&gone, caller_sp);
}

static void in_context(void)
{
	burn();
}

static void in_calling(void)
{
	lua_getfield(other_thread, LUA_GLOBALSINDEX, "called");
	lua_call(other_thread, 0, 0);
}

static void switch_context(void (*function)(void))
{
	getcontext(&callee);
	callee.uc_stack.ss_sp = mapped_stack;
	callee.uc_stack.ss_size = STACK_BYTES;
	callee.uc_link = &caller;
	makecontext(&callee, function, 0);
	swapcontext(&caller, &callee);
}

/*---- What Lua calls ----*/

static int spent(int kind, uint64_t since_ns)
{
	spent_ns[kind] += cpu_ns() - since_ns;
	return 0;
}

static int on_context(lua_State *L)
{
	uint64_t since_ns = cpu_ns();

	(void)L;
	switch_context(in_context);
	return spent(0, since_ns);
}

static int on_fiber(lua_State *L)
{
	uint64_t since_ns = cpu_ns();
	/* Seven words to be taken off, and the stack pointer as a call leaves it. */
	uintptr_t *sp = (uintptr_t *)(((uintptr_t)heap_stack + STACK_BYTES) & ~(uintptr_t)15) - 8;

	(void)L;
	memset(sp, 0, 8 * sizeof(*sp));
	sp[6] = (uintptr_t)in_fiber;
	switch_stack(&caller_sp, sp);
	return spent(1, since_ns);
}

static int on_calling(lua_State *L)
{
	uint64_t since_ns = cpu_ns();

	other_thread = L;
	switch_context(in_calling);
	return spent(2, since_ns);
}

static int on_nested(lua_State *L)
{
	uint64_t since_ns = cpu_ns();

	other_thread = lua_newthread(L);
	switch_context(in_calling);
	return spent(3, since_ns);
}

static void handle(int number)
{
	burn();
	raised = number;
}

static int on_alarm(lua_State *L)
{
	uint64_t since_ns = cpu_ns();

	(void)L;
	raise(SIGUSR1);
	return spent(4, since_ns);
}

/*---- ----*/

static void add(lua_State *L, const char *name, lua_CFunction function)
{
	lua_pushcclosure(L, function, 0);
	lua_setfield(L, LUA_GLOBALSINDEX, name);
}

static void *run(void *context)
{
	stack_t alternate = { .ss_sp = signal_stack, .ss_size = STACK_BYTES };
	lua_State *L = luaL_newstate();
	uint64_t end_ns = cpu_ns() + seconds * 1000000000ull;

	luaL_openlibs(L);
	if (strcmp(jit, "off") == 0)
		luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
	add(L, "on_context", on_context);
	add(L, "on_fiber", on_fiber);
	add(L, "on_calling", on_calling);
	add(L, "on_nested", on_nested);
	add(L, "on_alarm", on_alarm);
	if (sigaltstack(&alternate, NULL) || luaL_loadbuffer(L, program, strlen(program), "@switched.lua") ||
	    lua_pcall(L, 0, 0, 0))
		exit(1);
	puts("ready");
	fflush(stdout);
	while (cpu_ns() < end_ns) {
		lua_getfield(L, LUA_GLOBALSINDEX, "run");
		lua_call(L, 0, 0);
	}
	lua_close(L);
	return context;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = handle, .sa_flags = SA_ONSTACK };
	pthread_t thread;

	if (argc != 4)
		return 1;
	jit = argv[2];
	seconds = atoi(argv[3]);
	/* Before the thread's own, which so lies below it; the first thread's lies above. */
	mapped_stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	heap_stack = malloc(STACK_BYTES);
	signal_stack = malloc(STACK_BYTES);
	if (mapped_stack == MAP_FAILED || !heap_stack || !signal_stack || sigaction(SIGUSR1, &action, NULL))
		return 1;
	if (strcmp(argv[1], "main") == 0)
		run(NULL);
	else if (pthread_create(&thread, NULL, run, NULL) || pthread_join(thread, NULL))
		return 1;
	for (int i = 0; i < KINDS; i++)
		printf("%s %d ms\n", kinds[i], (int)(spent_ns[i] / 1000000));
	puts("done");
	return 0;
}
