/* SPDX-License-Identifier: MIT */
/* Copies of memory: what is read, when, and what is guessed to be read next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "memory/snapshot.h"

enum { PAGE = 4096, BASE = 16 * PAGE };

/* Each byte is the low part of its own address; the page behind a gap is not mapped. */
struct numbered {
	struct memory memory; /* must be first */
	size_t calls, bytes, pieces;
	uint64_t hole; /* this page is not mapped, either */
};

static const uint64_t unmapped = BASE + 100 * PAGE;

static void read_numbered(struct memory *memory, struct memory_range *ranges, size_t count)
{
	struct numbered *numbered = (struct numbered *)memory;

	numbered->calls++;
	for (size_t i = 0; i < count; i++) {
		uint64_t end = ranges[i].address + ranges[i].length;

		ranges[i].status = end > unmapped || (ranges[i].address < numbered->hole + PAGE &&
						      end > numbered->hole)
					   ? MEMORY_UNMAPPED
					   : MEMORY_OK;
		for (size_t at = 0; ranges[i].status == MEMORY_OK && at < ranges[i].length; at++)
			((uint8_t *)ranges[i].copy)[at] = (uint8_t)(ranges[i].address + at);
		numbered->bytes += ranges[i].length;
		numbered->pieces++;
	}
}

struct fixture {
	struct numbered numbered;
	struct snapshot *snapshot;
	struct snapshot_guesses guesses;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->numbered.memory.read_ranges = read_numbered;
	fixture->snapshot = snapshot_new(&fixture->numbered.memory);
	assert_non_null(fixture->snapshot);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	snapshot_free(fixture->snapshot);
	free(fixture);
	return 0;
}

/* One sample: a first range, and then some that are asked for one by one. */
static void take(struct fixture *fixture, const struct memory_range *asked, size_t count)
{
	struct memory_range first = { .address = BASE, .length = 64 };

	fixture->numbered.calls = fixture->numbered.bytes = 0;
	snapshot_clear(fixture->snapshot);
	snapshot_capture_first(fixture->snapshot, &first, 1, &fixture->guesses);
	assert_int_equal(first.status, MEMORY_OK);
	for (size_t i = 0; i < count; i++) {
		struct memory_range range = { .address = asked[i].address, .length = asked[i].length };

		snapshot_capture(fixture->snapshot, &range, 1);
		assert_int_equal(range.status, MEMORY_OK);
		assert_int_equal(*(const uint8_t *)range.copy, (uint8_t)range.address);
	}
	assert_int_equal(snapshot_read_count(fixture->snapshot), fixture->numbered.calls);
	snapshot_seal(fixture->snapshot);
	snapshot_note_guesses(fixture->snapshot, 0, 0, false, &fixture->guesses);
}

static void what_was_asked_for_is_read_in_one_go_the_next_time(void **state)
{
	const struct memory_range asked[] = {
		{ .address = BASE + 10 * PAGE + 8, .length = 48 },
		{ .address = BASE + 20 * PAGE, .length = 600 },
		{ .address = BASE + 10 * PAGE + 1000, .length = 16 },
	};
	struct fixture *fixture = *state;

	take(fixture, asked, 3);
	assert_int_equal(fixture->numbered.calls, 4);
	take(fixture, asked, 3);
	assert_int_equal(fixture->numbered.calls, 1);
	take(fixture, asked, 3);
	assert_int_equal(fixture->numbered.calls, 1);
}

static void what_is_no_longer_asked_for_is_no_longer_read(void **state)
{
	const struct memory_range asked[] = {
		{ .address = BASE + 10 * PAGE + 8, .length = 48 },
		{ .address = BASE + 10 * PAGE + 3000, .length = 48 },
	};
	struct fixture *fixture = *state;
	size_t bytes;

	take(fixture, asked, 2);
	take(fixture, asked, 2);
	bytes = fixture->numbered.bytes;
	for (int i = 0; i < 10; i++) {
		take(fixture, asked, 1);
		assert_int_equal(fixture->numbered.calls, 1);
	}
	assert_true(fixture->numbered.bytes < bytes);
	/* It comes back after a while, and is given up after a longer one. */
	take(fixture, asked, 0);
	take(fixture, asked, 1);
	assert_int_equal(fixture->numbered.calls, 1);
	for (int i = 0; i < 10; i++)
		take(fixture, asked, 0);
	assert_int_equal(fixture->numbered.bytes, 64);
}

