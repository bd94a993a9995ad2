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

/* A whole cycle lies between the looks, and after it as much is alive as before. */
static void a_marking_that_leaves_the_same_estimate_is_noticed(void **state)
{
	struct allocation_counters before = { .total = 90000, .estimate = 50000, .white = 1, .state = MARK },
				   after = { .total = 60000, .estimate = 50000, .white = 2, .state = MARK };
	struct allocated allocated = allocated_between(&before, &after);

	(void)state;
	assert_true(allocated.has_marked && allocated.is_least);
	assert_int_equal(allocated.bytes, 10000);
	after.white = 1;
	assert_false(allocated_between(&before, &after).has_marked);
}

/* Another one has begun at its place. */
static void of_a_vm_that_was_closed_no_bytes_are_known(void **state)
{
	struct allocated allocated = between(900000, 5000, MARK, 50000, 5000, GCSpause);

	(void)state;
	assert_true(allocated.is_least);
	assert_false(allocated.has_marked);
	assert_int_equal(allocated.bytes, 0);
	/* So little may have been a buffer. */
	allocated = between(90000, 5000, MARK, 90000 - ALLOCATED_FREED_MAX, 5000, GCSpause);
	assert_false(allocated.is_least);
	assert_int_equal(allocated.bytes, -ALLOCATED_FREED_MAX);
	/* Within a step of a sweep, gc.estimate follows. */
	assert_false(between(900000, 5000, SWEEP, 50000, 5000, SWEEP).is_least);
}

/* gc.estimate is what gc.total was when the marking ended; nobody knows what was freed until then. */
static void after_a_marking_only_what_came_then_counts(void **state)
{
	(void)state;
	assert_int_equal(between(2000, 500, MARK, 1700, 1600, SWEEP).bytes, 100);
	assert_int_equal(between(2000, 500, MARK, 2100, 2000, SWEEP).bytes, 100);
	assert_int_equal(between(2000, 500, MARK, 2150, 2100, SWEEP).bytes, 150);
	assert_int_equal(between(2000, 500, MARK, 2150, 2100, SWEEP).heap_bytes, 2150);
	/* gc.estimate falls in a sweep only. */
	assert_false(between(2000, 1500, MARK, 2100, 1500, MARK).has_marked);
	assert_true(between(2000, 1500, MARK, 2100, 1501, MARK).has_marked);
	assert_true(between(2000, 1500, GCSatomic, 2100, 1499, GCSatomic).has_marked);
	assert_true(between(2000, 1500, GCSatomic, 2000, 1400, GCSsweepstring).has_marked);
	assert_false(between(2000, 1500, GCSsweepstring, 2000, 1400, GCSsweep).has_marked);
	assert_false(between(2000, 1500, SWEEP, 2000, 1400, SWEEP).has_marked);
	/* The state goes back where another cycle has begun. */
	assert_true(between(2000, 1500, GCSfinalize, 2000, 1400, SWEEP).has_marked);
	assert_false(between(2000, 1500, GCSfinalize, 2000, 1400, GCSpause).has_marked);
	/* A step frees no more than so much before it says so. */
	assert_false(between(90000, 50000, SWEEP, 89999 - ALLOCATED_FREED_MAX, 49999, SWEEP).has_marked);
	assert_true(between(90000, 50000, SWEEP, 89998 - ALLOCATED_FREED_MAX, 49999, SWEEP).has_marked);
}

/*
 * At the second look, a step of the sweep has freed more than it has told; at the first one, another one had.
 */
static void between_close_looks_a_step_is_no_marking(void **state)
{
	struct allocation_counters before = { .total = 90000, .estimate = 50000, .white = 1, .state = SWEEP },
				   after = { .total = 60000, .estimate = 49000, .white = 1, .state = SWEEP };
	struct allocated allocated = allocated_in_span(&before, &after);

	(void)state;
	assert_true(allocated_between(&before, &after).has_marked);
	assert_false(allocated.has_marked || allocated.is_least);
	assert_int_equal(allocated.bytes, -29000);
	allocated = allocated_in_span(&after, &before);
	assert_false(allocated.has_marked || allocated.is_least);
	assert_int_equal(allocated.bytes, 29000);
	after.white = 2;
	assert_true(allocated_in_span(&before, &after).is_least);
}

