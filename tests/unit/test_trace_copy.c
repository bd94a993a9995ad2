/* SPDX-License-Identifier: MIT */
/* The copy of a trace is one of the trace that was listed, and of no other that took its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_memory.h"
#include "unwind/compiled/trace_copy.h"
#include "unwind/lua/luajit.h"
#include "unwind/jit/traces.h"

enum { TRACE = MADE_UP_AT + 0x100, HEADER = 80, SIZE = 0x180, MCODE = 0x7000 };

static const struct layout layout = {
	.gc64 = true,
	.GChead_gct = 9,
	.GCtrace_startins = 32,
	.GCtrace_szmcode = 36,
	.GCtrace_mcode = 40,
	.GCtrace_traceno = 48,
	.GCtrace_spadjust = 50,
	.GCtrace_root = 52,
	.GCtrace_startpt = 56,
	.GCtrace_startpc = 64,
	.GCtrace_size = HEADER,
};
static const struct trace_summary summary = { .number = 7,
					      .address = TRACE,
					      .mcode = MCODE,
					      .szmcode = 100,
					      .root = 3,
					      .startpt = 0x50,
					      .startpc = 0x60 };
static struct memory *memory;
static struct trace trace;
static size_t block_size;
static void (*meanwhile)(void); /* what LuaJIT does between the two reads */

INSTEAD_OF(trace_block_size);
size_t __wrap_trace_block_size(const struct layout *of, uint64_t address, const uint8_t *header)
{
	assert_ptr_equal(of, &layout);
	assert_int_equal(address, TRACE);
	assert_int_equal(header[48], 7);
	if (meanwhile)
		meanwhile();
	return block_size;
}

static int begin(void **state)
{
	(void)state;
	memory = made_up_memory_begin();
	put(TRACE + 9, GCT_TRACE, 1);
	put(TRACE + 32, 0x11223344, 4);
	put(TRACE + 36, 100, 4);
	put(TRACE + 40, MCODE, 8);
	put(TRACE + 48, 7, 2);
	put(TRACE + 50, 16, 2);
	put(TRACE + 52, 3, 2);
	put(TRACE + 56, 0x50, 8);
	put(TRACE + 64, 0x60, 8);
	put(TRACE + SIZE - 1, 0xaa, 1);
	trace = (struct trace){ .number = 1 };
	block_size = SIZE;
	meanwhile = NULL;
	return 0;
}

static bool copy(void)
{
	return trace_copy_read(memory, &layout, &summary, &trace);
}

static void a_copy_has_all_of_the_block(void **state)
{
	(void)state;
	assert_true(copy());
	assert_int_equal(trace.address, TRACE);
	assert_int_equal(trace.number, 7);
	assert_int_equal(trace.mcode, MCODE);
	assert_int_equal(trace.szmcode, 100);
	assert_int_equal(trace.root, 3);
	assert_int_equal(trace.spadjust, 16);
	assert_int_equal(trace.startpt, 0x50);
	assert_int_equal(trace.startpc, 0x60);
	assert_int_equal(trace.startins, 0x11223344);
	assert_int_equal(trace.size, SIZE);
	assert_int_equal(trace.bytes[SIZE - 1], 0xaa);
	trace_copy_clear(&trace);
	assert_null(trace.bytes);
}

static void change(int field)
{
	switch (field) {
	case 0: put(TRACE + 9, GCT_TRACE + 1, 1); break;
	case 1: put(TRACE + 48, 8, 2); break;
	case 2: put(TRACE + 40, MCODE + 1, 8); break;
	default: put(TRACE + 36, 101, 4); break;
	}
}

static int changed;

static void change_one(void)
{
	change(changed);
}

static void another_trace_in_its_place_is_not_copied(void **state)
{
	for (int field = 0; field < 4; field++) {
		begin(state);
		change(field);
		assert_false(copy());
		/* It is there once the size is known. */
		begin(state);
		changed = field;
		meanwhile = change_one;
		assert_false(copy());
		assert_int_equal(trace.number, 1);
	}
}

static void a_block_that_cannot_be_read_is_not_copied(void **state)
{
	(void)state;
	block_size = 0; /* its header makes no sense */
	assert_false(copy());
	block_size = MADE_UP_BYTES;
	assert_false(copy());
	block_size = MADE_UP_BYTES - 0x100;
	assert_true(copy());
	trace_copy_clear(&trace);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, begin)
	const struct CMUnitTest tests[] = {
		TEST(a_copy_has_all_of_the_block),
		TEST(another_trace_in_its_place_is_not_copied),
		TEST(a_block_that_cannot_be_read_is_not_copied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