/* As of a structure of which one reader asks for more than another does. */
static void a_guess_is_not_cut_short_for_one_reader_who_asks_for_less(void **state)
{
	const struct memory_range whole = { .address = BASE + 10 * PAGE + 8, .length = 472 };
	const struct memory_range part = { .address = whole.address + 16, .length = 232 };
	struct fixture *fixture = *state;

	take(fixture, &whole, 1);
	for (int i = 0; i < 10; i++) {
		for (int j = 0; j < 4; j++) {
			take(fixture, &part, 1);
			assert_int_equal(fixture->numbered.calls, 1);
		}
		take(fixture, &whole, 1);
		assert_int_equal(fixture->numbered.calls, 1);
	}
	/* After a longer time without, only what is asked for is read. */
	for (int i = 0; i < 6; i++)
		take(fixture, &part, 1);
	assert_int_equal(fixture->numbered.bytes, 64 + part.length);
}

/* A stack of Lua, say, of which one sample in five needs five pages. */
static void pages_of_a_guess_that_nobody_asks_for_are_not_read(void **state)
{
	const struct memory_range whole = { .address = BASE + 10 * PAGE + 8, .length = 5 * PAGE };
	const struct memory_range part = { .address = whole.address + 2 * PAGE, .length = 232 };
	struct fixture *fixture = *state;

	for (int i = 0; i < 10; i++) {
		take(fixture, &whole, 1);
		take(fixture, &part, 1);
		for (int j = 0; j < 3; j++) {
			take(fixture, &part, 1);
			assert_true(fixture->numbered.bytes <= 64 + PAGE);
		}
	}
}

/* Has the guess of the range stayed whole? */
static bool is_guessed_whole(const struct fixture *fixture, const struct memory_range *range)
{
	for (size_t i = 0; i < fixture->guesses.count; i++)
		if (fixture->guesses.pieces[i].address == range->address &&
		    fixture->guesses.pieces[i].length == range->length)
			return true;
	return false;
}

static void looks_that_ask_for_nothing_of_a_guess_leave_it_whole(void **state)
{
	const struct memory_range whole = { .address = BASE + 10 * PAGE + 8, .length = 472 };
	const struct memory_range part = { .address = whole.address + 16, .length = 232 };
	struct fixture *fixture = *state;

	take(fixture, &whole, 1);
	for (int i = 0; i < 4; i++) {
		take(fixture, NULL, 0);
		take(fixture, &part, 1);
		assert_true(is_guessed_whole(fixture, &whole));
	}
	take(fixture, NULL, 0);
	assert_true(is_guessed_whole(fixture, &whole));
	take(fixture, &part, 1);
	assert_false(is_guessed_whole(fixture, &whole));
}

static void a_guess_that_gets_longer_is_not_cut_for_what_was_before(void **state)
{
	const struct memory_range whole = { .address = BASE + 10 * PAGE + 8, .length = 472 };
	const struct memory_range part = { .address = whole.address + 16, .length = 232 };
	const struct memory_range longer = { .address = whole.address, .length = 600 };
	const struct memory_range part_and_behind[] = {
		part, { .address = whole.address + whole.length, .length = longer.length - whole.length }
	};
	struct fixture *fixture = *state;

	take(fixture, &whole, 1);
	for (int i = 0; i < 3; i++)
		take(fixture, &part, 1);
	take(fixture, part_and_behind, 2);
	assert_true(is_guessed_whole(fixture, &longer));
	for (int i = 0; i < 4; i++) {
		take(fixture, &part, 1);
		assert_true(is_guessed_whole(fixture, &longer));
	}
}

