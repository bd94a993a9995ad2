/* SPDX-License-Identifier: MIT */
/*
 * A real LuaJIT process is recognised from its memory alone, and what is
 * found agrees with the objects that the process holds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "luajit-layouts/field.h"
#include "luajit-layouts/selftest/selftest.h"
#include "live_luajit.h"

static const char busy[] =
	"local function leaf(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end\n"
	"for i = 1, 200 do leaf(100) end io.write('ready\\n') io.flush() io.read()\n";

static struct live_luajit *start(const char *script)
{
	static struct live_luajit live;

	if (!live_start(&live, script)) {
		print_message("skipped: no LuaJIT at %s\n", live_executable());
		skip();
	}
	return &live;
}

static void count_verdict(void *context, const char *probe, const char *verdict)
{
	assert_true(probe[0] != '\0' && verdict[0] != '\0');
	++*(unsigned *)context;
}

static void a_sleeping_luajit_is_recognised(void **state)
{
	struct live_luajit *live = start(busy);
	unsigned verdicts = 0;

	(void)state;
	assert_true(live_recognise(live));
	assert_int_equal(recognise_confirm(&live->memory, &live->vm, live->g, count_verdict, &verdicts),
			 RECOGNISE_OK);
	assert_true(verdicts >= SELFTEST_COUNT);
	for (enum selftest test = 0; test < SELFTEST_COUNT; test++)
		assert_int_not_equal(selftest_run(&live->memory, &live->vm, live->g, test, NULL, NULL),
				     SELFTEST_FAILED);
	assert_true(live->vm.begin < live->vm.end && live->vm.end <= live->vm.ffi_call_end);
	live_stop(live);
}

static void no_field_is_left_unknown(void **state)
{
	struct live_luajit *live = start(busy);

	(void)state;
	assert_true(live_recognise(live));
	assert_int_equal(recognise_confirm(&live->memory, &live->vm, live->g, NULL, NULL), RECOGNISE_OK);
	assert_false(live->vm.traces_open || live->vm.bytecode_open);
	assert_null(layout_missing(&live->vm.layout));
	live_stop(live);
}

static void the_thread_on_the_c_stack_is_current(void **state)
{
	struct live_luajit *live = start(busy);
	const struct layout *layout = &live->vm.layout;
	uint64_t L = 0, main = 0, cframe = 0, owner = 0;

	(void)state;
	assert_true(live_recognise(live));
	assert_true(field_reference(&live->memory, layout, live->g + (uint64_t)layout->g_mainthref, &main));
	if (layout->g_cur_L != LAYOUT_ABSENT) {
		assert_true(field_reference(&live->memory, layout, live->g + (uint64_t)layout->g_cur_L, &L));
		assert_int_equal(L, main);
	}
	assert_true(memory_u64(&live->memory, main + (uint64_t)layout->L_cframe, &cframe));
	assert_true(field_reference(&live->memory, layout,
				    (cframe & ~UINT64_C(3)) + (uint64_t)layout->CFRAME_L, &owner));
	assert_int_equal(owner, main);
	live_stop(live);
}

/* The heap of a program may hold any bytes: a state is one only if all of it agrees. */
static void bytes_like_those_of_a_thread_are_no_state(void **state)
{
	struct live_luajit *live = start(
		"local ffi = require('ffi')\n"
		"local keep = {} for i = 1, 64 do keep[i] = ffi.new('uint64_t[1024]')\n"
		"  for j = 0, 1023 do keep[i][j] = 0x0606060606060606ULL end end\n"
		"io.write('ready\\n') io.flush() io.read() return keep\n");
	uint64_t g[2], begin, end;
	size_t states = 0;
	char line[512], flags[8];
	FILE *maps;

	(void)state;
	assert_true(live_recognise(live));
	maps = live_maps(live);
	while (fgets(line, sizeof(line), maps) != NULL) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &begin, &end, flags) == 3 &&
		    strncmp(flags, "rw", 2) == 0)
			states += recognise_states(&live->memory, &live->vm, begin, end, g, 1);
	}
	fclose(maps);
	assert_int_equal(states, 1);
	assert_int_equal(g[0], live->g);
	live_stop(live);
}