/* Each takes some bytes off gc.estimate alone, and nobody knows how many there were. */
static void what_finalizers_take_off_was_not_allocated(void **state)
{
	struct allocation_counters before = { .total = 90000, .estimate = 80000, .state = SWEEP },
				   after = { .total = 89000, .estimate = 70000, .state = GCSfinalize };
	struct allocated allocated = allocated_between(&before, &after);

	(void)state;
	assert_true(allocated.is_least && allocated.may_have_finalized);
	assert_false(allocated.has_marked);
	assert_int_equal(allocated.bytes, 0);
	after.total = 90500;
	assert_int_equal(allocated_between(&before, &after).bytes, 500);
	/* They are over by the second look, or not to be called before it. */
	after.state = GCSpause;
	before.has_finalizers = true;
	allocated = allocated_between(&before, &after);
	assert_true(allocated.is_least && allocated.may_have_finalized);
	assert_int_equal(allocated.bytes, 500);
	after.state = SWEEP;
	allocated = allocated_between(&before, &after);
	assert_false(allocated.is_least || allocated.may_have_finalized);
	assert_int_equal(allocated.bytes, 10500);
	/* From the first of them on, nothing is swept. */
	allocated = between(90000, 80000, GCSfinalize, 90300, 60000, GCSfinalize);
	assert_true(allocated.may_have_finalized);
	assert_false(allocated.is_least);
	assert_int_equal(allocated.bytes, 300);
	assert_int_equal(between(90000, 80000, GCSfinalize, 90300, 60000, GCSpause).bytes, 300);
	/* The marking before the sweep has ended, too. */
	allocated = between(90000, 50000, MARK, 60000, 20000, GCSfinalize);
	assert_true(allocated.is_least && allocated.has_marked);
	assert_int_equal(allocated.bytes, 0);
}

/*
 * Where a VM calls finalizers, those of a cycle that is over between two looks are not seen, nor the userdata
 * that waits for them: the end of the marking took its size off gc.estimate.
 */
static void where_there_are_finalizers_a_marking_tells_the_growth_at_least(void **state)
{
	struct allocation_counters before = { .total = 90000, .estimate = 50000, .state = MARK },
				   after = { .total = 91000, .estimate = 20000, .state = GCSpause },
				   finalizing = { .state = GCSfinalize };

	(void)state;
	assert_int_equal(allocated_between(&before, &after).bytes, 71000);
	allocation_counters_follow(&finalizing, &before);
	allocation_counters_follow(&before, &after);
	assert_int_equal(allocated_between(&before, &after).bytes, 1000);
	assert_true(allocated_between(&before, &after).is_least);
	after.state = SWEEP;
	assert_int_equal(allocated_between(&before, &after).bytes, 1000);
	/* Those of C objects begin to wait while a sweep goes on. */
	before.state = SWEEP;
	before.estimate = 21000;
	after.state = GCSpause;
	assert_true(allocated_between(&before, &after).is_least);
	assert_int_equal(allocated_between(&before, &after).bytes, 1000);
	assert_false(allocated_between(&before, &after).knows_strings);
	before.has_finalized = after.has_finalized = false;
	assert_int_equal(allocated_between(&before, &after).bytes, 2000);
	assert_true(allocated_between(&before, &after).knows_strings);
}

/*
 * The table of strings, of 512 KiB, gets half its size at the end of a sweep; the looks come while it does.
 */
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
	assert_int_equal(allocated_between(&before, &after).strings, 0);
	before.state = after.state = MARK;
	after.strings = 5;
	assert_true(allocated_between(&before, &after).knows_strings);
	after.estimate = 60; /* a marking has ended, and a sweep begun */
	assert_false(allocated_between(&before, &after).knows_strings);
}

/* The table of strings is 1 MB: one look came while it doubled. */
static void a_table_of_strings_that_grows_is_noticed(void **state)
{
	struct allocation_counters before = { .total = 5000000, .estimate = 50, .string_table = 1 << 20 },
				   after = { .total = 5000000 + (2 << 20),
					     .estimate = 50,
					     .string_table = 1 << 20,
					     .may_resize = true };

	(void)state;
	assert_true(allocated_between(&before, &after).may_have_resized);
	assert_true(allocated_between(&after, &before).may_have_resized);
	assert_int_equal(allocated_between(&before, &after).heap_bytes, 5000000 + (3 << 20));
	after.total = 5000000 + (300 << 10);
	assert_false(allocated_between(&before, &after).may_have_resized);
	/* By half of it, up or down. */
	after.total = 5000000 + (512 << 10);
	assert_true(allocated_between(&before, &after).may_have_resized);
	after.total--;
	assert_false(allocated_between(&before, &after).may_have_resized);
	after.total = 5000000 - (512 << 10);
	assert_true(allocated_between(&before, &after).may_have_resized);
	after.total++;
	assert_false(allocated_between(&before, &after).may_have_resized);
	/* A small one does not matter. */
	before.string_table = 64 << 10;
	after.total = 5000000 + (64 << 10);
	assert_true(allocated_between(&before, &after).may_have_resized);
	after.total--;
	assert_false(allocated_between(&before, &after).may_have_resized);
	/* One that cannot have grown then. */
	after.may_resize = false;
	after.total = 5000000 + (2 << 20);
	assert_false(allocated_between(&before, &after).may_have_resized);
	assert_false(allocated_between(&after, &before).may_have_resized);
}