/* As of objects that a program makes anew all the time, a bit further up each time. */
static void guesses_do_not_grow_with_what_moves(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t at = BASE + 10 * PAGE; at < BASE + 60 * PAGE; at += 512) {
		const struct memory_range asked[] = {
			{ .address = BASE + 9 * PAGE + 8, .length = 48 },
			{ .address = at, .length = 48 },
		};

		take(fixture, asked, 2);
		assert_true(fixture->numbered.bytes <= 64 + 4 * PAGE);
	}
}

/* As of a counter at the beginning of an object. */
static void a_single_byte_is_guessed(void **state)
{
	const struct memory_range asked[] = { { .address = BASE + 10 * PAGE, .length = 1 } };
	struct fixture *fixture = *state;

	take(fixture, asked, 1);
	assert_int_equal(fixture->numbered.calls, 2);
	take(fixture, asked, 1);
	assert_int_equal(fixture->numbered.calls, 1);
	assert_int_equal(fixture->numbered.bytes, 64 + 1);
}

static void what_begins_in_a_range_to_skip_is_not_guessed(void **state)
{
	const struct memory_range asked[] = {
		{ .address = BASE + 10 * PAGE, .length = 16 },
		{ .address = BASE + 20 * PAGE, .length = 16 },
		{ .address = BASE + 30 * PAGE - 16, .length = 16 },
		{ .address = BASE + 40 * PAGE, .length = 16 },
	};
	struct fixture *fixture = *state;

	take(fixture, asked, 4);
	assert_int_equal(fixture->guesses.count, 4);
	snapshot_note_guesses(fixture->snapshot, asked[1].address, asked[3].address, false,
			      &fixture->guesses);
	assert_int_equal(fixture->guesses.count, 2);
	assert_int_equal(fixture->guesses.pieces[0].address, asked[0].address);
	assert_int_equal(fixture->guesses.pieces[1].address, asked[3].address);
}

static void a_trial_does_not_make_a_guess_vain(void **state)
{
	const struct memory_range asked[] = { { .address = BASE + 10 * PAGE, .length = 16 } };
	struct fixture *fixture = *state;

	take(fixture, asked, 1);
	for (int i = 0; i < 20; i++) {
		snapshot_clear(fixture->snapshot);
		snapshot_capture_first(fixture->snapshot, NULL, 0, &fixture->guesses);
		snapshot_note_guesses(fixture->snapshot, 0, 0, true, &fixture->guesses);
		assert_int_equal(fixture->guesses.count, 1);
		assert_int_equal(fixture->guesses.pieces[0].vain, 0);
	}
	take(fixture, asked, 0);
	assert_int_equal(fixture->guesses.pieces[0].vain, 1);
}

static uint8_t read_byte(struct fixture *fixture, uint64_t address)
{
	uint8_t byte;

	assert_int_equal(memory_read(snapshot_memory(fixture->snapshot), address, &byte, 1), MEMORY_OK);
	return byte;
}

/* Its page, from the first byte to the last, and no other page. */
static void a_byte_is_read_with_its_page(void **state)
{
	static const uint64_t asked[] = { 77, 0, PAGE - 1 };
	enum { COUNT = sizeof(asked) / sizeof(asked[0]) };
	struct fixture *fixture = *state;

	for (size_t first = 0; first < COUNT; first++) {
		uint64_t page = BASE + (10 + 10 * first) * PAGE;

		fixture->numbered.bytes = 0;
		for (size_t i = 0; i < COUNT; i++) {
			uint64_t address = page + asked[(first + i) % COUNT];

			assert_int_equal(read_byte(fixture, address), (uint8_t)address);
		}
		assert_int_equal(snapshot_read_count(fixture->snapshot), first + 1);
		assert_int_equal(fixture->numbered.bytes, PAGE);
	}
}

static void what_cannot_be_read_is_left_out(void **state)
{
	struct fixture *fixture = *state;
	struct memory_range ranges[] = {
		{ .address = BASE, .length = 32 },
		{ .address = unmapped, .length = 32 },
	};

	snapshot_capture(fixture->snapshot, ranges, 2);
	assert_int_equal(ranges[0].status, MEMORY_OK);
	assert_int_equal(ranges[1].status, MEMORY_UNMAPPED);
	snapshot_seal(fixture->snapshot);
	assert_non_null(snapshot_view(fixture->snapshot, BASE + 8, 8));
	assert_null(snapshot_view(fixture->snapshot, unmapped, 8));
	assert_null(snapshot_view(fixture->snapshot, BASE + 2 * PAGE, 8));
}

