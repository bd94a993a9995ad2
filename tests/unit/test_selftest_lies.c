/* SPDX-License-Identifier: MIT */
/* Does each self-test find out memory that a state cannot have? A live state, and one lie about it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "luajit-layouts/bytecode.h"
#include "luajit-layouts/field.h"
#include "luajit-layouts/selftest/selftest.h"
#include "tests/unit/live_luajit.h"

enum { BYTECODE_BYTES = 4 };

static const char script[] =
	"local function leaf(n) return n + 1 end local function up(n) return leaf(n) end up(1)\n"
	"io.write('ready\\n') io.flush() io.read()\n";

/* The live memory, but for some words. */
struct liar {
	struct memory memory;
	struct memory *truth;
	struct lie {
		uint64_t address, value;
	} lies[2];
	size_t count;
	uint8_t header;          /* an opcode; 0: none */
	uint64_t header_address; /* where the first instruction with it was read */
};

static void lie_in(struct memory_range *range, const struct lie *lie)
{
	const uint8_t *bytes = (const uint8_t *)&lie->value;

	for (size_t i = 0; i < sizeof(lie->value); i++)
		if (lie->address + i - range->address < range->length)
			((uint8_t *)range->copy)[lie->address + i - range->address] = bytes[i];
}

static void read_lies(struct memory *memory, struct memory_range *ranges, size_t count)
{
	struct liar *liar = (struct liar *)memory;

	memory_read_ranges(liar->truth, ranges, count);
	for (size_t i = 0; i < count; i++)
		if (liar->header && !liar->header_address && ranges[i].length == BYTECODE_BYTES &&
		    *(const uint8_t *)ranges[i].copy == liar->header)
			liar->header_address = ranges[i].address;
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < liar->count && ranges[i].status == MEMORY_OK; j++)
			lie_in(&ranges[i], &liar->lies[j]);
}

static struct live_luajit live;
static struct liar liar;

static int begin(void **state)
{
	(void)state;
	live = (struct live_luajit){ .pid = 0 };
	if (!live_start(&live, script))
		return 0;
	liar = (struct liar){ .memory = { .read_ranges = read_lies }, .truth = &live.memory };
	return live_recognise(&live) &&
			       recognise_confirm(&live.memory, &live.vm, live.g, NULL, NULL) == RECOGNISE_OK
		       ? 0
		       : -1;
}

static int end(void **state)
{
	(void)state;
	if (live.pid)
		live_stop(&live);
	return 0;
}

static void need_luajit(void)
{
	if (live.pid)
		return;
	print_message("skipped: no LuaJIT at %s\n", live_executable());
	skip();
}

static uint64_t word(uint64_t address)
{
	uint64_t value = 0;

	assert_true(memory_u64(&live.memory, address, &value));
	return value;
}

static enum selftest_verdict run(enum selftest test)
{
	return selftest_run(&liar.memory, &live.vm, live.g, test, NULL, NULL);
}

static void truth_passes(void **state)
{
	(void)state;
	need_luajit();
	assert_int_equal(run(SELFTEST_STRINGS), SELFTEST_PASSED);
	assert_int_equal(run(SELFTEST_OBJECTS), SELFTEST_PASSED);
}

/* They are the names of metamethods, each in its place. */
static void names_in_another_order_are_found_out(void **state)
{
	uint64_t root = live.g + (uint64_t)live.vm.layout.g_gcroot;

	(void)state;
	need_luajit();
	if (!live.vm.layout.gc64)
		skip();
	liar.lies[0] = (struct lie){ root, word(root + 8) };
	liar.lies[1] = (struct lie){ root + 8, word(root) };
	liar.count = 2;
	assert_int_equal(run(SELFTEST_STRINGS), SELFTEST_FAILED);
}

/* The registry is older than all tables but that of the globals. */
static void registry_of_another_age_is_found_out(void **state)
{
	uint64_t registry;

	(void)state;
	need_luajit();
	if (!live.vm.layout.gc64)
		skip();
	registry = word(live.g + (uint64_t)live.vm.layout.g_registrytv) & ((UINT64_C(1) << 47) - 1);
	liar.lies[0] = (struct lie){ registry + (uint64_t)live.vm.layout.GChead_nextgc, registry };
	liar.count = 1;
	assert_int_equal(run(SELFTEST_OBJECTS), SELFTEST_FAILED);
}

/* A function begins with a header: no other instruction, in whichever numbering. */
static void other_numberings_of_bytecode_are_found_out(void **state)
{
	enum layout_bytecode own = live.vm.layout.bytecode;
	struct layout trial = live.vm.layout;
	unsigned int others = 0;

	(void)state;
	need_luajit();
	for (enum layout_bytecode set = 0; set < BYTECODE_COUNT; set++) {
		trial.bytecode = set;
		if (bytecode_number(&trial, BC_FUNCF) == bytecode_number(&live.vm.layout, BC_FUNCF))
			continue;
		others++;
		live.vm.layout.bytecode = set;
		assert_int_equal(run(SELFTEST_OBJECTS), SELFTEST_FAILED);
		live.vm.layout.bytecode = own;
	}
	assert_true(others > 0);
}

/* The same of a single function. */
static void function_without_a_header_is_found_out(void **state)
{
	int funcf = bytecode_number(&live.vm.layout, BC_FUNCF),
	    jmp = bytecode_number(&live.vm.layout, BC_JMP);

	(void)state;
	need_luajit();
	liar.header = (uint8_t)funcf;
	assert_int_equal(run(SELFTEST_OBJECTS), SELFTEST_PASSED);
	assert_int_not_equal(liar.header_address, 0);
	liar.lies[0] = (struct lie){ liar.header_address,
				     (word(liar.header_address) & ~UINT64_C(0xff)) | (uint8_t)jmp };
	liar.count = 1;
	assert_int_equal(run(SELFTEST_OBJECTS), SELFTEST_FAILED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(truth_passes, begin, end),
		cmocka_unit_test_setup_teardown(names_in_another_order_are_found_out, begin, end),
		cmocka_unit_test_setup_teardown(registry_of_another_age_is_found_out, begin, end),
		cmocka_unit_test_setup_teardown(other_numberings_of_bytecode_are_found_out, begin, end),
		cmocka_unit_test_setup_teardown(function_without_a_header_is_found_out, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