static struct vm_code vm;
static struct global_state global = { .g = MADE_UP_AT, .vm = &vm };

/*---- Reading the counters ----*/

/* With what is read in one piece, all from strnum to gc.estimate. */
static void make_counters(bool gc64, enum layout_bytecode bytecode)
{
	struct layout *layout = &vm.layout;
	const unsigned int ref = gc64 ? 8 : 4;

	layout_clear(layout);
	layout->gc64 = gc64;
	layout->bytecode = bytecode;
	layout->g_strmask = 20;
	layout->g_strnum = 24;
	layout->g_gc_total = 32;
	layout->g_gc_state = 32 + 2 * (int32_t)ref + 1;
	layout->g_gc_root = 64;
	made_up_memory_begin();
	memset(made_up_memory.bytes, 0xee, MADE_UP_BYTES);
	put(MADE_UP_AT + 20, 1023, 4);
	put(MADE_UP_AT + 24, 700, 4);
	put(MADE_UP_AT + 32, 100000, ref);
	put(MADE_UP_AT + 32 + ref, 120000, ref);
	put(MADE_UP_AT + (uint64_t)layout->g_gc_state, GCSsweep, 1);
	put(MADE_UP_AT + (uint64_t)layout->g_gc_state - 1, 2, 1);
	put(MADE_UP_AT + 64, 0x12345678, ref);
	put(MADE_UP_AT + gc_mmudata_offset(layout), 0, ref);
	put(MADE_UP_AT + gc_estimate_offset(layout), 90000, ref);
}

static struct allocation_counters read_counters(void)
{
	struct allocation_counters counters;

	assert_true(allocation_counters_read(&made_up_memory.memory, &global, &counters));
	return counters;
}

static void the_counters_are_read_in_each_layout(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		const bool gc64 = i & 1;
		struct allocation_counters counters;

		make_counters(gc64, i & 2 ? BYTECODE_V20 : BYTECODE_V21);
		counters = read_counters();
		assert_int_equal(counters.string_table, gc64 ? 8192 : 4096);
		assert_int_equal(counters.total, 100000 - counters.string_table);
		assert_int_equal(counters.threshold, 120000);
		assert_int_equal(counters.estimate, 90000);
		assert_int_equal(counters.root, 0x12345678);
		assert_int_equal(counters.strings, 700);
		assert_int_equal(counters.state, GCSsweep);
		assert_int_equal(counters.white, 2);
		assert_false(counters.has_few_strings);
		assert_false(counters.has_finalizers);
		put(MADE_UP_AT + 64 + 5 * (gc64 ? 8 : 4), 1, 1);
		assert_true(read_counters().has_finalizers);
	}
}

static void the_order_of_the_counters_may_be_another(void **state)
{
	struct allocation_counters counters;

	(void)state;
	make_counters(true, BYTECODE_V21);
	/* As since June 2020. */
	vm.layout.g_strmask = 200;
	vm.layout.g_strnum = 204;
	put(MADE_UP_AT + 200, 255, 4);
	put(MADE_UP_AT + 204, 3, 4);
	counters = read_counters();
	assert_int_equal(counters.string_table, 2048);
	assert_int_equal(counters.total, 100000 - 2048);
	assert_int_equal(counters.strings, 3);
	assert_true(counters.has_few_strings);
}

/* While LuaJIT doubles the table of strings, there are the old one and one of twice its size. */
static void a_table_of_strings_that_doubles_is_there_twice(void **state)
{
	(void)state;
	make_counters(true, BYTECODE_V21);
	put(MADE_UP_AT + 24, 1023, 4);
	assert_int_equal(read_counters().string_table, 8192);
	put(MADE_UP_AT + 24, 1024, 4);
	assert_int_equal(read_counters().string_table, 3 * 8192);
	assert_int_equal(read_counters().total, 100000 - 3 * 8192);
	put(MADE_UP_AT + (uint64_t)vm.layout.g_gc_state, GCSsweepstring, 1); /* it does not then */
	assert_int_equal(read_counters().string_table, 8192);
	put(MADE_UP_AT + 24, 255, 4);
	assert_true(read_counters().has_few_strings);
	put(MADE_UP_AT + 24, 256, 4);
	assert_false(read_counters().has_few_strings);
}

