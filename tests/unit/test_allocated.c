/* SPDX-License-Identifier: MIT */
/* How much has a VM allocated between two looks, and which objects? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "luajit-layouts/field.h"
#include "luajit-layouts/layout.h"
#include "luajit-layouts/vm.h"
#include "tests/unit/made_up_memory.h"
#include "unwind/allocation/allocated.h"
#include "unwind/lua/luajit.h"

enum { MARK = GCSpropagate, SWEEP = GCSsweep };

static struct allocated between(uint64_t total, uint64_t estimate, uint8_t state, uint64_t then_total,
				uint64_t then_estimate, uint8_t then_state)
{
	const struct allocation_counters before = { .total = total, .estimate = estimate, .state = state },
					 after = { .total = then_total,
						   .estimate = then_estimate,
						   .state = then_state };

	return allocated_between(&before, &after);
}

static void the_counters_tell_what_was_allocated(void **state)
{
	struct allocated allocated = between(1000, 500, MARK, 1600, 500, MARK);

	(void)state;
	assert_int_equal(allocated.bytes, 600);
	assert_false(allocated.has_marked);
	/* A sweep has freed 300 meanwhile. */
	allocated = between(2000, 2000, SWEEP, 2300, 1700, SWEEP);
	assert_int_equal(allocated.bytes, 600);
	assert_false(allocated.has_marked);
	allocated = between(2000, 1800, SWEEP, 1500, 1200, GCSpause);
	assert_int_equal(allocated.bytes, 100);
	assert_false(allocated.has_marked);
	/* In the middle of a step of the sweep. */
	allocated = between(2000, 1800, SWEEP, 1500, 1800, SWEEP);
	assert_int_equal(allocated.bytes, -500);
	assert_false(allocated.has_marked);
}

static void the_end_of_a_marking_is_noticed(void **state)
{
	(void)state;
	assert_true(between(2000, 500, MARK, 2300, 2200, SWEEP).has_marked);
	assert_int_equal(between(2000, 500, MARK, 2300, 2200, SWEEP).bytes, 300);
	assert_true(between(2000, 1500, MARK, 1300, 1200, SWEEP).has_marked);
	assert_true(between(2000, 1500, SWEEP, 2300, 1400, GCSsweepstring).has_marked);
	assert_true(between(900000, 800000, SWEEP, 500000, 499000, GCSpause).has_marked);
}

/* The table of strings, of 512 KiB, gets half its size at the end of a sweep; the looks come while it does. */
static void a_table_of_strings_that_halves_is_no_marking(void **state)
{
	enum { TABLE = 512 << 10 };
	const struct allocation_counters before = { .total = 6000000,
						    .estimate = 5900000,
						    .string_table = TABLE,
						    .has_few_strings = true,
						    .state = SWEEP };
	struct allocation_counters after = before;

	(void)state;
	after.estimate -= 4000;
	after.total -= TABLE / 2; /* the old one has been freed, and mask not yet set */
	assert_false(allocated_between(&before, &after).has_marked);
	after.has_few_strings = false;
	assert_true(allocated_between(&before, &after).has_marked);
	after.string_table = TABLE / 2;
	assert_false(allocated_between(&before, &after).has_marked);
	after.total -= TABLE;
	assert_true(allocated_between(&before, &after).has_marked);
}

static void strings_are_known_while_none_are_freed(void **state)
{
	struct allocation_counters before = { .total = 100, .estimate = 50, .strings = 5, .state = MARK },
				   after = { .total = 200, .estimate = 50, .strings = 7, .state = MARK };

	(void)state;
	assert_true(allocated_between(&before, &after).knows_strings);
	assert_int_equal(allocated_between(&before, &after).strings, 2);
	after.strings = 4;
	assert_false(allocated_between(&before, &after).knows_strings);
	after.strings = 7;
	before.state = after.state = GCSsweepstring;
	assert_false(allocated_between(&before, &after).knows_strings);
}

/* The table of strings is 1 MB: one look came while it doubled. */
static void a_table_of_strings_that_grows_is_noticed(void **state)
{
	struct allocation_counters before = { .total = 5000000, .estimate = 50, .string_table = 1 << 20 },
				   after = { .total = 5000000 + (2 << 20),
					     .estimate = 50,
					     .string_table = 1 << 20 };

	(void)state;
	assert_true(allocated_between(&before, &after).may_have_resized);
	after.total = 5000000 + (300 << 10);
	assert_false(allocated_between(&before, &after).may_have_resized);
}

/*---- The list ----*/

static struct vm_code vm;
static struct global_state global = { .g = MADE_UP_AT, .vm = &vm };

static void make_layout(void)
{
	struct layout *layout = &vm.layout;

	layout_clear(layout);
	layout->gc64 = true;
	layout->GChead_nextgc = 0;
	layout->GChead_gct = 9;
	layout->GCtab_colo = 11;
	layout->GCtab_size = 64;
	layout->GCfunc_ffid = 10;
	layout->GCfunc_nupvalues = 11;
	layout->GCfuncL_uvptr = 40;
	layout->GCfuncC_upvalue = 48;
	layout->GCupval_size = 48;
	made_up_memory_begin();
}