/* A range that begins or ends anywhere around a state does not lead to reading beyond it. */
static void a_range_that_cuts_a_state_is_searched_as_far_as_it_goes(void **state)
{
	struct live_luajit *live = start(busy);
	uint64_t L = 0, g;

	(void)state;
	assert_true(live_recognise(live));
	assert_true(field_reference(&live->memory, &live->vm.layout,
				    live->g + (uint64_t)live->vm.layout.g_mainthref, &L));
	assert_int_equal(recognise_states(&live->memory, &live->vm, L, L + 4096, &g, 1), 1);
	assert_int_equal(recognise_states(&live->memory, &live->vm, L + 8, L + 4096, &g, 1), 0);
	assert_int_equal(recognise_states(&live->memory, &live->vm, L, L + 8, &g, 1), 0);
	assert_int_equal(recognise_states(&live->memory, &live->vm, L, L, &g, 1), 0);
	assert_int_equal(recognise_states(&live->memory, &live->vm, L + 8, L, &g, 1), 0);
	live_stop(live);
}

/* Whatever a program does, its objects confirm the layout: or its Lua would not be shown. */
static void a_program_may_do_what_it_likes(void **state)
{
	static const char *const programs[] = {
		/* Tables of any size. */
		"local t = {} for i = 1, 20000 do t['key' .. i] = i end",
		"local t = {} for i = 1, 3000 do t[i] = 0 t[-i] = i t[i + 0.5] = true end"
		"  for i = 1, 3000 do t[-i] = nil end collectgarbage()",
		/* Nothing in the registry, nor in any table of globals. */
		"local registry, globals = debug.getregistry(), _G"
		"  for name in pairs(registry) do registry[name] = nil end"
		"  for name in pairs(globals) do if name ~= 'io' then globals[name] = nil end end",
		"setfenv(0, { io = io })",
		/* Files of libraries that were opened again since. */
		"kept = io.open('/dev/null') debug.setmetatable(kept, {})",
		"local f = loadstring(string.dump(function(a) local function g(b) return a + b end return g end, true))"
		"  kept = { f, f(1), loadstring(string.dump(f)) }",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		char script[1024];
		struct live_luajit *live;

		snprintf(script, sizeof(script),
			 "%s\nlocal io = io io.write('ready\\n') io.flush() io.read()", programs[i]);
		live = start(script);
		assert_true(live_recognise(live));
		assert_int_equal(recognise_confirm(&live->memory, &live->vm, live->g, NULL, NULL),
				 RECOGNISE_OK);
		live_stop(live);
	}
}

/* The thread that used the shared buffer last may be gone, with something else in its place. */
static void a_thread_that_is_gone_is_no_evidence(void **state)
{
	struct live_luajit *live = start(
		"jit.off() local keep = {}\n"
		"local co = coroutine.create(function() return table.concat({ 'x', 1, 2 }) end)\n"
		"io.write('ready\\n') io.flush() coroutine.resume(co) co = nil collectgarbage() collectgarbage()\n"
		"for i = 1, 200 do keep[i] = { {}, { 1 }, { 1, 2 }, { 1, 2, 3 }, { 1, 2, 3, 4 }, { 1, 2, 3, 4, 5 } } end\n"
		"while true do end\n");
	enum recognise_status status;

	(void)state;
	assert_true(live_recognise(live));
	assert_int_equal(kill(live->pid, SIGSTOP), 0);
	status = recognise_confirm(&live->memory, &live->vm, live->g, NULL, NULL);
	live_stop(live);
	assert_int_equal(status, RECOGNISE_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sleeping_luajit_is_recognised),
		cmocka_unit_test(no_field_is_left_unknown),
		cmocka_unit_test(the_thread_on_the_c_stack_is_current),
		cmocka_unit_test(bytes_like_those_of_a_thread_are_no_state),
		cmocka_unit_test(a_range_that_cuts_a_state_is_searched_as_far_as_it_goes),
		cmocka_unit_test(a_program_may_do_what_it_likes),
		cmocka_unit_test(a_thread_that_is_gone_is_no_evidence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