/* It halves at the end of a sweep, and doubles, or is about to, where there are more strings than places. */
static void a_table_of_strings_may_get_another_size_at_some_moments_only(void **state)
{
	static const struct {
		uint32_t strings;
		uint8_t state;
		bool may_resize;
	} cases[] = {
		{ 1024, GCSpropagate, true }, { 1024, GCSsweepstring, true }, { 1023, GCSpropagate, false },
		{ 255, GCSsweep, true },      { 256, GCSsweep, false },       { 255, GCSsweepstring, false },
		{ 255, GCSpause, false },
	};

	(void)state;
	make_counters(true, BYTECODE_V21);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		put(MADE_UP_AT + 24, cases[i].strings, 4);
		put(MADE_UP_AT + (uint64_t)vm.layout.g_gc_state, cases[i].state, 1);
		assert_int_equal(read_counters().may_resize, cases[i].may_resize);
	}
}

/* The VM has been closed, and its memory serves for something else. */
static void what_cannot_be_counters_is_not_taken_for_them(void **state)
{
	static const struct {
		uint64_t at, value; /* at: from the VM's global_State; what LuaJIT never has there */
		unsigned int size;
	} cases[] = { { 32 + 16, 3, 1 }, /* both whites are current: it is being closed */
		      { 32 + 16, 0x20, 1 },
		      { 32 + 17, GCSfinalize + 1, 1 },
		      { 20, 1022, 4 },
		      { 32, 1024 * 8 - 1, 8 } };
	struct allocation_counters counters;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		make_counters(true, BYTECODE_V21);
		put(MADE_UP_AT + 32 + 16, 0x21, 1); /* never collected itself */
		assert_true(allocation_counters_read(&made_up_memory.memory, &global, &counters));
		put(MADE_UP_AT + cases[i].at, cases[i].value, cases[i].size);
		assert_false(allocation_counters_read(&made_up_memory.memory, &global, &counters));
	}
}

static void counters_far_apart_or_not_mapped_are_not_read(void **state)
{
	enum { AT_ONCE_MAX = 512 };
	struct allocation_counters counters = { .total = 7 };

	(void)state;
	make_counters(true, BYTECODE_V21);
	vm.layout.g_strmask = 32 + AT_ONCE_MAX - 8;
	put(MADE_UP_AT + 32 + AT_ONCE_MAX - 8, 1023, 8);
	vm.layout.g_strnum = 40;
	assert_true(allocation_counters_read(&made_up_memory.memory, &global, &counters));
	vm.layout.g_strmask++;
	counters.total = 7;
	assert_false(allocation_counters_read(&made_up_memory.memory, &global, &counters));
	global.g = MADE_UP_AT + MADE_UP_BYTES - 64;
	make_counters(true, BYTECODE_V21);
	assert_false(allocation_counters_read(&made_up_memory.memory, &global, &counters));
	assert_int_equal(counters.total, 7);
	global.g = MADE_UP_AT;
}

static unsigned int looks, looks_until_end;

/* gc.total grows from look to look, until the process ends. */
static void read_growing(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	for (size_t i = 0; i < count; i++) {
		put(MADE_UP_AT + 32, 100000 + 16 * (uint64_t)looks, 8);
		made_up_read(&made_up_memory.memory, &ranges[i], 1);
		if (++looks > looks_until_end)
			ranges[i].status = MEMORY_GONE;
	}
}

static void a_film_has_its_looks_in_their_order(void **state)
{
	struct allocation_counters film[ALLOCATION_FILM_LOOKS];
	struct memory growing = { .read_ranges = read_growing };

	(void)state;
	make_counters(true, BYTECODE_V21);
	looks = 0;
	looks_until_end = ALLOCATION_FILM_LOOKS;
	assert_true(allocation_film_read(&growing, &global, film));
	assert_int_equal(looks, ALLOCATION_FILM_LOOKS);
	for (size_t i = 0; i < ALLOCATION_FILM_LOOKS; i++) {
		assert_int_equal(film[i].total, 100000 - 8192 + 16 * i);
		assert_int_equal(film[i].estimate, 90000);
	}
	looks = 0;
	looks_until_end--;
	assert_false(allocation_film_read(&growing, &global, film));
}

/* One that was closed is no reason to know nothing of the others. */
static void several_vms_are_looked_at_at_once(void **state)
{
	struct memory growing = { .read_ranges = read_growing };
	struct global_state closed;
	struct allocation_look at[] = { { .global = &global }, { .global = &closed }, { .global = &global } };

	(void)state;
	make_counters(true, BYTECODE_V21);
	closed = global;
	closed.g = MADE_UP_AT - 0x10000;
	looks = 0;
	looks_until_end = 3;
	allocation_looks_read(&growing, at, 3);
	assert_int_equal(looks, 3);
	assert_true(at[0].is_read && at[2].is_read);
	assert_false(at[1].is_read);
	assert_int_equal(at[0].counters.total, 100000 - 8192);
	assert_int_equal(at[2].counters.total, 100000 - 8192 + 32);
}