static uint64_t at(unsigned int number)
{
	return MADE_UP_AT + 0x100 * (uint64_t)(number + 1);
}

static void object(unsigned int number, uint64_t next, uint8_t gct, uint8_t ffid, uint8_t last)
{
	put(at(number), next, 8);
	put(at(number) + 9, gct, 1);
	put(at(number) + 10, ffid, 1);
	put(at(number) + 11, last, 1);
}

static void objects_have_their_sizes(void **state)
{
	struct listed_object objects[LISTED_OBJECTS_MAX];
	size_t count;

	(void)state;
	make_layout();
	object(0, at(1), GCT_TABLE, 0, 5); /* colocated: five slots */
	object(1, at(2), GCT_FUNCTION, FF_LUA, 2);
	object(2, at(3), GCT_UPVALUE, 0, 0);
	object(3, at(4), GCT_CDATA, 0, 0);
	object(4, 0, GCT_TABLE, 0, 0);
	assert_true(allocated_objects(&made_up_memory.memory, &global, at(0), at(4), objects, &count));
	assert_int_equal(count, 4);
	assert_int_equal(objects[0].bytes, 64 + 5 * 8);
	assert_int_equal(objects[1].bytes, 40 + 2 * 8);
	assert_int_equal(objects[1].kind, ALLOCATION_FUNCTION);
	assert_int_equal(objects[2].bytes, 48);
	assert_int_equal(objects[3].bytes, 0);
	assert_true(allocated_objects(&made_up_memory.memory, &global, at(0), at(0), objects, &count));
	assert_int_equal(count, 0);
}

static void a_list_that_leads_elsewhere_is_told(void **state)
{
	struct listed_object objects[LISTED_OBJECTS_MAX];
	size_t count;

	(void)state;
	make_layout();
	object(0, at(1), GCT_TABLE, 0, 0);
	object(1, at(0), GCT_TABLE, 0, 0); /* a circle */
	assert_false(allocated_objects(&made_up_memory.memory, &global, at(0), at(4), objects, &count));
	object(1, at(2), 99, 0, 0); /* no object */
	assert_false(allocated_objects(&made_up_memory.memory, &global, at(0), at(4), objects, &count));
	object(1, UINT64_MAX - 3, GCT_TABLE, 0, 0); /* not mapped */
	assert_false(allocated_objects(&made_up_memory.memory, &global, at(0), at(4), objects, &count));
	object(1, 0, GCT_TABLE, 0, 0); /* the end */
	assert_false(allocated_objects(&made_up_memory.memory, &global, at(0), at(4), objects, &count));
}

/* What is left of a new part of so many bytes, and whether it belongs to a new table. */
static void assert_part(enum allocation_kind kind, uint64_t bytes, uint64_t table,
			const struct allocation_counters *held, uint64_t left, bool is_of_new_table)
{
	static struct vm_code part_vm = { .layout = { .Node_size = 24 } };
	static struct global_state part_global = { .vm = &part_vm };
	struct allocation part = { .kind = kind, .bytes = bytes, .table = table, .global = &part_global };

	assert_int_equal(allocation_without_old_part(&part, held), is_of_new_table);
	assert_int_equal(part.bytes, left);
}

static void a_hash_part_that_grows_counts_without_the_old_one(void **state)
{
	const struct allocation_counters empty = { .root = 0x1000 };
	const struct allocation_counters grown = { .root = 0x1000, .newest_nodes = 3, .newest_slots = 5 };

	(void)state;
	/* The newest table tells its old part; that of any other has doubled. */
	assert_part(ALLOCATION_HASH, 8 * 24, 0x1000, &empty, 8 * 24, true);
	assert_part(ALLOCATION_HASH, 8 * 24, 0x1000, &grown, 5 * 24, false);
	assert_part(ALLOCATION_HASH, 8 * 24, 0x2000, &empty, 4 * 24, false);
	assert_part(ALLOCATION_HASH, 24, 0x2000, &empty, 24, false);
	/* A part that is no larger than the old one is not what was read. */
	assert_part(ALLOCATION_HASH, 3 * 24, 0x1000, &grown, 3 * 24, false);
	assert_part(ALLOCATION_HASH, 3 * 24 + 1, 0x1000, &grown, 1, false);
	/* LuaJIT grows arrays in place: gc.total tells. */
	assert_part(ALLOCATION_ARRAY, 64, 0x1000, &empty, 64, true);
	assert_part(ALLOCATION_ARRAY, 64, 0x1000, &grown, 64, false);
	assert_part(ALLOCATION_ARRAY, 64, 0x2000, &empty, 64, false);
	assert_part(ALLOCATION_OTHER, 64, 0, &(struct allocation_counters){ 0 }, 64, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_counters_tell_what_was_allocated),
		cmocka_unit_test(the_end_of_a_marking_is_noticed),
		cmocka_unit_test(a_table_of_strings_that_halves_is_no_marking),
		cmocka_unit_test(strings_are_known_while_none_are_freed),
		cmocka_unit_test(a_table_of_strings_that_grows_is_noticed),
		cmocka_unit_test(objects_have_their_sizes),
		cmocka_unit_test(a_list_that_leads_elsewhere_is_told),
		cmocka_unit_test(a_hash_part_that_grows_counts_without_the_old_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
