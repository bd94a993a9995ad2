/* SPDX-License-Identifier: MIT */
/* States are found by pointers that lead back, in made-up memory with holes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "luajit-layouts/recognise/recognise.h"

enum {
	AT = 0x10000000,
	BYTES = 3 << 20,
	PAGE = 4096,
	CHUNK = 1 << 20, /* so much is read at a time */
	L_SIZE = 96,
	THREAD_MAX = 256, /* from a main thread to its global_State */
	GCT_THREAD = 6,
	CODE = 0x5000000,
	CODE_END = CODE + 0x4000,
	HANDLERS = 4,
	FOUND = 8,
};

static uint8_t bytes[BYTES];
static uint64_t hole, hole_end; /* cannot be read */
static struct vm_code vm;
static uint64_t found[FOUND];

static void read_ranges(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	for (size_t i = 0; i < count; i++) {
		const uint64_t begin = ranges[i].address, end = begin + ranges[i].length;

		ranges[i].status = MEMORY_UNMAPPED;
		if (begin < AT || end > AT + BYTES || (begin < hole_end && end > hole))
			continue;
		memcpy(ranges[i].copy, bytes + (begin - AT), ranges[i].length);
		ranges[i].status = MEMORY_OK;
	}
}

static struct memory memory = { .read_ranges = read_ranges };

static int begin(void **state)
{
	(void)state;
	memset(bytes, 0, sizeof(bytes));
	hole = hole_end = 0;
	vm = (struct vm_code){ .begin = CODE, .end = CODE_END };
	vm.layout.gc64 = true;
	vm.layout.GChead_gct = 9;
	vm.layout.L_glref = 16;
	vm.layout.g_mainthref = 0xc0;
	vm.layout.g_gc_state = 0x21;
	vm.layout.GG_dispatch = 0x800;
	return 0;
}

static void put(uint64_t address, uint64_t value, size_t size)
{
	assert_in_range(address + size, AT, AT + BYTES);
	memcpy(bytes + (address - AT), &value, size);
}

/* A state whose main thread is at L, so far before g; returns g. */
static uint64_t put_state_apart(uint64_t L, uint64_t distance)
{
	const size_t ref = vm.layout.gc64 ? 8 : 4;
	const uint64_t g = L + distance;

	put(L + (uint64_t)vm.layout.GChead_gct, GCT_THREAD, 1);
	put(L + (uint64_t)vm.layout.L_glref, g, ref);
	put(g + (uint64_t)vm.layout.g_mainthref, L, ref);
	for (uint64_t i = 0; i < HANDLERS; i++)
		put(g + (uint64_t)vm.layout.GG_dispatch + i * 8, CODE + i * 0x100, 8);
	return g;
}

static uint64_t put_state(uint64_t L)
{
	return put_state_apart(L, L_SIZE);
}

static size_t search(uint64_t range_begin, uint64_t range_end)
{
	memset(found, 0, sizeof(found));
	return recognise_states(&memory, &vm, range_begin, range_end, found, FOUND);
}

static size_t search_all(void)
{
	return search(AT, AT + BYTES);
}

static void assert_finds(uint64_t g)
{
	assert_int_equal(search_all(), 1);
	assert_int_equal(found[0], g);
	assert_true(recognise_finds_state(&memory, &vm, g));
}

static void a_state_is_found_wherever_it_is(void **state)
{
	/* Also where two parts that are read meet. */
	static const uint64_t places[] = {
		0,     8,         PAGE - 8,        CHUNK - THREAD_MAX, CHUNK - 248,     CHUNK - 8,
		CHUNK, CHUNK + 8, 2 * CHUNK - 296, 2 * CHUNK - 400,    2 * CHUNK - 504, BYTES - PAGE
	};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		begin(state);
		assert_finds(put_state(AT + places[i]));
	}
}

static void each_state_is_found_once(void **state)
{
	uint64_t expected[FOUND];

	(void)state;
	for (uint64_t i = 0; i < FOUND; i++)
		expected[i] = put_state(AT + (i + 1) * 300 * 1024);
	assert_int_equal(search_all(), FOUND);
	assert_memory_equal(found, expected, sizeof(expected));
	/* There may be more than there is room for. */
	memset(found, 0, sizeof(found));
	assert_int_equal(recognise_states(&memory, &vm, AT, AT + BYTES, found, 2), FOUND);
	assert_int_equal(found[1], expected[1]);
	assert_int_equal(found[2], 0);
	assert_int_equal(recognise_states(&memory, &vm, AT, AT + BYTES, NULL, 0), FOUND);
}

static void a_state_lies_right_behind_its_thread(void **state)
{
	static const struct {
		uint64_t distance;
		bool is_one;
	} cases[] = { { 64, true }, { THREAD_MAX, true }, { THREAD_MAX + 8, false }, { 100, false } };
	uint64_t g;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(state);
		g = put_state_apart(AT + PAGE, cases[i].distance);
		assert_int_equal(search_all(), cases[i].is_one);
		assert_true(
			recognise_finds_state(&memory, &vm, g)); /* who knows where it is need not search */
	}
	/* It is neither the thread itself nor before it. */
	begin(state);
	put_state_apart(AT + PAGE, 0);
	assert_int_equal(search_all(), 0);
	begin(state);
	put_state_apart(AT + PAGE, (uint64_t)-64);
	assert_int_equal(search_all(), 0);
}