static void the_newest_table_has_its_parts(void **state)
{
	enum { TABLE = MADE_UP_AT + 0x800 };
	struct allocation_counters counters = { .root = TABLE };

	(void)state;
	make_counters(true, BYTECODE_V21);
	vm.layout.GChead_gct = 9;
	vm.layout.GCtab_asize = 48;
	vm.layout.GCtab_hmask = 52;
	vm.layout.GCtab_size = 56;
	put(TABLE + 9, GCT_TABLE, 1);
	put(TABLE + 48, 5, 4);
	put(TABLE + 52, 3, 4);
	allocation_counters_read_newest(&made_up_memory.memory, &global, &counters);
	assert_int_equal(counters.newest_slots, 5);
	assert_int_equal(counters.newest_nodes, 4);
	put(TABLE + 52, 0, 4); /* all empty tables share one node */
	allocation_counters_read_newest(&made_up_memory.memory, &global, &counters);
	assert_int_equal(counters.newest_nodes, 0);
	/* What is no table, or not mapped, has none. */
	counters = (struct allocation_counters){ .root = TABLE };
	put(TABLE + 9, GCT_FUNCTION, 1);
	allocation_counters_read_newest(&made_up_memory.memory, &global, &counters);
	counters.root = MADE_UP_AT + MADE_UP_BYTES - 40;
	put(counters.root + 9, GCT_TABLE, 1);
	allocation_counters_read_newest(&made_up_memory.memory, &global, &counters);
	assert_int_equal(counters.newest_slots, 0);
	assert_int_equal(counters.newest_nodes, 0);
}

static void a_table_of_strings_in_another_size_is_told(void **state)
{
	struct allocation_counters counters;

	(void)state;
	make_counters(true, BYTECODE_V21);
	put(MADE_UP_AT + 24, 1024, 4);
	counters = read_counters();
	assert_true(allocated_for_strings(&counters, 2 * 8192));
	assert_false(allocated_for_strings(&counters, 8192));
	assert_false(allocated_for_strings(&counters, 4096));
	put(MADE_UP_AT + 24, 255, 4);
	counters = read_counters();
	assert_true(allocated_for_strings(&counters, 4096));
	assert_false(allocated_for_strings(&counters, 2 * 8192));
	put(MADE_UP_AT + 24, 256, 4);
	counters = read_counters();
	assert_false(allocated_for_strings(&counters, 4096));
	assert_false(allocated_for_strings(&counters, 2 * 8192));
}

/*---- The list ----*/

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

static void each_kind_of_object_is_told(void **state)
{
	static const struct {
		uint8_t gct;
		enum allocation_kind kind;
		uint64_t bytes;
	} kinds[] = {
		{ GCT_TABLE, ALLOCATION_TABLE, 64 },     { GCT_FUNCTION, ALLOCATION_FUNCTION, 48 + 2 * 8 },
		{ GCT_UPVALUE, ALLOCATION_UPVALUE, 48 }, { GCT_THREAD, ALLOCATION_THREAD, 96 },
		{ GCT_PROTO, ALLOCATION_PROTO, 0x1234 }, { GCT_CDATA, ALLOCATION_CDATA, 0 },
		{ GCT_TRACE, ALLOCATION_TRACE, 0 },
	};
	enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };
	struct listed_object objects[LISTED_OBJECTS_MAX];
	size_t count;

	(void)state;
	make_layout();
	vm.layout.GCtab_asize = 48;
	vm.layout.GCtab_hmask = 52;
	vm.layout.L_size = 96;
	vm.layout.L_stacksize = 56;
	vm.layout.GCproto_sizept = 24;
	for (unsigned int i = 0; i < KINDS; i++) {
		object(i, i + 1 < KINDS ? at(i + 1) : 0, kinds[i].gct, FF_C,
		       kinds[i].gct == GCT_TABLE ? 0 : 2);
		put(at(i) + 24, 0x1234, 4);
	}
	put(at(3) + 56, 47, 4);
	put(at(5) + 10, 0x5678, 2); /* the number of its type */
	assert_true(allocated_objects(&made_up_memory.memory, &global, at(0), 0, objects, &count));
	assert_int_equal(count, KINDS);
	for (unsigned int i = 0; i < KINDS; i++) {
		assert_int_equal(objects[i].address, at(i));
		assert_int_equal(objects[i].kind, kinds[i].kind);
		assert_int_equal(objects[i].bytes, kinds[i].bytes);
		assert_int_equal(objects[i].ctype, i == 5 ? 0x5678 : 0);
		assert_int_equal(objects[i].hash_bytes, 0);
		assert_int_equal(objects[i].stack_bytes, i == 3 ? 47 * 8 : 0);
	}
	/* Strings are in no list, and userdata has its own. */
	object(1, 0, GCT_STRING, 0, 0);
	assert_false(allocated_objects(&made_up_memory.memory, &global, at(0), 0, objects, &count));
	assert_int_equal(count, 1);
	object(1, 0, GCT_USERDATA, 0, 0);
	assert_false(allocated_objects(&made_up_memory.memory, &global, at(0), 0, objects, &count));
}