/* A reader of several ranges at once costs one call; the next sample copies only what it asked for. */
static void ranges_that_are_missing_are_read_in_one_go(void **state)
{
	struct fixture *fixture = *state;
	size_t bytes = 0;

	for (int round = 0; round < 2; round++) {
		uint8_t copies[3][32];
		struct memory_range ranges[] = {
			{ .address = BASE + 10 * PAGE + 8, .copy = copies[0], .length = 32 },
			{ .address = BASE + 20 * PAGE + 8, .copy = copies[1], .length = 32 },
			{ .address = BASE + 30 * PAGE + 8, .copy = copies[2], .length = 32 },
		};

		snapshot_clear(fixture->snapshot);
		snapshot_capture_first(fixture->snapshot, NULL, 0, &fixture->guesses);
		memory_read_ranges(snapshot_memory(fixture->snapshot), ranges, 3);
		assert_int_equal(snapshot_read_count(fixture->snapshot), 1);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(ranges[i].status, MEMORY_OK);
			assert_int_equal(copies[i][0], 8);
		}
		bytes = fixture->numbered.bytes;
		fixture->numbered.bytes = 0;
		snapshot_note_guesses(fixture->snapshot, 0, 0, false, &fixture->guesses);
	}
	assert_int_equal(bytes, 3 * 32);
}

/* So many pieces are read for two ranges, the second so many bytes behind the first. */
static void expect_pieces(struct fixture *fixture, uint64_t first_end, uint64_t gap, size_t pieces)
{
	struct memory_range ranges[] = {
		{ .address = first_end - 8, .length = 8 },
		{ .address = first_end + gap, .length = 8 },
	};

	snapshot_clear(fixture->snapshot);
	fixture->numbered.calls = fixture->numbered.pieces = 0;
	snapshot_capture(fixture->snapshot, ranges, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(ranges[i].status, MEMORY_OK);
		assert_int_equal(*(const uint8_t *)ranges[i].copy, (uint8_t)ranges[i].address);
	}
	assert_int_equal(fixture->numbered.calls, 1);
	assert_int_equal(fixture->numbered.pieces, pieces);
}

/* A page between them of which nothing was asked for may be missing. */
static void what_lies_in_neighbouring_pages_is_one_piece(void **state)
{
	struct fixture *fixture = *state;
	const uint64_t page = BASE + 10 * PAGE;

	expect_pieces(fixture, page + 100, 0, 1);
	expect_pieces(fixture, page + 100, 1000, 1);
	expect_pieces(fixture, page + 1000, PAGE - 1000, 1);
	expect_pieces(fixture, page, 0, 1);
	expect_pieces(fixture, page, PAGE - 8, 1);
	expect_pieces(fixture, page + PAGE - 8, 8, 1);
	fixture->numbered.hole = page + PAGE;
	expect_pieces(fixture, page + PAGE, PAGE, 2);
	expect_pieces(fixture, page + PAGE - 8, PAGE + 8, 2);
	expect_pieces(fixture, page + 100, 2 * PAGE - 100, 2);
}

/* Whether they reach beyond the copy or lie within it, and in each copy of the bytes. */
static void bytes_that_are_put_in_are_read_from_then_on(void **state)
{
	enum { COPIES = 2, LENGTH = 64, PUT = 24 };
	static const uint64_t begins[COPIES] = { BASE + 100, BASE + 132 };
	struct fixture *fixture = *state;
	uint8_t bytes[PUT];

	memset(bytes, 0xee, sizeof(bytes));
	for (uint64_t at = BASE + 100 - PUT - 1; at <= BASE + 132 + LENGTH + 1; at++) {
		snapshot_clear(fixture->snapshot);
		for (size_t i = 0; i < COPIES; i++) {
			struct memory_range range = { .address = begins[i], .length = LENGTH };

			snapshot_capture(fixture->snapshot, &range, 1);
			assert_int_equal(range.status, MEMORY_OK);
		}
		snapshot_seal(fixture->snapshot);
		snapshot_overlay(fixture->snapshot, at, bytes, PUT);
		for (size_t i = 0; i < COPIES; i++) {
			const uint8_t *copy = snapshot_view(fixture->snapshot, begins[i], LENGTH);

			assert_non_null(copy);
			for (uint64_t of = begins[i]; of < begins[i] + LENGTH; of++)
				assert_int_equal(copy[of - begins[i]],
						 of >= at && of < at + PUT ? 0xee : (uint8_t)of);
		}
	}
}