static void all_pointers_lead_back(void **state)
{
	const uint64_t L = AT + 2 * PAGE;
	uint64_t g;

	for (int i = 0; i < 8; i++) {
		begin(state);
		g = put_state(L);
		switch (i) {
		case 0: put(L + 9, GCT_THREAD + 1, 1); break;
		case 1: put(L + 16, g + 8, 8); break;
		case 2: put(g + 0xc0, L + 8, 8); break;
		case 3: put(g + 0x800, CODE - 1, 8); break;
		case 4: put(g + 0x800 + 24, CODE_END, 8); break;
		case 5: hole = g + 0x800; break;
		case 6: hole = g + 0xc0; break;
		default: put(g + 0x800 + 24, CODE_END - 1, 8); break;
		}
		hole_end = hole ? hole + 8 : 0;
		assert_int_equal(recognise_finds_state(&memory, &vm, g), i == 7);
		hole = hole_end = 0;
		if (i != 5 && i != 6)
			assert_int_equal(search_all(), i == 7);
	}
}

static void a_range_holds_all_of_the_thread(void **state)
{
	const uint64_t L = AT + PAGE;

	(void)state;
	put_state(L);
	assert_int_equal(search(L, L + THREAD_MAX), 1);
	assert_int_equal(search(L, L + THREAD_MAX - 1), 0);
	assert_int_equal(search(L - 7, L + THREAD_MAX), 1); /* objects are aligned */
	assert_int_equal(search(L + 1, L + THREAD_MAX + 8), 0);
	assert_int_equal(search(L, L), 0);
	assert_int_equal(search(L + THREAD_MAX, L), 0);
}

/* Pages that cannot be read hide only what is in them. */
static void a_hole_hides_what_is_in_it(void **state)
{
	uint64_t before, behind;

	(void)state;
	before = put_state(AT + 4 * PAGE);
	put_state(AT + 10 * PAGE);
	behind = put_state(AT + 14 * PAGE);
	hole = AT + 9 * PAGE;
	hole_end = AT + 12 * PAGE;
	assert_int_equal(search_all(), 2);
	assert_int_equal(found[0], before);
	assert_int_equal(found[1], behind);
	/* The range begins with one. */
	hole = AT;
	assert_int_equal(search_all(), 1);
	assert_int_equal(found[0], behind);
	hole_end = AT + BYTES;
	assert_int_equal(search_all(), 0);
}

/* Nor are there bytes in it that were read elsewhere before. */
static void what_was_read_before_is_not_taken_for_what_is_in_a_hole(void **state)
{
	const uint64_t second = AT + CHUNK - 248; /* where the next part begins */
	uint64_t L, g;

	(void)state;
	hole = AT + CHUNK + 4 * PAGE;
	hole_end = hole + PAGE;
	g = hole_end;
	L = g - L_SIZE;
	put_state(L);
	assert_int_equal(search_all(), 0);
	/* Now the bytes of L are at the same place of the first part, too. */
	put(L - second + AT + (uint64_t)vm.layout.GChead_gct, GCT_THREAD, 1);
	put(L - second + AT + (uint64_t)vm.layout.L_glref, g, 8);
	assert_int_equal(search_all(), 0);
	hole_end = hole;
	assert_finds(g);
}

static void without_gc64_references_have_half_the_size(void **state)
{
	uint64_t g;

	(void)state;
	vm.layout.gc64 = false;
	vm.layout.GChead_gct = 5;
	vm.layout.L_glref = 8;
	g = put_state(AT + PAGE);
	put(AT + PAGE + 12, 0xffffffff, 4); /* what lies behind them is another field */
	put(g + 0xc4, 0xffffffff, 4);
	assert_finds(g);
	/* They reach no higher, so nothing is there. */
	assert_int_equal(search(UINT64_C(0x100000000), UINT64_C(0x100000000) + BYTES), 0);
	assert_int_equal(search(AT, UINT64_C(0x200000000)), 1);
}

static void a_state_that_is_being_closed_is_none(void **state)
{
	uint64_t g = put_state(AT + PAGE);

	(void)state;
	for (unsigned int white = 0; white <= 7; white++) {
		put(g + 0x20, white, 1);
		assert_int_equal(recognise_is_state(&memory, &vm, g), (white & 3) != 3);
		assert_true(recognise_finds_state(&memory, &vm, g));
	}
	put(g + 0x20, 1, 1);
	hole = g + 0x20;
	hole_end = hole + 1;
	assert_false(recognise_is_state(&memory, &vm, g));
	hole = hole_end = 0;
	put(g + 0xc0, 0, 8);
	assert_false(recognise_is_state(&memory, &vm, g));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, begin)
	const struct CMUnitTest tests[] = {
		TEST(a_state_is_found_wherever_it_is),
		TEST(each_state_is_found_once),
		TEST(a_state_lies_right_behind_its_thread),
		TEST(all_pointers_lead_back),
		TEST(a_range_holds_all_of_the_thread),
		TEST(a_hole_hides_what_is_in_it),
		TEST(what_was_read_before_is_not_taken_for_what_is_in_a_hole),
		TEST(without_gc64_references_have_half_the_size),
		TEST(a_state_that_is_being_closed_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
