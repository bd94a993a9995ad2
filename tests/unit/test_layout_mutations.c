/* SPDX-License-Identifier: MIT */
/*
 * A layout that is wrong about one field, by as much as one field, is found
 * out: either the VM's code says otherwise, or a self-test on a live state
 * fails. What cannot be found out is listed, with the reason. LJSPY_TEST_LUAJIT
 * names the build that it is tried with (live_luajit.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "luajit-layouts/selftest/selftest.h"
#include "luajit-layouts/module/vm_code_x86_64.h"
#include "memory/page_cache.h"
#include "live_luajit.h"

/* Traces with loops and side traces, objects of each type, a suspended coroutine; then asleep. */
static const char script[] =
	"local function leaf(n) local s = 0 for i = 1, n do\n"
	"  if i % 3 == 0 then s = s + i elseif i % 7 == 1 then s = s - 1 end end return s end\n"
	"local function loops(n) local s = 0 for i = 1, n do s = s + i end\n"
	"  for i = 1, n do s = s - i end for i = 1, n do s = s + 2 * i end return s end\n"
	"local function up(d) if d == 0 then return 1 end return up(d - 1) + 1 end\n"
	"local t = setmetatable({}, { __index = function(_, k) return k end })\n"
	"local names, list = {}, { 1, 2, 3, 4 }\n"
	"for i = 1, 300 do leaf(100) loops(50) up(20) names['k' .. i % 50] = i list[i] = t[i]\n"
	"  for _, v in pairs(names) do list[1] = list[1] + v end end\n"
	"local co = coroutine.wrap(function() while true do coroutine.yield(1) end end) co()\n"
	"pcall(require, 'ffi')\n"
	"local function counter() local n = 0 return function() n = n + 1 return n end end\n"
	"local kept = { counter(), counter(), { 1, 2, 3 }, co }\n"
	"local x = 0 local function open() x = x + 1 return x end open()\n"
	"io.write('ready\\n') io.flush()\n"
	"pcall(function() while io.read() do open() end end)\n"
	"return kept\n";

static const struct {
	const char *field, *reason;
} blind[] = {
	{ "GCtrace.mcloop", "0 for a trace without a loop; nothing is read by it" },
	{ "g.ctype_state", "NULL in a build without FFI; nothing is read by it" },
	{ "g.tmpbuf_L", "may lead to a thread long gone; nothing is read by it" },
};

static const char *reason_for(const char *name)
{
	for (size_t i = 0; i < sizeof(blind) / sizeof(blind[0]); i++) {
		if (strcmp(blind[i].field, name) == 0)
			return blind[i].reason;
	}
	return NULL;
}

static void read_code(struct live_luajit *live, struct vm_code_evidence *evidence)
{
	size_t length = live->vm.end - live->vm.begin;
	uint8_t *code = malloc(length);

	assert_int_equal(memory_read(&live->memory, live->vm.begin, code, length), MEMORY_OK);
	assert_int_equal(vm_code_x86_64_read(code, length, live->vm.begin, evidence), VM_CODE_OK);
	free(code);
}

static bool is_refused(const struct live_luajit *live, struct memory *memory, const struct vm_code *vm)
{
	for (enum selftest test = 0; test < SELFTEST_COUNT; test++)
		if (selftest_run(memory, vm, live->g, test, NULL, NULL) == SELFTEST_FAILED)
			return true;
	return false;
}

/* Are all of the wrong offsets that lie one field's size away found out? */
static bool is_found_out(struct live_luajit *live, struct memory *memory,
			 const struct vm_code_evidence *evidence, const struct layout_field *field)
{
	static const int32_t steps[] = { -8, -4, 4, 8 };

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct vm_code wrong = live->vm;
		int32_t *offset = layout_offset_in(&wrong.layout, field);

		*offset += steps[i];
		if (*offset < 0)
			continue;
		if (layout_conflict(&wrong.layout, &evidence->offsets) == NULL &&
		    !is_refused(live, memory, &wrong))
			return false;
	}
	return true;
}

static void a_wrong_offset_is_found_out(void **state)
{
	struct live_luajit live = { .pid = 0 };
	struct vm_code_evidence evidence;
	struct page_cache *cache;
	unsigned missed = 0;

	(void)state;
	if (!live_start(&live, script)) {
		print_message("skipped: no LuaJIT at %s\n", live_executable());
		skip();
	}
	assert_true(live_recognise(&live));
	assert_int_equal(recognise_confirm(&live.memory, &live.vm, live.g, NULL, NULL), RECOGNISE_OK);
	assert_false(live.vm.traces_open);
	read_code(&live, &evidence);
	cache = page_cache_new(&live.memory); /* it holds still */
	assert_non_null(cache);
	for (size_t i = 0; i < layout_field_count; i++) {
		const struct layout_field *field = &layout_fields[i];

		if (layout_offset(&live.vm.layout, field) < 0 ||
		    is_found_out(&live, page_cache_memory(cache), &evidence, field))
			continue;
		if (reason_for(field->name) != NULL) {
			print_message("%s: cannot be told (%s)\n", field->name, reason_for(field->name));
		} else {
			print_message("%s: a wrong offset goes unnoticed\n", field->name);
			missed++;
		}
	}
	page_cache_free(cache);
	live_stop(&live);
	assert_int_equal(missed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wrong_offset_is_found_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