static uint64_t next_random(uint64_t *random)
{
	*random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
	return *random >> 33;
}

/* Reads anywhere within what was captured, and across its ends: bytes are right or refused. */
static void judge_reads(struct snapshot *snapshot, const struct memory_range *captured, size_t count,
			uint64_t *random)
{
	struct memory *memory = snapshot_memory(snapshot);
	size_t read = 0;

	for (int i = 0; i < 2000; i++) {
		const struct memory_range *range = &captured[next_random(random) % count];
		uint64_t address = range->address - 8 + next_random(random) % (range->length + 16);
		uint8_t bytes[8];

		if (memory_read(memory, address, bytes, sizeof(bytes)) != MEMORY_OK) {
			assert_true(address < range->address || address + 8 > range->address + range->length);
			continue;
		}
		read++;
		for (size_t at = 0; at < sizeof(bytes); at++)
			assert_int_equal(bytes[at], (uint8_t)(address + at));
	}
	assert_true(read > 1000);
}

/* Few ranges are sorted in another way than many; each capture adds to those before. */
static void ranges_in_any_order_are_read_right(void **state)
{
	enum { CAPTURES = 6, RANGES = 60 };
	static const size_t counts[CAPTURES] = { 1, 2, 15, 60, 7, 30 };
	struct memory_range ranges[CAPTURES * RANGES];
	struct fixture *fixture = *state;
	uint64_t random = 1;

	for (int round = 0; round < 50; round++) {
		size_t count = 0;

		snapshot_clear(fixture->snapshot);
		for (size_t i = 0; i < CAPTURES; i++) {
			for (size_t j = 0; j < counts[i]; j++)
				ranges[count + j] = (struct memory_range){
					.address = BASE + PAGE + next_random(&random) % (90 * PAGE),
					.length = 8 + next_random(&random) % (i % 2 ? 40 : 2 * PAGE),
				};
			snapshot_capture(fixture->snapshot, &ranges[count], counts[i]);
			for (size_t j = 0; j < counts[i]; j++) {
				const struct memory_range *range = &ranges[count + j];

				assert_int_equal(range->status, MEMORY_OK);
				assert_int_equal(*(const uint8_t *)range->copy, (uint8_t)range->address);
			}
			count += counts[i];
		}
		snapshot_seal(fixture->snapshot);
		judge_reads(fixture->snapshot, ranges, count, &random);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_asked_for_is_read_in_one_go_the_next_time, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_is_no_longer_asked_for_is_no_longer_read, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_guess_is_not_cut_short_for_one_reader_who_asks_for_less,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(pages_of_a_guess_that_nobody_asks_for_are_not_read, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(looks_that_ask_for_nothing_of_a_guess_leave_it_whole, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_guess_that_gets_longer_is_not_cut_for_what_was_before,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(guesses_do_not_grow_with_what_moves, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_single_byte_is_guessed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_begins_in_a_range_to_skip_is_not_guessed, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_trial_does_not_make_a_guess_vain, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_byte_is_read_with_its_page, set_up, tear_down),
		cmocka_unit_test_setup_teardown(bytes_that_are_put_in_are_read_from_then_on, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_cannot_be_read_is_left_out, set_up, tear_down),
		cmocka_unit_test_setup_teardown(ranges_that_are_missing_are_read_in_one_go, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_lies_in_neighbouring_pages_is_one_piece, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(ranges_in_any_order_are_read_right, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
