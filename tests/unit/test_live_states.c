/* SPDX-License-Identifier: MIT */
/* Stacks of processes that have several coroutines and states, which wait for input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/labels/frame_label.h"
#include "output/reports/dump_report.h"
#include "src/survey/dump_stacks.h"
#include "tests/unit/kept_text.h"
#include "tests/unit/live_process.h"

/* What the thread runs, the leaf first. */
static void print_thread(struct kept_text *kept, struct live *live)
{
	const struct frame *frames;
	const size_t count = live_unwind(live, &frames);

	assert_true(count > 0);
	for (size_t i = 0; i < count; i++) {
		char label[FRAME_LABEL_SIZE];

		frame_label(frames[i].function, frames[i].line, true, label);
		print_without_addresses(kept->out, label);
		fputs(frames[i].compiled ? " [compiled]\n" : "\n", kept->out);
	}
}

/* Where a state lies is chance: first those with most groups of coroutines. */
static int compare_states(const void *left, const void *right)
{
	const struct dump_vm *a = left, *b = right;

	return (a->group_count < b->group_count) - (a->group_count > b->group_count);
}

/* Each state, with its coroutines. */
static void print_states(struct kept_text *kept, struct live *live)
{
	struct dump_process *report = dump_process_new(1, "luajit");
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	assert_non_null(report);
	assert_non_null(out);
	assert_int_equal(dump_coroutines(live->process, NULL, report), 0);
	for (size_t i = 0; i < report->vm_count; i++) {
		struct dump_vm *vm = &report->vms[i];

		assert_true(vm->complete);
		/* The path is that of the tree. */
		assert_non_null(strstr(vm->module, LIVE_LUAJIT));
		memmove(vm->module, strstr(vm->module, LIVE_LUAJIT), sizeof(LIVE_LUAJIT));
	}
	qsort(report->vms, report->vm_count, sizeof(*report->vms), compare_states);
	dump_process_print(out, report);
	fclose(out);
	print_without_addresses(kept->out, text);
	free(text);
	dump_process_free(report);
}

static void judge(const char *program, size_t states, const char *example)
{
	struct kept_text kept;
	struct live live;

	live_begin(&live, program, 0, states);
	kept_text_begin(&kept);
	print_thread(&kept, &live);
	print_states(&kept, &live);
	live_end(&live);
	kept_text_check(&kept, example);
}

/*---- Coroutines ----*/

static const char coroutines[] =
	"local kept = {}\n"
	"local function keep(f, ...)\n"
	"  local co = coroutine.create(f)\n"
	"  kept[#kept + 1] = co\n"
	"  coroutine.resume(co, ...)\n"
	"  return co\n"
	"end\n"
	"local function deep(n)\n"
	"  if n == 0 then coroutine.yield() end\n"
	"  local result = deep(n - 1)\n"
	"  return result\n"
	"end\n"
	"kept[1] = coroutine.create(deep)\n"
	"for i = 1, 3 do keep(deep, 2) end\n"
	"keep(function() pcall(deep, 1) return 1 end)\n"
	"keep(function() for _ in coroutine.wrap(deep), 0 do coroutine.yield() end end)\n"
	"keep(function() table.foreach({ 1 }, function() coroutine.yield() end) return 1 end)\n"
	"keep(function() local x = setmetatable({}, { __index = function() coroutine.yield() end })\n"
	"  local y = x.y\n"
	"  return y\n"
	"end)\n"
	"keep(function() end)\n"
	"keep(function() error('x') end)\n"
	"keep(function()\n"
	"  local inner = coroutine.wrap(function()\n"
	"    io.write('ready') io.flush()\n"
	"    local line = io.read('*l')\n"
	"    return line\n"
	"  end)\n"
	"  local result = inner()\n"
	"  return result\n"
	"end)\n"
	"kept = nil\n";

static void each_coroutine_is_where_its_program_left_it(void **state)
{
	(void)state;
	judge(coroutines, 1, "live-coroutines.txt");
}

/*---- States ----*/