static void userdata_have_a_list_of_their_own(void **state)
{
	struct listed_object objects[LISTED_OBJECTS_MAX];
	size_t count = 1;

	(void)state;
	make_layout();
	vm.layout.g_mainthref = 40;
	vm.layout.GCudata_size = 48;
	vm.layout.GCudata_len = 36;
	put(MADE_UP_AT + 40, at(0), 8);
	object(0, at(1), GCT_THREAD, 0, 0);
	object(1, at(2), GCT_USERDATA, 0, 0);
	put(at(1) + 36, 200, 4);
	object(2, at(3), GCT_USERDATA, 0, 0);
	object(3, 0, GCT_USERDATA, 0, 0);
	assert_int_equal(allocated_newest_userdata(&made_up_memory.memory, &made_up_memory.memory, &global),
			 at(1));
	/* Behind others. */
	objects[0].address = 1;
	assert_true(allocated_userdata(&made_up_memory.memory, &global, at(1), at(3), objects, &count));
	assert_int_equal(count, 3);
	assert_int_equal(objects[0].address, 1);
	assert_int_equal(objects[1].address, at(1));
	assert_int_equal(objects[1].kind, ALLOCATION_USERDATA);
	assert_int_equal(objects[1].bytes, 248);
	assert_int_equal(objects[2].bytes, 48);
	assert_true(allocated_userdata(&made_up_memory.memory, &global, at(1), at(1), objects, &count));
	assert_int_equal(count, 3);
	count = LISTED_OBJECTS_MAX;
	assert_false(allocated_userdata(&made_up_memory.memory, &global, at(1), at(3), objects, &count));
	/* Other objects are not on it. */
	count = 0;
	object(2, at(3), GCT_TABLE, 0, 0);
	assert_false(allocated_userdata(&made_up_memory.memory, &global, at(1), at(3), objects, &count));
	put(MADE_UP_AT + 40, UINT64_MAX - 100, 8);
	assert_int_equal(allocated_newest_userdata(&made_up_memory.memory, &made_up_memory.memory, &global),
			 0);
}

/* The memory below an address. */
struct half_copy {
	struct memory memory;
	uint64_t end;
	unsigned int reads;
};

static void read_below(struct memory *memory, struct memory_range *ranges, size_t count)
{
	struct half_copy *half = (struct half_copy *)memory;

	half->reads++;
	for (size_t i = 0; i < count; i++)
		if (ranges[i].address < half->end)
			memory_read_ranges(&made_up_memory.memory, &ranges[i], 1);
		else
			ranges[i].status = MEMORY_NOT_CAPTURED;
}

/* While a thread is held, each read counts. */
static void userdata_are_found_in_the_copy(void **state)
{
	static const uint64_t ends[] = { UINT64_MAX, MADE_UP_AT + 48, 0 };
	struct half_copy copy = { .memory.read_ranges = read_below },
			 live = { .memory.read_ranges = read_below, .end = UINT64_MAX };

	(void)state;
	make_layout();
	vm.layout.g_mainthref = 40;
	put(MADE_UP_AT + 40, at(0), 8);
	object(0, at(1), GCT_THREAD, 0, 0);
	for (unsigned int i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		copy.end = ends[i];
		live.reads = 0;
		assert_int_equal(allocated_newest_userdata(&copy.memory, &live.memory, &global), at(1));
		assert_int_equal(live.reads, i);
	}
}

static void tables_have_parts(void **state)
{
	struct listed_object objects[LISTED_OBJECTS_MAX];
	size_t count;

	(void)state;
	make_layout();
	vm.layout.GCtab_asize = 48;
	vm.layout.GCtab_hmask = 52;
	vm.layout.Node_size = 24;
	object(0, 0, GCT_TABLE, 0, 0);
	put(at(0) + 48, 6, 4);
	put(at(0) + 52, 7, 4);
	assert_true(allocated_objects(&made_up_memory.memory, &global, at(0), 0, objects, &count));
	assert_int_equal(objects[0].bytes, 64);
	assert_int_equal(objects[0].array_bytes, 6 * 8);
	assert_int_equal(objects[0].hash_bytes, 8 * 24);
}

/* A list without end, of objects that are each so far from the one before. */
static struct endless {
	struct memory memory; /* first: what is read */
	uint64_t distance;
	size_t reads;
} endless;

enum { ENDLESS_AT = 0x10000000 };

static uint8_t endless_byte(uint64_t address)
{
	const uint64_t offset = (address - ENDLESS_AT) % endless.distance,
		       next = address - offset + endless.distance;

	if (offset < 8)
		return (uint8_t)(next >> offset * 8);
	return offset == 9 ? GCT_UPVALUE : 0;
}