/* A state runs another one, which calls back into the first. A third is there and runs nothing. */
#define OTHER_STATES \
	"ffi = require('ffi')\n" \
	"ffi.cdef[[\n" \
	"  typedef struct lua_State lua_State;\n" \
	"  lua_State *luaL_newstate(void);\n" \
	"  lua_State *lua_newthread(lua_State *L);\n" \
	"  void luaL_openlibs(lua_State *L);\n" \
	"  int luaL_loadstring(lua_State *L, const char *s);\n" \
	"  int lua_pcall(lua_State *L, int nargs, int nresults, int errfunc);\n" \
	"  int lua_resume(lua_State *L, int nargs);\n" \
	"  void lua_pushcclosure(lua_State *L, int (*fn)(lua_State *), int n);\n" \
	"  void lua_setfield(lua_State *L, int index, const char *k);\n" \
	"]]\n" \
	"C = ffi.C\n" \
	"jit.off()\n" \
	"function new_state(text)\n" \
	"  local L = C.luaL_newstate()\n" \
	"  C.luaL_openlibs(L)\n" \
	"  C.luaL_loadstring(L, text)\n" \
	"  return L\n" \
	"end\n"

static const char states[] = OTHER_STATES
	"resting = new_state('return 1')\n"
	"local inner = new_state([[\n"
	"  local parked = coroutine.wrap(function() coroutine.yield() end)\n"
	"  parked()\n"
	"  local function within() local n = back() return n end\n"
	"  local n = within()\n"
	"  return n, parked\n"
	"]])\n"
	"local function wait() io.write('ready') io.flush() local line = io.read('*l') return line end\n"
	"local back = ffi.cast('int (*)(lua_State *)', function() wait() return 0 end)\n"
	"C.lua_pushcclosure(inner, back, 0)\n"
	"C.lua_setfield(inner, -10002, 'back')\n"
	"local function run() local status = C.lua_pcall(inner, 0, 0, 0) return status end\n"
	"local status = run()\n";

static void states_that_call_one_another_are_told_apart(void **state)
{
	(void)state;
	judge(states, 3, "live-states.txt");
}

/* So many that not all of them are copied at each look. */
static const char many[] = OTHER_STATES
	"local function wait() local line = io.read('*l') return line end\n"
	"local back = ffi.cast('int (*)(lua_State *)', function() wait() return 0 end)\n"
	"kept = {}\n"
	"for i = 1, 60 do\n"
	"  kept[i] = new_state('local function within() local n = back() return n end local n = within()')\n"
	"  C.lua_pushcclosure(kept[i], back, 0)\n"
	"  C.lua_setfield(kept[i], -10002, 'back')\n"
	"end\n"
	"io.write('ready') io.flush()\n"
	"local function run() local status = C.lua_pcall(kept[30], 0, 0, 0) return status end\n"
	"local status = run()\n";

static void states_of_a_stack_are_found_among_many(void **state)
{
	struct kept_text kept;
	struct live live;

	(void)state;
	live_begin(&live, many, 0, 61);
	assert_true(lua_process_global_count(live.process) > CAPTURE_GLOBALS_MAX);
	kept_text_begin(&kept);
	for (int i = 0; i < 2; i++) /* the second time, it is known where to look */
		print_thread(&kept, &live);
	live_end(&live);
	kept_text_check(&kept, "live-many-states.txt");
}

/* C code resumes a coroutine of another state, which waits. */
static const char resumed[] = OTHER_STATES
	"local L = C.luaL_newstate()\n"
	"C.luaL_openlibs(L)\n"
	"local co = C.lua_newthread(L)\n"
	"C.luaL_loadstring(co, [[\n"
	"  local function wait() local line = io.read('*l') return line end\n"
	"  local line = wait()\n"
	"]])\n"
	"io.write('ready') io.flush()\n"
	"local function run() local status = C.lua_resume(co, 0) return status end\n"
	"local status = run()\n";

static void what_c_code_resumes_stands_on_its_caller(void **state)
{
	(void)state;
	judge(resumed, 2, "live-resumed.txt");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_coroutine_is_where_its_program_left_it),
		cmocka_unit_test(states_that_call_one_another_are_told_apart),
		cmocka_unit_test(states_of_a_stack_are_found_among_many),
		cmocka_unit_test(what_c_code_resumes_stands_on_its_caller),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