static void read_endless(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < ranges[i].length; j++)
			((uint8_t *)ranges[i].copy)[j] = endless_byte(ranges[i].address + j);
		ranges[i].status = MEMORY_OK;
		endless.reads++;
	}
}

/* Walk over so many objects of the list. */
static bool walk_endless(uint64_t distance, size_t objects_wanted)
{
	static struct listed_object objects[LISTED_OBJECTS_MAX];
	size_t count = 0;
	bool is_whole;

	make_layout();
	endless = (struct endless){ .memory = { .read_ranges = read_endless }, .distance = distance };
	is_whole = allocated_objects(&endless.memory, &global, ENDLESS_AT,
				     ENDLESS_AT + objects_wanted * distance, objects, &count);
	assert_int_equal(count, objects_wanted < LISTED_OBJECTS_MAX ? objects_wanted : LISTED_OBJECTS_MAX);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(objects[i].address, ENDLESS_AT + i * distance);
		assert_int_equal(objects[i].bytes, 48);
	}
	return is_whole;
}

/* Compiled code makes a small table in some 30 ns, and a window may be as long as a millisecond. */
static void a_walk_has_all_that_bursts_make_in_a_long_window(void **state)
{
	(void)state;
	assert_true(walk_endless(0x40, 1000000 / 31));
}

static void a_walk_has_an_end(void **state)
{
	(void)state;
	assert_true(walk_endless(0x40, LISTED_OBJECTS_MAX));
	assert_false(walk_endless(0x40, LISTED_OBJECTS_MAX + 1));
}

static void objects_may_lie_anywhere(void **state)
{
	enum { PAGE = 4096 };

	(void)state;
	/* Side by side, each page is read once. */
	assert_true(walk_endless(0x40, PAGE));
	assert_in_range(endless.reads, PAGE * 0x40 / PAGE, PAGE * 0x40 / PAGE + 1);
	assert_true(walk_endless(PAGE, 300));
	assert_true(walk_endless(64 * PAGE, 300));
	/* Across the ends of pages. */
	assert_true(walk_endless(PAGE - 4, 1500));
	assert_true(walk_endless(28, 1500));
}

/* A list that was damaged may lead over all of the heap: ljspy reads no more than takes some milliseconds. */
static void a_walk_over_far_objects_has_an_end_sooner(void **state)
{
	enum { PAGE = 4096, READS = 4096 };
	static struct listed_object objects[LISTED_OBJECTS_MAX];
	size_t count;

	(void)state;
	assert_true(walk_endless(PAGE, READS - 1));
	assert_int_equal(endless.reads, READS - 1);
	endless.reads = 0;
	assert_false(allocated_objects(&endless.memory, &global, ENDLESS_AT, 1, objects, &count));
	assert_int_equal(endless.reads, READS);
	assert_int_equal(count, READS);
	/* Parts of the last one may not have been read. */
	assert_false(allocated_objects(&endless.memory, &global, ENDLESS_AT, ENDLESS_AT + READS * PAGE,
				       objects, &count));
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

/*---- Besides objects ----*/

enum { OBJECT_AT = 0x9000, OBJECTS = 3 };

/* Between two looks, 1000 bytes more and two of the three objects, the newest one first. */
static struct allocation_counters earlier, later;
static struct listed_object listed[OBJECTS];
static struct allocated_besides besides;

static int begin_besides(void **state)
{
	(void)state;
	earlier = (struct allocation_counters){ .total = 5000, .estimate = 700, .strings = 4, .state = MARK };
	later = earlier;
	later.total = 6000;
	later.strings = 6;
	for (uint64_t i = 0; i < OBJECTS; i++)
		listed[i] = (struct listed_object){ .address = OBJECT_AT - i * 0x100,
						    .bytes = 100 << i,
						    .hash_bytes = 10 << i,
						    .array_bytes = 1 << i,
						    .stack_bytes = 1000 << i };
	later.root = listed[0].address;
	earlier.root = listed[2].address;
	besides = (struct allocated_besides){ .bytes = 77 };
	return 0;
}

static bool has_besides(void)
{
	return allocated_besides_objects(&earlier, &later, listed, OBJECTS, &besides);
}

static void what_is_no_object_is_left(void **state)
{
	(void)state;
	assert_true(has_besides());
	assert_int_equal(besides.bytes, 1000 - 100 - 200);
	assert_int_equal(besides.part_bytes, 10 + 20 + 1 + 2 + 1000 + 2000);
	assert_int_equal(besides.strings, 2);
	assert_int_equal(besides.objects, 2);
	/* From the middle of the list. */
	later.root = listed[1].address;
	assert_true(has_besides());
	assert_int_equal(besides.bytes, 1000 - 200);
	assert_int_equal(besides.objects, 1);
	/* No object is new. */
	earlier.root = later.root = 0x1230;
	assert_true(has_besides());
	assert_int_equal(besides.bytes, 1000);
	assert_int_equal(besides.part_bytes, 0);
	assert_int_equal(besides.objects, 0);
}

static void objects_may_be_all_that_was_allocated(void **state)
{
	(void)state;
	later.total = 5300;
	assert_true(has_besides());
	assert_int_equal(besides.bytes, 0);
	later.total = 5299; /* they are more */
	besides.bytes = 77;
	assert_false(has_besides());
	assert_int_equal(besides.bytes, 77);
}

static void objects_that_are_not_known_leave_all_unknown(void **state)
{
	(void)state;
	listed[1].bytes = 0; /* a cdata */
	assert_false(has_besides());
	begin_besides(NULL);
	earlier.root = 0x1230; /* not in the list */
	assert_false(has_besides());
	begin_besides(NULL);
	later.root = 0x1230;
	assert_false(has_besides());
	begin_besides(NULL);
	later.root = listed[2].address;
	earlier.root = listed[0].address;
	assert_false(has_besides());
	assert_int_equal(besides.bytes, 77);
}

static void while_a_sweep_frees_nothing_is_known(void **state)
{
	(void)state;
	earlier.state = GCSsweepstring;
	assert_false(has_besides());
	begin_besides(NULL);
	later.state = GCSsweep;
	assert_false(has_besides());
	begin_besides(NULL);
	earlier.state = later.state = GCSatomic;
	assert_true(has_besides());
	later.estimate++;
	assert_false(has_besides());
	begin_besides(NULL);
	later.total = earlier.total;
	later.root = earlier.root;
	assert_false(has_besides());
	begin_besides(NULL);
	later.strings = earlier.strings;
	assert_true(has_besides());
	assert_int_equal(besides.strings, 0);
	later.strings--;
	assert_false(has_besides());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_counters_tell_what_was_allocated),
		cmocka_unit_test(the_end_of_a_marking_is_noticed),
		cmocka_unit_test(after_a_marking_only_what_came_then_counts),
		cmocka_unit_test(of_a_vm_that_was_closed_no_bytes_are_known),
		cmocka_unit_test(a_marking_that_leaves_the_same_estimate_is_noticed),
		cmocka_unit_test(between_close_looks_a_step_is_no_marking),
		cmocka_unit_test(what_finalizers_take_off_was_not_allocated),
		cmocka_unit_test(where_there_are_finalizers_a_marking_tells_the_growth_at_least),
		cmocka_unit_test(a_table_of_strings_that_halves_is_no_marking),
		cmocka_unit_test(strings_are_known_while_none_are_freed),
		cmocka_unit_test(a_table_of_strings_that_grows_is_noticed),
		cmocka_unit_test(the_counters_are_read_in_each_layout),
		cmocka_unit_test(the_order_of_the_counters_may_be_another),
		cmocka_unit_test(a_table_of_strings_that_doubles_is_there_twice),
		cmocka_unit_test(a_table_of_strings_may_get_another_size_at_some_moments_only),
		cmocka_unit_test(a_table_of_strings_in_another_size_is_told),
		cmocka_unit_test(what_cannot_be_counters_is_not_taken_for_them),
		cmocka_unit_test(counters_far_apart_or_not_mapped_are_not_read),
		cmocka_unit_test(a_film_has_its_looks_in_their_order),
		cmocka_unit_test(several_vms_are_looked_at_at_once),
		cmocka_unit_test(the_newest_table_has_its_parts),
		cmocka_unit_test(objects_have_their_sizes),
		cmocka_unit_test(each_kind_of_object_is_told),
		cmocka_unit_test(userdata_have_a_list_of_their_own),
		cmocka_unit_test(userdata_are_found_in_the_copy),
		cmocka_unit_test(tables_have_parts),
		cmocka_unit_test(a_walk_has_all_that_bursts_make_in_a_long_window),
		cmocka_unit_test(a_walk_has_an_end),
		cmocka_unit_test(objects_may_lie_anywhere),
		cmocka_unit_test(a_walk_over_far_objects_has_an_end_sooner),
		cmocka_unit_test(a_list_that_leads_elsewhere_is_told),
		cmocka_unit_test(a_hash_part_that_grows_counts_without_the_old_one),
		cmocka_unit_test_setup(what_is_no_object_is_left, begin_besides),
		cmocka_unit_test_setup(objects_may_be_all_that_was_allocated, begin_besides),
		cmocka_unit_test_setup(objects_that_are_not_known_leave_all_unknown, begin_besides),
		cmocka_unit_test_setup(while_a_sweep_frees_nothing_is_known, begin_besides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
