/* SPDX-License-Identifier: MIT */
/* Whose are the bytes that a VM has allocated? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/allocations/allocation_shares.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
#include "tests/unit/failing_allocation.h"

enum { SECOND = 1000000000 };

static struct allocation_shares *shares;

static int begin(void **state)
{
	(void)state;
	shares = allocation_shares_new();
	return shares ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	allocation_shares_free(shares);
	return 0;
}

/* From one look to the next one; all looks meet the VM. */
static void add_interval_of(const struct allocated *allocated, uint64_t cpu_ns)
{
	allocation_shares_add_look(shares, cpu_ns);
	allocation_shares_add_interval(shares, allocated, cpu_ns);
}

static void allocates(int64_t bytes)
{
	const struct allocated allocated = { .bytes = bytes };

	add_interval_of(&allocated, SECOND / 100);
}

/* A window with so many objects of each kind, and nothing else. */
static void window(size_t tables, size_t functions, uint32_t strings, int64_t bytes)
{
	static struct listed_object objects[LISTED_OBJECTS_MAX];
	const struct allocated allocated = { .bytes = bytes, .strings = strings, .knows_strings = true };

	for (size_t i = 0; i < tables + functions; i++)
		objects[i] = i < tables ? (struct listed_object){ .kind = ALLOCATION_TABLE, .bytes = 64 }
					: (struct listed_object){ .kind = ALLOCATION_FUNCTION, .bytes = 40 };
	allocation_shares_add_window(shares, &allocated, objects, tables + functions);
}

static void samples(enum allocation_kind kind, uint64_t bytes, int count)
{
	const struct allocation allocation = { .kind = kind, .bytes = bytes };

	for (int i = 0; i < count; i++)
		assert_true(allocation_shares_add_sample(shares, &allocation) >= 0);
}

static struct allocation_share sum(const struct allocation_share *of, size_t first, size_t count)
{
	struct allocation_share all = { 0 };

	for (size_t i = first; i < first + count; i++) {
		all.bytes += of[i].bytes;
		all.objects += of[i].objects;
	}
	return all;
}

/* Tables take the allocator three times as long as functions, and there are as many of both. */
static void how_much_there_was_is_counted_and_not_sampled(void **state)
{
	const struct allocation_share *result;
	struct allocation_share tables, functions;

	(void)state;
	allocates(104000);
	window(100, 100, 0, 10400);
	samples(ALLOCATION_TABLE, 64, 30);
	samples(ALLOCATION_FUNCTION, 40, 10);
	assert_int_equal(allocation_shares_divide(shares, &result), 40);
	tables = sum(result, 0, 30);
	functions = sum(result, 30, 10);
	assert_in_range(tables.bytes, 63900, 64100);
	assert_in_range(functions.bytes, 39900, 40100);
	assert_in_range(tables.objects, 980, 1020);
	assert_in_range(functions.objects, 980, 1020);
	assert_in_range(allocation_shares_unseen(shares).bytes, 0, 1);
}

static void what_has_no_sample_waits_for_one(void **state)
{
	const struct allocation_share *result;
	size_t table, function;

	(void)state;
	allocates(104000);
	window(100, 100, 0, 10400);
	samples(ALLOCATION_TABLE, 64, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 1);
	assert_in_range(result[0].bytes, 63900, 64100);
	assert_in_range(allocation_shares_unseen(shares).bytes, 39900, 40100);
	assert_in_range(allocation_shares_unseen(shares).objects, 990, 1010);

	samples(ALLOCATION_FUNCTION, 40, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 1);
	assert_in_range(result[0].bytes, 39900, 40100);

	/* In a class that has had one, it waits to the end. */
	allocates(104000);
	window(100, 100, 0, 10400);
	samples(ALLOCATION_TABLE, 64, 1);
	table = allocation_shares_class(shares, 0);
	samples(ALLOCATION_FUNCTION, 40, 1);
	function = allocation_shares_class(shares, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);
	allocates(104000);
	samples(ALLOCATION_TABLE, 64, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 1);
	assert_in_range(allocation_shares_waiting(shares, function).bytes, 39900, 40100);
	assert_in_range(allocation_shares_waiting(shares, function).objects, 990, 1010);
	assert_in_range(allocation_shares_waiting(shares, table).bytes, 0, 1);
	assert_in_range(allocation_shares_unseen(shares).bytes, 0, 1);
}

/*
 * A marking ended in an interval twice as long as the others, a fifth of the time: it had as much as the
 * others.
 */
static void intervals_in_which_a_marking_ended_count_like_the_others(void **state)
{
	const struct allocated marked = { .bytes = 3, .is_least = true };
	const struct allocation_share *result;

	(void)state;
	for (int i = 0; i < 8; i++)
		allocates(1000);
	add_interval_of(&marked, SECOND / 50);
	window(10, 0, 0, 640);
	samples(ALLOCATION_TABLE, 64, 2);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);
	assert_in_range(sum(result, 0, 2).bytes, 9990, 10010);
}

static void begin_film(struct allocation_counters film[static ALLOCATION_FILM_LOOKS])
{
	for (size_t i = 0; i < ALLOCATION_FILM_LOOKS; i++)
		film[i] = (struct allocation_counters){
			.total = 100000, .estimate = 50000, .strings = 10, .root = 1
		};
}

/* The look at which a string of so many bytes, or a part, is new. */
static void filmed(struct allocation_counters *film, size_t at, uint64_t bytes, uint32_t strings)
{
	for (size_t i = at; i < ALLOCATION_FILM_LOOKS; i++) {
		film[i].total += bytes;
		film[i].strings += strings;
	}
}

static void sizes_of_strings_and_parts_come_from_films(void **state)
{
	struct allocation_counters film[ALLOCATION_FILM_LOOKS];
	const struct allocation_share *result;

	(void)state;
	begin_film(film);
	for (size_t i = 1; i <= 5; i++)
		filmed(film, i, 40, 1);
	filmed(film, 10, 200, 0); /* the string is counted at the next look */
	filmed(film, 11, 0, 1);
	filmed(film, 20, 320, 0); /* a part, and a string right after it */
	filmed(film, 21, 40, 1);

	/* All is strings, but for a part of 440 bytes: seven of 64 on average. */
	allocates(8800);
	window(0, 0, 7, 880);
	samples(ALLOCATION_STRING, 40, 1);
	samples(ALLOCATION_STRING, 200, 4);
	samples(ALLOCATION_ARRAY, 320, 1);
	allocation_shares_add_film(shares, film, NULL, 0);
	samples(ALLOCATION_STRING, 40, 1);
	samples(ALLOCATION_STRING, 200, 4);
	samples(ALLOCATION_ARRAY, 320, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 12);
	(void)result;

	allocates(8800);
	samples(ALLOCATION_STRING, 40, 1);
	samples(ALLOCATION_STRING, 200, 4);
	samples(ALLOCATION_ARRAY, 320, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 6);
	assert_in_range(result[0].bytes, 2300, 2500);         /* 70 strings: 60 of 40 bytes, */
	assert_in_range(sum(result, 1, 4).bytes, 1900, 2100); /* ... 10 of 200 */
	assert_in_range(result[0].objects, 58, 62);
	assert_in_range(sum(result, 1, 4).objects, 8, 12);
	assert_in_range(result[5].bytes, 4300, 4500); /* and the rest */
	assert_int_equal(result[5].objects, 0);
}

/*
 * Ten tables: their hash parts have 96 bytes, of which three in four get them at once, and the rest by
 * doubling.
 */
static void parts_of_new_tables_are_counted_and_not_filmed(void **state)
{
	struct listed_object tables[10];
	const struct allocated allocated = { .bytes = 1600, .knows_strings = true };
	const struct allocation first = { .kind = ALLOCATION_HASH, .bytes = 96, .is_first_part = true },
				grown = { .kind = ALLOCATION_HASH, .bytes = 48 },
				small = { .kind = ALLOCATION_HASH, .bytes = 48, .is_first_part = true };
	const struct allocation_share *result;

	(void)state;
	for (size_t i = 0; i < 10; i++)
		tables[i] = (struct listed_object){ .kind = ALLOCATION_TABLE, .bytes = 64, .hash_bytes = 96 };
	for (int i = 0; i < 3; i++)
		assert_int_equal(allocation_shares_add_sample(shares, &first), i);
	assert_int_equal(allocation_shares_add_sample(shares, &grown), 3);
	assert_int_equal(allocation_shares_add_sample(shares, &small), 4);
	samples(ALLOCATION_TABLE, 64, 1);
	allocation_shares_add_window(shares, &allocated, tables, 10);
	allocates(16000);
	assert_int_equal(allocation_shares_divide(shares, &result), 6);

	assert_int_equal(allocation_shares_add_sample(shares, &first), 0);
	assert_int_equal(allocation_shares_add_sample(shares, &grown), 1);
	assert_int_equal(allocation_shares_add_sample(shares, &small), 2);
	samples(ALLOCATION_TABLE, 64, 1);
	allocation_shares_add_window(shares, &allocated, tables, 10);
	allocates(16000);
	assert_int_equal(allocation_shares_divide(shares, &result), 4);
	/* Of two seconds: nothing of the first one had a class. */
	assert_in_range(result[0].bytes, 13500, 15000);       /* about three tables in four, 96 bytes each, */
	assert_in_range(sum(result, 1, 2).bytes, 4200, 5700); /* ... and the others, 48 and 48, */
	assert_in_range(result[3].bytes, 12700, 12900);       /* ... of the tables themselves, 64 each */
}

enum { COROUTINES = 10 /* of a window, and as many tables */ };

/*
 * A second with coroutines of 96 bytes and stacks of 376 beside tables of 64 with hash parts of 384: films
 * cannot tell the stacks from the parts. The first coroutines of its window have stacks of another size,
 * which all have grown to, or which is read wrongly.
 */
static const struct allocation_share *second_of_coroutines(uint64_t stack, size_t count)
{
	const struct allocation hash = { .kind = ALLOCATION_HASH, .bytes = 384, .is_first_part = true };
	const bool grow = stack > 376;
	const struct allocated allocated = { .bytes = 9200 + (grow ? count * (stack - 376) : 0),
					     .knows_strings = true };
	struct allocation_counters film[ALLOCATION_FILM_LOOKS];
	struct listed_object objects[2 * COROUTINES];
	const struct allocation_share *result;

	for (size_t i = 0; i < COROUTINES; i++) {
		objects[i] = (struct listed_object){ .kind = ALLOCATION_THREAD,
						     .bytes = 96,
						     .stack_bytes = i < count ? stack : 376 };
		objects[COROUTINES + i] = (struct listed_object){ .kind = ALLOCATION_TABLE,
								  .bytes = 64,
								  .hash_bytes = 384 };
	}
	begin_film(film);
	for (size_t i = 5; i < 35; i++)
		filmed(film, i, i % 3 ? 384 : 376, 0);
	for (size_t i = 36; i < 46 && grow; i++)
		filmed(film, i, stack - 376, 0);
	allocation_shares_add_film(shares, film, NULL, 0);
	allocation_shares_add_window(shares, &allocated, objects, 2 * COROUTINES);
	samples(ALLOCATION_STACK, 376, 5);
	samples(ALLOCATION_THREAD, 96, 1);
	samples(ALLOCATION_TABLE, 64, 1);
	assert_int_equal(allocation_shares_add_sample(shares, &hash), 7);
	samples(ALLOCATION_STACK, stack - 376, grow ? 5 : 0);
	allocates(10 * allocated.bytes);
	assert_int_equal(allocation_shares_divide(shares, &result), grow ? 13 : 8);
	return result;
}

static void stacks_of_new_coroutines_are_counted_and_not_filmed(void **state)
{
	const struct allocation_share *result = NULL;

	(void)state;
	for (int second = 0; second < 2; second++)
		result = second_of_coroutines(376, 0);
	assert_in_range(sum(result, 0, 5).bytes, 37600 - 200, 37600 + 200);
	assert_int_equal(sum(result, 0, 5).objects, 0);
	assert_in_range(result[5].bytes, 9600 - 100, 9600 + 100);
	assert_in_range(result[7].bytes, 38400 - 200, 38400 + 200);
	assert_in_range(allocation_shares_unseen(shares).bytes, 0, 1);
}

/* One coroutine, with the largest stack that any build begins with, beside two parts of older tables. */
static void a_large_first_stack_is_one_that_coroutines_begin_with(void **state)
{
	const struct allocated allocated = { .bytes = 96 + 384 + 480, .knows_strings = true };
	const struct listed_object object = { .kind = ALLOCATION_THREAD, .bytes = 96, .stack_bytes = 384 };
	const struct allocation_share *result;

	(void)state;
	allocation_shares_add_window(shares, &allocated, &object, 1);
	samples(ALLOCATION_STACK, 384, 1);
	samples(ALLOCATION_THREAD, 96, 1);
	samples(ALLOCATION_ARRAY, 240, 1);
	allocates(9600);
	assert_int_equal(allocation_shares_divide(shares, &result), 3);
	assert_int_equal(result[0].bytes, 3840);
	assert_int_equal(result[1].bytes, 960);
	assert_int_equal(result[2].bytes, 4800);
}

/* What a sample has met is no guess, however often windows have read another one. */
static void windows_do_not_change_the_first_stack_that_a_sample_has_met(void **state)
{
	const struct allocated allocated = { .bytes = 96 + 376, .knows_strings = true };
	struct listed_object object = { .kind = ALLOCATION_THREAD, .bytes = 96, .stack_bytes = 376 };
	const struct allocation_share *result;

	(void)state;
	for (size_t window = 0; window < 4; window++) {
		allocation_shares_add_window(shares, &allocated, &object, 1);
		if (window == 0)
			samples(ALLOCATION_STACK, 376, 1);
		object.stack_bytes = 328;
	}
	allocates(4720);
	assert_int_equal(allocation_shares_divide(shares, &result), 1);
	assert_in_range(result[0].bytes, 3760 - 5, 3760 + 5);
}

/* A coroutine that is not filled in yet seems to have any stack. */
static void a_stack_that_one_window_has_read_wrongly_does_not_count(void **state)
{
	static const uint64_t read[] = { 8, 160, 328 };

	for (size_t i = 0; i < sizeof(read) / sizeof(read[0]); i++)
		for (int wrong = 0; wrong < 3; wrong++) {
			end(state);
			begin(state);
			for (int second = 0; second < 8; second++) {
				const struct allocation_share *result = second_of_coroutines(read[i],
											     second == wrong);

				/* One of ten has none. */
				if (second > 2)
					assert_in_range(sum(result, 0, 5).bytes, 36000, 39000);
			}
			/* Of 92000 in a second: what the one had. */
			assert_in_range(allocation_shares_unseen(shares).bytes, 0, 10000);
		}
}

/*
 * Of two hash parts films see one, as large as a stack: neither have stacks what windows do not count, nor
 * does it wait for them, not even where a sample was before any window.
 */
static void what_films_take_for_stacks_is_not_theirs(void **state)
{
	const struct allocated allocated = { .bytes = 920, .knows_strings = true };
	const struct allocation hash = { .kind = ALLOCATION_HASH, .bytes = 192, .is_first_part = true };
	struct allocation_counters film[ALLOCATION_FILM_LOOKS];
	struct listed_object objects[4] = { { .kind = ALLOCATION_THREAD, .bytes = 96, .stack_bytes = 376 } };
	const struct allocation_share *result;

	(void)state;
	for (size_t i = 1; i < 4; i++)
		objects[i] = (struct listed_object){ .kind = ALLOCATION_TABLE,
						     .bytes = 64,
						     .hash_bytes = 192 };
	samples(ALLOCATION_STACK, 376, 1);
	allocates(920);
	assert_int_equal(allocation_shares_divide(shares, &result), 1);
	for (int second = 0; second < 4; second++) {
		begin_film(film);
		for (size_t i = 5; i < 45; i++)
			filmed(film, i, 384, 0);
		allocation_shares_add_film(shares, film, NULL, 0);
		/* One of fifteen in windows is a coroutine, and what films see, these explain in part. */
		for (size_t window = 0; window < 5; window++)
			allocation_shares_add_window(shares, &allocated, &objects[window > 0], 3);
		samples(ALLOCATION_STACK, 376, 1);
		samples(ALLOCATION_THREAD, 96, 1);
		samples(ALLOCATION_TABLE, 64, 1);
		assert_int_equal(allocation_shares_add_sample(shares, &hash), 3);
		allocates(92000);
		assert_int_equal(allocation_shares_divide(shares, &result), 4);
		assert_in_range(result[0].bytes, 92000 / 46 * 376 / 100 - 500, 92000 / 46 * 376 / 100 + 1000);
	}
}

/* By doubling, or at once to what a call needs. */
static void what_stacks_grow_by_is_counted(void **state)
{
	static const uint64_t sizes[] = { 816, 2000 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const uint64_t bytes = COROUTINES / 2 * 10 * (sizes[i] - 376);

		end(state);
		begin(state);
		for (size_t second = 0; second < 20; second++) {
			const struct allocation_share *result = second_of_coroutines(sizes[i],
										     COROUTINES / 2);

			/* How it grows at once, the first samples tell. */
			if (second < (i ? 16 : 2))
				continue;
			assert_in_range(sum(result, 0, 5).bytes, 37600 - 400, 37600 + 400);
			assert_in_range(result[7].bytes, 38400 - 400, 38400 + 400);
			assert_in_range(sum(result, 8, 5).bytes, bytes - 400, bytes + 400);
		}
	}
}

/* More sizes of stacks than there is room for have one sample each. */
static void meets_stacks_of_many_sizes(void)
{
	const struct allocation_share *result;

	for (uint64_t i = 0; i < 70; i++)
		samples(ALLOCATION_STACK, 3000 + 24 * i, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 70);
}

/* What most stacks grow by stays known. */
static void stacks_that_grow_alike_count_beside_many_that_do_not(void **state)
{
	const uint64_t bytes = COROUTINES / 2 * 10 * (2000 - 376);

	(void)state;
	for (size_t second = 0; second < 20; second++) {
		const struct allocation_share *result;

		meets_stacks_of_many_sizes();
		result = second_of_coroutines(2000, COROUTINES / 2);
		if (second < 16)
			continue;
		assert_in_range(sum(result, 0, 5).bytes, 37600 - 400, 37600 + 400);
		assert_in_range(sum(result, 8, 5).bytes, bytes - 400, bytes + 400);
	}
}

/* Samples of tables tell how their parts have grown, however many sizes stacks have. */
static void sizes_of_stacks_do_not_take_the_place_of_those_of_tables(void **state)
{
	meets_stacks_of_many_sizes();
	parts_of_new_tables_are_counted_and_not_filmed(state);
}

/* One in ten grows at once by as much as the others do by doubling twice. */
static void stacks_that_grow_at_once_do_not_have_what_others_double_by(void **state)
{
	const struct allocated allocated = { .bytes = 10 * (96 + 1696), .knows_strings = true };
	struct listed_object objects[COROUTINES];
	const struct allocation_share *result;

	(void)state;
	for (size_t i = 0; i < COROUTINES; i++)
		objects[i] = (struct listed_object){ .kind = ALLOCATION_THREAD,
						     .bytes = 96,
						     .stack_bytes = 1696 };
	for (size_t second = 0; second < 8; second++) {
		samples(ALLOCATION_STACK, 376, 1);
		samples(ALLOCATION_STACK, 440, 9);
		samples(ALLOCATION_STACK, 880, 9);
		samples(ALLOCATION_STACK, 440 + 880, 1);
		samples(ALLOCATION_THREAD, 96, 1);
		allocation_shares_add_window(shares, &allocated, objects, COROUTINES);
		allocates(10 * allocated.bytes);
		assert_int_equal(allocation_shares_divide(shares, &result), 21);
		if (second < 2)
			continue;
		assert_in_range(result[0].bytes, 37600 - 400, 37600 + 400);
		assert_in_range(sum(result, 1, 9).bytes, 39600 - 400, 39600 + 400);
		assert_in_range(sum(result, 10, 9).bytes, 79200 - 400, 79200 + 400);
		assert_in_range(result[19].bytes, 13200 - 400, 13200 + 400);
	}
}

/* No window has met what they have begun with. */
static void stacks_that_have_all_grown_count_once(void **state)
{
	(void)state;
	for (size_t second = 0; second < 8; second++) {
		const struct allocation_share *result = second_of_coroutines(816, COROUTINES);

		if (second < 2)
			continue;
		assert_in_range(sum(result, 0, 5).bytes, 37600 - 400, 37600 + 400);
		assert_in_range(result[7].bytes, 38400 - 400, 38400 + 400);
		assert_in_range(sum(result, 8, 5).bytes, 44000 - 400, 44000 + 400);
	}
}

/*
 * Ten coroutines, whose stacks grow from 376 to 816 and 1696 bytes, beside six buffers of 2200 that films see
 * rarely.
 */
static void stacks_that_grow_twice_do_not_have_what_films_miss(void **state)
{
	const struct allocated allocated = { .bytes = 10 * (96 + 1696) + 6 * 2200, .knows_strings = true };
	struct allocation_counters film[ALLOCATION_FILM_LOOKS];
	struct listed_object objects[COROUTINES];
	const struct allocation_share *result;

	(void)state;
	for (size_t i = 0; i < COROUTINES; i++)
		objects[i] = (struct listed_object){ .kind = ALLOCATION_THREAD,
						     .bytes = 96,
						     .stack_bytes = 1696 };
	for (size_t second = 0; second < 8; second++) {
		begin_film(film);
		for (size_t i = 5; i < 15; i++)
			filmed(film, i, 440, 0);
		for (size_t i = 15; i < 25; i++)
			filmed(film, i, 880, 0);
		filmed(film, 26, 2200, 0);
		allocation_shares_add_film(shares, film, NULL, 0);
		allocation_shares_add_window(shares, &allocated, objects, COROUTINES);
		samples(ALLOCATION_STACK, 376, 1);
		samples(ALLOCATION_STACK, 440, 1);
		samples(ALLOCATION_STACK, 880, 1);
		samples(ALLOCATION_OTHER, 2200, 1);
		samples(ALLOCATION_THREAD, 96, 1);
		allocates(10 * allocated.bytes);
		assert_int_equal(allocation_shares_divide(shares, &result), 5);
		if (second < 2)
			continue;
		assert_in_range(result[0].bytes, 37600 - 400, 37600 + 400);
		assert_in_range(result[1].bytes, 44000 - 400, 44000 + 400);
		assert_in_range(result[2].bytes, 88000 - 400, 88000 + 400);
		assert_in_range(result[3].bytes, 132000 - 400, 132000 + 400);
	}
}

/*
 * Of ten windows, with 20 coroutines whose stacks have doubled from 376 to 816 bytes, the rest is what older
 * tables grow by. It comes so fast that films see other steps together: in none of the sizes that samples
 * have met, or, in the last seconds, one step alone.
 */
static const struct allocation_share *second_of_steps(size_t steps_alone)
{
	const struct allocated allocated = { .bytes = 2 * (96 + 816) + 18000, .knows_strings = true };
	const struct listed_object objects[] = {
		{ .kind = ALLOCATION_THREAD, .bytes = 96, .stack_bytes = 816 },
		{ .kind = ALLOCATION_THREAD, .bytes = 96, .stack_bytes = 816 },
	};
	const struct allocation step = { .kind = ALLOCATION_HASH, .bytes = 192 };
	struct allocation_counters film[ALLOCATION_FILM_LOOKS];
	const struct allocation_share *result;

	begin_film(film);
	filmed(film, 5, 440, 0);
	filmed(film, 6, 440, 0);
	for (size_t i = 10; i < 40; i++)
		filmed(film, i, 288 + 24 * i, 0);
	for (size_t i = 0; i < steps_alone; i++)
		filmed(film, 40 + i, 192, 0);
	allocation_shares_add_film(shares, film, NULL, 0);
	for (size_t i = 0; i < 10; i++)
		allocation_shares_add_window(shares, &allocated, objects, 2);
	samples(ALLOCATION_STACK, 376, 1);
	samples(ALLOCATION_STACK, 440, 1);
	samples(ALLOCATION_THREAD, 96, 1);
	for (size_t i = 0; i < 5; i++)
		allocation_shares_add_sample(shares, &step);
	allocates(10 * allocated.bytes);
	assert_int_equal(allocation_shares_divide(shares, &result), 8);
	return result;
}

static void few_steps_of_stacks_on_film_do_not_have_what_films_miss(void **state)
{
	const struct allocation_share *result = NULL;
	uint64_t tables = 0;

	(void)state;
	for (size_t second = 0; second < 4; second++) {
		result = second_of_steps(second >= 1);
		tables += sum(result, 3, 5).bytes;
		if (second == 0)
			continue;
		assert_in_range(result[0].bytes, 20 * 376 - 100, 20 * 376 + 100);
		assert_in_range(result[1].bytes, 20 * 440 - 100, 20 * 440 + 100);
	}
	/* What films did not tell at first has waited until they did. */
	assert_in_range(tables, 4 * 180000 - 2000, 4 * 180000 + 2000);
}

/* Where no film ever sees a step alone, what is left does not wait for long. */
static void what_films_never_tell_waits_for_two_divisions(void **state)
{
	const struct allocation part = { .kind = ALLOCATION_ARRAY, .bytes = 200 };
	struct allocation_counters film[ALLOCATION_FILM_LOOKS];
	const struct allocation_share *result;

	(void)state;
	for (size_t division = 0; division < 3; division++) {
		begin_film(film);
		filmed(film, 5, 3000, 0);
		allocation_shares_add_film(shares, film, NULL, 0);
		assert_int_equal(allocation_shares_add_sample(shares, &part), 0);
		allocates(10000);
		assert_int_equal(allocation_shares_divide(shares, &result), 1);
		assert_int_equal(result[0].bytes, division < 2 ? 0 : 30000);
		assert_int_equal(allocation_shares_waiting(shares, allocation_shares_class(shares, 0)).bytes,
				 division < 2 ? (division + 1) * 10000 : 0);
	}
}

/* ... and strings that films have seen do not have it. */
static void strings_do_not_have_what_parts_leave_that_no_film_has_met(void **state)
{
	const struct allocation part = { .kind = ALLOCATION_ARRAY, .bytes = 200 };
	struct allocation_counters film[ALLOCATION_FILM_LOOKS];
	const struct allocation_share *result;

	(void)state;
	samples(ALLOCATION_STRING, 40, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 1);
	for (size_t division = 0; division < 2; division++) {
		begin_film(film);
		for (size_t i = 5; i < 15; i++)
			filmed(film, i, 40, 1);
		filmed(film, 20, 3000, 0);
		allocation_shares_add_film(shares, film, NULL, 0);
		window(0, 0, 100, 20000);
		samples(ALLOCATION_STRING, 40, 1);
		assert_int_equal(allocation_shares_add_sample(shares, &part), 1);
		allocates(20000);
		assert_int_equal(allocation_shares_divide(shares, &result), 2);
		assert_in_range(result[0].bytes, 4000, 8000);
	}
}

/* What older ones grow by, films tell, also where new ones have grown so, too. */
static void what_older_stacks_grow_by_is_theirs_beside_new_ones(void **state)
{
	const struct allocated allocated = { .bytes = 2 * (96 + 816) + 43120, .knows_strings = true };
	const struct listed_object objects[] = {
		{ .kind = ALLOCATION_THREAD, .bytes = 96, .stack_bytes = 816 },
		{ .kind = ALLOCATION_THREAD, .bytes = 96, .stack_bytes = 816 },
	};
	struct allocation_counters film[ALLOCATION_FILM_LOOKS];
	const struct allocation_share *result;

	(void)state;
	for (size_t second = 0; second < 4; second++) {
		begin_film(film);
		for (size_t i = 5; i < 15; i++)
			filmed(film, i, 440, 0);
		allocation_shares_add_film(shares, film, NULL, 0);
		allocation_shares_add_window(shares, &allocated, objects, 2);
		samples(ALLOCATION_STACK, 376, 1);
		samples(ALLOCATION_STACK, 440, 5);
		samples(ALLOCATION_THREAD, 96, 1);
		allocates(allocated.bytes);
		assert_int_equal(allocation_shares_divide(shares, &result), 7);
		if (second > 0)
			assert_in_range(sum(result, 1, 5).bytes, 44000 - 400, 44000 + 400);
	}
}

/* Coroutines that were there before the window grow, too: films tell of these alone. */
static void what_older_stacks_grow_by_is_filmed(void **state)
{
	const struct allocated allocated = { .bytes = 64 + 376 + 96, .knows_strings = true };
	const struct listed_object objects[] = {
		{ .kind = ALLOCATION_TABLE, .bytes = 64 },
		{ .kind = ALLOCATION_THREAD, .bytes = 96, .stack_bytes = 376 },
	};
	const struct allocated growing = { .bytes = 4400, .knows_strings = true };
	struct allocation_counters film[ALLOCATION_FILM_LOOKS];
	const struct allocation_share *result;

	(void)state;
	for (size_t second = 0; second < 4; second++) {
		begin_film(film);
		for (size_t i = 5; i < 15; i++)
			filmed(film, i, 440, 0);
		allocation_shares_add_film(shares, film, NULL, 0);
		allocation_shares_add_window(shares, &allocated, objects, 2);
		allocation_shares_add_window(shares, &growing, objects, 0);
		samples(ALLOCATION_STACK, 376, 1);
		samples(ALLOCATION_STACK, 440, 5);
		samples(ALLOCATION_TABLE, 64, 1);
		samples(ALLOCATION_THREAD, 96, 1);
		allocates(49360);
		assert_int_equal(allocation_shares_divide(shares, &result), 8);
		assert_in_range(sum(result, 1, 5).bytes, 44000 - 4400, 44000 + 4400);
	}
}

/* A string of 216 bytes, new in one moment with a table of 64 bytes whose part has 96. */
static void strings_beside_new_tables_have_the_rest(void **state)
{
	struct allocation_counters film[ALLOCATION_FILM_LOOKS];
	const struct listed_object table = {
		.address = 2, .kind = ALLOCATION_TABLE, .bytes = 64, .hash_bytes = 96
	};
	const struct listed_object objects[] = { table,
						 { .address = 1, .kind = ALLOCATION_TABLE, .bytes = 64 } };
	const struct allocation_share *result;

	(void)state;
	begin_film(film);
	for (size_t i = 10; i < ALLOCATION_FILM_LOOKS; i++)
		film[i].root = 2;
	filmed(film, 10, 216 + 64 + 96, 1);
	filmed(film, 20, 44, 1);
	allocates(1000);
	window(0, 0, 8, 1040);
	samples(ALLOCATION_STRING, 216, 1);
	samples(ALLOCATION_STRING, 44, 1);
	allocation_shares_add_film(shares, film, objects, 2);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);
	samples(ALLOCATION_STRING, 216, 1);
	samples(ALLOCATION_STRING, 44, 1);
	allocation_shares_add_film(shares, film, objects, 2);
	allocates(1000);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);
	assert_true(result[0].bytes > 4 * result[1].bytes && result[1].bytes > 0);
}

/* Of two that are new at one look, LuaJIT may have counted one only. */
static void two_strings_at_one_look_are_told_by_their_sizes(void **state)
{
	for (uint32_t counted = 1; counted <= 2; counted++) {
		struct allocation_counters film[ALLOCATION_FILM_LOOKS];
		const struct allocation_share *result;

		end(state);
		begin(state);
		samples(ALLOCATION_STRING, 40, 1);
		samples(ALLOCATION_STRING, 200, 1);
		begin_film(film);
		filmed(film, 5, 40, 1);
		filmed(film, 6, 200, 1);
		allocation_shares_add_film(shares, film, NULL, 0);
		samples(ALLOCATION_STRING, 40, 1);
		samples(ALLOCATION_STRING, 200, 1);
		allocates(240);
		assert_int_equal(allocation_shares_divide(shares, &result), 4);

		begin_film(film);
		for (size_t i = 1; i <= 9; i++)
			filmed(film, 2 * i, 240, counted);
		/* A size of which no sample was: it may be three strings, or more. */
		filmed(film, 30, 5000, 2);
		filmed(film, 32, 240, 3);
		allocation_shares_add_film(shares, film, NULL, 0);
		allocates(24000);
		window(0, 0, 20, 2400);
		samples(ALLOCATION_STRING, 40, 1);
		samples(ALLOCATION_STRING, 200, 1);
		assert_int_equal(allocation_shares_divide(shares, &result), 2);
		assert_in_range(result[0].bytes, 3950, 4100);
		assert_in_range(result[1].bytes, 19900, 20300);
		assert_in_range(result[0].objects, 98, 102);
		assert_in_range(result[1].objects, 98, 102);
	}
}

/*
 * A window tells how many there were. What had no sample of its size was mostly seen as one, but is several.
 */
static void strings_are_divided_among_the_sizes_that_samples_have_met(void **state)
{
	struct allocation_counters film[ALLOCATION_FILM_LOOKS];
	const struct allocation_share *result;

	(void)state;
	begin_film(film);
	for (size_t i = 1; i <= 6; i++)
		filmed(film, 2 * i, 40, 1);
	for (size_t i = 7; i <= 9; i++)
		filmed(film, 2 * i, 200, 1);
	filmed(film, 30, 5000, 1);
	samples(ALLOCATION_STRING, 40, 1);
	samples(ALLOCATION_STRING, 200, 1);
	allocation_shares_add_film(shares, film, NULL, 0);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);

	allocates(14800);
	window(10, 0, 9, 640 + 6 * 40 + 3 * 200);
	samples(ALLOCATION_STRING, 40, 1);
	samples(ALLOCATION_STRING, 200, 1);
	samples(ALLOCATION_TABLE, 64, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 3);
	assert_in_range(result[0].bytes, 2390, 2410);
	assert_int_equal(result[0].objects, 60);
	assert_in_range(result[1].bytes, 5990, 6010);
	assert_int_equal(result[1].objects, 30);
	assert_in_range(result[2].bytes, 6390, 6410);
	assert_int_equal(result[2].objects, 100);
	assert_int_equal(allocation_shares_unseen(shares).bytes, 0);
	assert_int_equal(allocation_shares_unseen(shares).objects, 0);
}

static void what_was_divided_is_not_divided_again(void **state)
{
	static const enum allocation_kind kinds[] = { ALLOCATION_ARRAY, ALLOCATION_TABLE };
	const struct allocation_share *result;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		end(state);
		begin(state);
		if (kinds[i] == ALLOCATION_TABLE)
			window(10, 0, 0, 640);
		for (int64_t bytes = 6400; bytes > 0; bytes /= 80) {
			allocates(bytes);
			samples(kinds[i], 64, 1);
			assert_int_equal(allocation_shares_divide(shares, &result), 1);
			assert_in_range(result[0].bytes, (uint64_t)bytes - 1, (uint64_t)bytes + 1);
			assert_int_equal(allocation_shares_unseen(shares).bytes, 0);
		}
	}
}

static size_t class_of_string(uint64_t bytes)
{
	const struct allocation string = { .kind = ALLOCATION_STRING, .bytes = bytes };
	const ptrdiff_t number = allocation_shares_add_sample(shares, &string);

	assert_true(number >= 0);
	return allocation_shares_class(shares, (size_t)number);
}

/* In steps of 16 bytes up to 512, and from there on of a quarter of a doubling. */
static void strings_of_about_one_size_are_one_class(void **state)
{
	static const uint64_t steps[][2] = { { 33, 48 },    { 497, 512 },   { 513, 640 },
					     { 897, 1024 }, { 1025, 1280 }, { 1793, 2048 } };
	struct allocation_counters film[ALLOCATION_FILM_LOOKS];

	(void)state;
	begin_film(film);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		filmed(film, 1 + 2 * i, steps[i][0] + 1, 1);
	allocation_shares_add_film(shares, film, NULL, 0);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		const size_t class = class_of_string(steps[i][0]);

		assert_int_equal(class_of_string(steps[i][1]), class);
		assert_int_not_equal(class_of_string(steps[i][0] - 1), class);
		assert_int_not_equal(class_of_string(steps[i][1] + 1), class);
	}
}

/* Two markings have hidden each other in one interval of several, which is longer than all others. */
static void many_short_intervals_with_a_marking_tell_of_short_cycles(void **state)
{
	const struct allocated marked = { .bytes = 1000, .has_marked = true, .is_least = true },
			       whole = { .bytes = 1000 };
	const struct allocation_share *result;
	uint64_t bytes;

	(void)state;
	for (int i = 0; i < 4; i++)
		add_interval_of(&marked, SECOND / 1000);
	for (int i = 0; i < 6; i++)
		add_interval_of(&whole, SECOND / 10);
	allocation_shares_divide(shares, &result);
	assert_int_equal(allocation_shares_sum(shares, &bytes), ALLOCATION_SUM_LEAST);
}

/* In one piece. */
static void add_span(const struct allocated *allocated, bool is_slowed)
{
	const struct span_piece piece = { .allocated = *allocated, .ns = 20000 };

	allocation_shares_add_span(shares, &piece, 1, is_slowed);
}

/*
 * A marking, a table of strings that got another size, much that was freed: bytes are not what they seem.
 * Finalizers: objects are not what they seem.
 */
static void windows_and_spans_that_are_not_sound_count_for_nothing(void **state)
{
	static const struct allocated unsound[] = {
		{ .bytes = 1000, .is_least = true, .knows_strings = true, .strings = 1000 },
		{ .bytes = 1000, .may_have_resized = true, .knows_strings = true, .strings = 1000 },
		{ .bytes = -ALLOCATED_FREED_MAX - 1, .knows_strings = true, .strings = 1000 },
	};
	const struct listed_object function = { .kind = ALLOCATION_FUNCTION, .bytes = 40 };
	const struct allocated sound = { .bytes = 1000 },
			       finalized = { .bytes = 1000, .may_have_finalized = true };
	const struct allocation_share *result;
	uint64_t bytes;

	(void)state;
	for (size_t i = 0; i < sizeof(unsound) / sizeof(unsound[0]); i++) {
		allocation_shares_add_window(shares, &unsound[i], &function, 1);
		if (unsound[i].bytes > 0)
			add_span(&unsound[i], false);
	}
	allocation_shares_add_window(shares, &sound, NULL, 0);
	allocation_shares_add_window(shares, &finalized, &function, 1);
	allocates(6400);
	window(10, 0, 0, 640);
	samples(ALLOCATION_TABLE, 64, 1);
	samples(ALLOCATION_FUNCTION, 40, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);
	assert_in_range(result[0].bytes, 6399, 6401);
	assert_int_equal(result[1].bytes, 0);
	assert_int_equal(allocation_shares_sum(shares, &bytes), ALLOCATION_SUM_COUNTED);
	assert_int_equal(bytes, 6400);
}

static void earlier_windows_count_three_quarters_at_each_division(void **state)
{
	const struct allocation_share *result;

	(void)state;
	window(100, 0, 0, 6400);
	samples(ALLOCATION_TABLE, 64, 1);
	allocates(6400);
	assert_int_equal(allocation_shares_divide(shares, &result), 1);
	assert_in_range(result[0].bytes, 6399, 6401);
	window(0, 160, 0, 6400);
	samples(ALLOCATION_TABLE, 64, 1);
	samples(ALLOCATION_FUNCTION, 40, 1);
	allocates(7000);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);
	assert_in_range(result[0].bytes, 2998, 3002);
	assert_in_range(result[1].bytes, 3998, 4002);
}

/* A table that is not filled in yet may seem to have any size. */
static void windows_whose_objects_have_more_than_was_allocated_count_for_nothing(void **state)
{
	const struct allocated allocated = { .bytes = 1000 };
	const struct allocation_share *result;

	(void)state;
	for (int part = 0; part < 3; part++) {
		const uint64_t more = ALLOCATED_FREED_MAX + 1001 - 64;
		const struct listed_object table = {
			.kind = ALLOCATION_TABLE,
			.bytes = part == 0 ? 64 + more : 64,
			.hash_bytes = part == 1 ? more : 0,
			.array_bytes = part == 2 ? more : 0,
		};

		allocation_shares_add_window(shares, &allocated, &table, 1);
	}
	allocates(4000);
	window(0, 10, 0, 400);
	samples(ALLOCATION_FUNCTION, 40, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 1);
	assert_int_equal(result[0].bytes, 4000);
	/* A sweep may hide some of what was allocated. */
	window(0, 40 + ALLOCATED_FREED_MAX / 40, 0, 1600);
	allocates(4000);
	samples(ALLOCATION_FUNCTION, 40, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 1);
	assert_int_equal(result[0].bytes, 4000);
}

/*
 * Of 10,000 bytes with so many strings. Windows have one for each 50 bytes, and functions with a fifth of
 * their bytes.
 */
static void allocates_with_strings(uint32_t strings, bool knows_strings)
{
	const struct allocated allocated = { .bytes = 10000,
					     .strings = strings,
					     .knows_strings = knows_strings };

	add_interval_of(&allocated, SECOND / 100);
	for (int i = 0; i < 5; i++)
		window(0, 5, 20, 1000);
	samples(ALLOCATION_STRING, 40, 1);
	samples(ALLOCATION_FUNCTION, 40, 1);
}

/* Windows are short, and have none of what is large; but intervals have all strings. */
static void large_allocations_have_what_strings_do_not_explain(void **state)
{
	const struct allocation_share *result;

	(void)state;
	allocates_with_strings(100, true);
	samples(ALLOCATION_ARRAY, 100 << 10, 1);
	samples(ALLOCATION_STRING, 300 << 10, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 4);
	assert_int_equal(result[0].bytes, 4000);
	assert_int_equal(result[1].bytes, 1000);
	assert_int_equal(result[2].bytes, 1250);
	assert_int_equal(result[3].bytes, 3750);
	assert_int_equal(allocation_shares_large(shares), 5000);

	/* They wait for a sample, */
	allocates_with_strings(100, true);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);
	assert_int_equal(result[0].bytes, 4000);
	assert_int_equal(result[1].bytes, 1000);
	assert_int_equal(allocation_shares_unseen(shares).bytes, 0);
	assert_int_equal(allocation_shares_large(shares), 5000);
	/* ... but for 5 % that may be chance; and where intervals do not know, windows do. */
	allocates_with_strings(192, true);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);
	assert_in_range(result[0].bytes, 8070, 8090);
	allocates_with_strings(100, false);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);
	assert_int_equal(result[0].bytes, 8000);
	assert_int_equal(result[1].bytes, 2000);
	allocates_with_strings(200, true);
	samples(ALLOCATION_ARRAY, 100 << 10, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 3);
	assert_in_range(result[2].bytes, 1249, 1251);
	/* ... each for one of its size. */
	allocates_with_strings(200, true);
	samples(ALLOCATION_STRING, 300 << 10, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 3);
	assert_in_range(result[2].bytes, 3749, 3751);
}

enum { LARGE = 100 << 10 };

static void add_pairs(const struct allocation_pair *pair, int count)
{
	for (int i = 0; i < count; i++)
		allocation_shares_add_pair(shares, pair);
}

static void seen(uint64_t bytes, bool is_cdata, int count)
{
	add_pairs(&(struct allocation_pair){ .bytes = bytes, .cdata = is_cdata ? PAIR_CDATA : PAIR_NO_CDATA },
		  count);
}

static void seen_strings(uint64_t bytes, int count)
{
	add_pairs(&(struct allocation_pair){ .bytes = bytes, .has_string = true }, count);
}

static void seen_merged(uint64_t bytes, bool is_cdata, int count)
{
	add_pairs(&(struct allocation_pair){ .bytes = bytes,
					     .is_merged = true,
					     .cdata = is_cdata ? PAIR_CDATA : PAIR_NO_CDATA },
		  count);
}

/*
 * Of 1,000,000 bytes, which are in large allocations: nine samples of tables that grow, and one of C arrays.
 */
static void meets_large_tables_and_arrays(uint64_t table_bytes, enum allocation_kind kind)
{
	const struct allocation_share *result;

	samples(kind, table_bytes, 9);
	samples(ALLOCATION_CDATA, LARGE, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 10);
	allocates(1000000);
	samples(kind, table_bytes, 9);
	samples(ALLOCATION_CDATA, LARGE, 1);
}

/* To copy what a table had takes the allocator nine times as long as an array; there are as many of both. */
static void series_tell_how_many_large_ones_there_are(void **state)
{
	const struct allocation_share *result;

	(void)state;
	assert_false(allocation_shares_has_large(shares));
	meets_large_tables_and_arrays(LARGE, ALLOCATION_ARRAY);
	assert_true(allocation_shares_has_large(shares));
	seen(LARGE + 300, false, 50);
	seen(LARGE + 300, true, 50);
	assert_int_equal(allocation_shares_divide(shares, &result), 10);
	assert_in_range(sum(result, 0, 9).bytes, 490000, 510000);
	assert_in_range(result[9].bytes, 490000, 510000);
	assert_int_equal(allocation_shares_large(shares), 1000000);
}

/* Without any series, samples tell. */
static void large_ones_that_no_series_has_seen_are_divided_by_samples(void **state)
{
	const struct allocation_share *result;

	(void)state;
	meets_large_tables_and_arrays(LARGE, ALLOCATION_ARRAY);
	assert_int_equal(allocation_shares_divide(shares, &result), 10);
	assert_in_range(sum(result, 0, 9).bytes, 899990, 900010);
}

/* While the kernel maps memory for one, a series waits, and may see it with the next ones. */
static void large_ones_that_a_series_sees_together_are_several(void **state)
{
	const struct allocation_share *result;

	(void)state;
	meets_large_tables_and_arrays(LARGE, ALLOCATION_ARRAY);
	seen(LARGE, false, 50);
	seen(2 * LARGE, true, 5);
	seen_merged(2 * LARGE + 10, true, 20);
	/* This is nothing that samples have met. */
	seen_merged(2 * LARGE + LARGE / 2, true, 20);
	seen_merged(2 * LARGE + LARGE / 10, true, 20);
	assert_int_equal(allocation_shares_divide(shares, &result), 10);
	assert_in_range(sum(result, 0, 9).bytes, 490000, 510000);
	assert_in_range(result[9].bytes, 490000, 510000);
	assert_int_equal(allocation_shares_unseen(shares).bytes, 0);
}

/* A series sees all of a new hash part, which doubles; a sample has what it adds. */
static void large_hash_parts_count_by_what_they_add(void **state)
{
	const uint64_t hash = 8192 * 24;
	const struct allocation_share *result;

	(void)state;
	meets_large_tables_and_arrays(hash / 2, ALLOCATION_HASH);
	seen(hash + 200, false, 50);
	seen(LARGE, true, 50);
	/* Small ones: what they add is less than a large one has. */
	seen(hash / 2 + 100, false, 1000);
	assert_int_equal(allocation_shares_divide(shares, &result), 10);
	assert_in_range(sum(result, 0, 9).bytes, 480000, 500000);
	assert_in_range(result[9].bytes, 500000, 520000);
}

/* What is a quarter larger than a hash part is none, and waits for a sample. */
static void what_is_no_hash_part_counts_in_full(void **state)
{
	const uint64_t hash = 8192 * 24;
	const struct allocation_share *result;

	(void)state;
	meets_large_tables_and_arrays(hash / 2, ALLOCATION_HASH);
	seen(hash + hash / 4, false, 50);
	seen(LARGE, true, 120);
	assert_int_equal(allocation_shares_divide(shares, &result), 10);
	assert_in_range(sum(result, 0, 9).bytes, 0, 20000);
	assert_in_range(allocation_shares_unseen(shares).bytes, 480000, 500000);
}

/* They wait for a sample: what another one of that size took must not be a table's. */
static void large_ones_that_only_series_have_seen_wait(void **state)
{
	const struct allocation_share *result;

	(void)state;
	meets_large_tables_and_arrays(LARGE, ALLOCATION_ARRAY);
	seen(LARGE, false, 50);
	seen(4 * LARGE, false, 50);
	assert_int_equal(allocation_shares_divide(shares, &result), 10);
	assert_in_range(sum(result, 0, 10).bytes, 190000, 220000);
	assert_in_range(allocation_shares_unseen(shares).bytes, 780000, 810000);
	samples(ALLOCATION_STRING, 4 * LARGE, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 1);
	assert_in_range(result[0].bytes, 780000, 810000);
}

/* Where few are seen, those of a minute count. */
static void few_large_ones_of_series_do_not_fade(void **state)
{
	const struct allocation_share *result;

	(void)state;
	meets_large_tables_and_arrays(LARGE, ALLOCATION_ARRAY);
	seen(LARGE, true, 60);
	for (int i = 0; i < 120; i++)
		assert_true(allocation_shares_divide(shares, &result) <= 10);
	seen(LARGE, false, 20);
	allocates(1000000);
	samples(ALLOCATION_ARRAY, LARGE, 1);
	samples(ALLOCATION_CDATA, LARGE, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);
	assert_in_range(result[0].bytes, 240000, 280000);
}

/* Beside small steps of older tables, of which films see more than of what is large. */
static void series_tell_how_much_is_large(void **state)
{
	const struct allocation_share *result;
	struct allocation_counters film[ALLOCATION_FILM_LOOKS];

	(void)state;
	allocates(1000000);
	begin_film(film);
	for (size_t i = 1; i <= 40; i++)
		filmed(film, i, 320, 0);
	allocation_shares_add_film(shares, film, NULL, 0);
	samples(ALLOCATION_ARRAY, 320, 1);
	samples(ALLOCATION_ARRAY, LARGE, 1);
	seen(LARGE, false, 20);
	seen(320, false, 20 * LARGE / 320 / 4);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);
	assert_in_range(result[0].bytes, 199000, 201000);
	assert_in_range(result[1].bytes, 799000, 801000);
}

/*
 * Of 1,000,000 bytes, which are in parts: a film tells of small ones, and samples have met these and a large
 * one.
 */
static void meets_small_and_large(enum allocation_kind kind, uint64_t large)
{
	struct allocation_counters film[ALLOCATION_FILM_LOOKS];

	allocates(1000000);
	begin_film(film);
	for (size_t i = 1; i <= 40; i++)
		filmed(film, i, 320, 0);
	allocation_shares_add_film(shares, film, NULL, 0);
	samples(ALLOCATION_ARRAY, 320, 1);
	samples(kind, large, 1);
}

/* Strings of as many bytes as a hash part that doubles, for which samples have met both. */
static void strings_as_large_as_hash_parts_count_in_full(void **state)
{
	const uint64_t hash = 8192 * 24;
	const struct allocation_share *result;

	(void)state;
	meets_large_tables_and_arrays(hash / 2, ALLOCATION_HASH);
	samples(ALLOCATION_STRING, hash, 10);
	seen_strings(hash + 25, 30);
	seen(hash + 25, false, 10);
	assert_int_equal(allocation_shares_divide(shares, &result), 20);
	/* The tables have 10 of half of that size each. */
	assert_in_range(sum(result, 0, 9).bytes, 130000, 155000);
	assert_in_range(sum(result, 10, 10).bytes, 820000, 850000);
	assert_int_equal(allocation_shares_unseen(shares).bytes, 0);
}

/* Nothing has doubled to that size: table.new(0, 8192), and strings. */
static void large_hash_parts_that_come_at_once_count_in_full(void **state)
{
	const uint64_t hash = 8192 * 24;
	const struct allocation_share *result;
	const struct allocation first = { .kind = ALLOCATION_HASH, .bytes = hash, .is_first_part = true };

	(void)state;
	meets_large_tables_and_arrays(LARGE, ALLOCATION_ARRAY);
	assert_true(allocation_shares_add_sample(shares, &first) >= 0);
	seen(hash, false, 50);
	seen(LARGE, false, 50);
	assert_int_equal(allocation_shares_divide(shares, &result), 11);
	assert_in_range(result[10].bytes, 640000, 665000);
	assert_int_equal(allocation_shares_unseen(shares).bytes, 0);
}

/* Also of a size that would be small if it had doubled. */
static void what_is_large_only_with_its_old_part_is_small(void **state)
{
	const uint64_t hash = 4096 * 24;
	const struct allocation_share *result;

	(void)state;
	meets_small_and_large(ALLOCATION_STRING, hash);
	seen(hash, false, 10);
	seen_strings(hash, 10);
	seen(320, false, 20 * (int)hash / 320);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);
	assert_in_range(result[1].bytes, 499000, 501000);
	/*
	 * Now a sample has met a small part by which a table has doubled, to that size or later to a larger
	 * one.
	 */
	meets_small_and_large(ALLOCATION_STRING, hash);
	samples(ALLOCATION_HASH, hash / 2, 1);
	seen(hash, false, 80);
	assert_int_equal(allocation_shares_divide(shares, &result), 3);
	assert_in_range(allocation_shares_large(shares), 249000, 251000);
}

/* Steps of 24, 48, 96 and 192 bytes are no hash parts only for that. */
static void small_steps_count_in_full(void **state)
{
	const struct allocation_share *result;

	(void)state;
	meets_small_and_large(ALLOCATION_ARRAY, LARGE);
	samples(ALLOCATION_HASH, 96, 1); /* some hash parts have doubled to 192 bytes */
	seen(LARGE, false, 24);
	for (int step = 24; step <= 192; step *= 2)
		seen((uint64_t)step, false, 6 * LARGE / step);
	assert_int_equal(allocation_shares_divide(shares, &result), 3);
	assert_in_range(result[1].bytes, 499000, 501000);
}

/* In a long pair, many small ones may be as much as a large one. */
static void many_small_ones_in_one_pair_are_not_large(void **state)
{
	const struct allocation_share *result;

	(void)state;
	meets_small_and_large(ALLOCATION_ARRAY, LARGE);
	seen(LARGE, false, 20);
	seen(320, false, 14 * LARGE / 320);
	seen_merged(LARGE / 2, false, 12); /* certainly small */
	seen_merged(70000, false, 10);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);
	assert_in_range(result[1].bytes, 499000, 501000);
}

/* Where much is untold, films tell: they have seen nothing large. */
static void series_that_leave_much_untold_do_not_tell(void **state)
{
	const struct allocation_share *result;

	(void)state;
	meets_small_and_large(ALLOCATION_ARRAY, LARGE);
	seen(LARGE, false, 60);
	seen_merged(LARGE + LARGE / 2, false, 12);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);
	assert_in_range(result[1].bytes, 990000, 1000000);
	meets_small_and_large(ALLOCATION_ARRAY, LARGE);
	seen_merged(LARGE + LARGE / 2, false, 3);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);
	assert_int_equal(result[1].bytes, 0);
}

/* Of which kind it is may be unknown: it is large all the same. */
static void what_may_be_a_c_object_is_large(void **state)
{
	const struct allocation_share *result;

	(void)state;
	meets_large_tables_and_arrays(LARGE, ALLOCATION_ARRAY);
	seen(LARGE, false, 50);
	seen(LARGE, true, 50);
	add_pairs(&(struct allocation_pair){ .bytes = LARGE, .cdata = PAIR_UNKNOWN }, 100);
	assert_int_equal(allocation_shares_divide(shares, &result), 10);
	assert_in_range(sum(result, 0, 9).bytes, 490000, 510000);
	assert_int_equal(allocation_shares_large(shares), 1000000);
}

/* A film tells of parts of 320 bytes, 12,800 in all, and of so much that is large; samples have met both. */
static void meets_parts_and_what_is_large(uint64_t large)
{
	struct allocation_counters film[ALLOCATION_FILM_LOOKS];

	begin_film(film);
	for (size_t i = 1; i <= 40; i++)
		filmed(film, i, 320, 0);
	filmed(film, 44, large, 0);
	allocation_shares_add_film(shares, film, NULL, 0);
	samples(ALLOCATION_ARRAY, 320, 1);
	samples(ALLOCATION_ARRAY, 200000, 1);
}

/* Older tables grow in small and in large steps: films tell one from the other. */
static void films_tell_small_parts_from_what_is_large(void **state)
{
	const struct allocation_share *result;

	(void)state;
	allocates(1000000);
	window(10, 0, 0, 6400);
	samples(ALLOCATION_TABLE, 64, 1);
	meets_parts_and_what_is_large(102400);
	assert_int_equal(allocation_shares_divide(shares, &result), 3);
	assert_in_range(result[0].bytes, 99990, 100010);
	assert_in_range(result[1].bytes, 99990, 100010);
	assert_in_range(result[2].bytes, 799980, 800020);
	assert_int_equal(allocation_shares_large(shares), result[2].bytes);
}

/* However much there is in a window: small steps of older tables come one after the other. */
static void many_small_parts_are_nothing_large(void **state)
{
	const struct allocation_share *result;

	(void)state;
	allocates(25 * 106400);
	for (int i = 0; i < 25; i++)
		window(100, 0, 0, 106400);
	samples(ALLOCATION_TABLE, 64, 1);
	meets_parts_and_what_is_large(0);
	assert_int_equal(allocation_shares_divide(shares, &result), 3);
	assert_in_range(result[1].bytes, 2499990, 2500010);
	assert_int_equal(result[2].bytes, 0);
	assert_int_equal(allocation_shares_large(shares), 0);
}

/* At the first division, too, when no size of strings is known from an earlier one. */
static void many_strings_are_nothing_large(void **state)
{
	const struct allocation_share *result;

	(void)state;
	allocates(25 * 83000);
	for (int i = 0; i < 25; i++)
		window(0, 0, 1000, 83000);
	samples(ALLOCATION_STRING, 40, 1);
	meets_parts_and_what_is_large(0);
	assert_int_equal(allocation_shares_divide(shares, &result), 3);
	assert_in_range(result[0].bytes, 999990, 1000010);
	assert_in_range(result[1].bytes, 1074990, 1075010);
	assert_int_equal(result[2].bytes, 0);
}

/*
 * What a film cannot tell of small parts, it must not tell of large ones: whose objects are unknown, or in a
 * sweep.
 */
static void films_that_tell_of_large_allocations_only_do_not_count(void **state)
{
	struct allocation_counters film[ALLOCATION_FILM_LOOKS];
	const struct allocation_share *result;

	(void)state;
	for (int i = 0; i < 2; i++) {
		begin_film(film);
		filmed(film, 10, 200000, 0);
		for (size_t k = i ? 0 : 10; k < ALLOCATION_FILM_LOOKS; k++) {
			film[k].root = i ? 1 : 2;
			film[k].state = i ? GCSsweep : GCSpause;
		}
		allocation_shares_add_film(shares, film, NULL, 0);
	}
	allocates(1000000);
	meets_parts_and_what_is_large(0);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);
	assert_in_range(result[0].bytes, 999990, 1000010);
	assert_int_equal(result[1].bytes, 0);
}

/* Of the last division, however little it is. */
static void it_is_told_how_much_is_large(void **state)
{
	const struct allocation_share *result;

	(void)state;
	allocates_with_strings(194, true);
	samples(ALLOCATION_ARRAY, 100 << 10, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 3);
	assert_in_range(result[2].bytes, 290, 310);
	assert_int_equal(allocation_shares_large(shares), result[2].bytes);
	allocates_with_strings(100, true);
	samples(ALLOCATION_ARRAY, 100 << 10, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 3);
	assert_in_range(allocation_shares_large(shares), 4900, 5100);
}

static void nothing_is_large_that_no_sample_has_met(void **state)
{
	const struct allocation_share *result;

	(void)state;
	allocates_with_strings(100, true);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);
	assert_int_equal(result[0].bytes, 9000);
	assert_int_equal(result[1].bytes, 1000);
	assert_int_equal(allocation_shares_large(shares), 0);
}

/*
 * A small buffer is freed as soon as it was made: it adds nothing to the sum, but looks meet it. What is
 * large was met by none.
 */
static void what_no_sample_has_met_does_not_go_to_small_parts(void **state)
{
	const struct allocation_share *result;
	const struct allocation large = { .kind = ALLOCATION_STRING, .bytes = 100000 };

	(void)state;
	window(10, 0, 0, 640);
	allocates(1000000);
	window(0, 0, 0, 100000);
	samples(ALLOCATION_TABLE, 64, 4);
	samples(ALLOCATION_OTHER, 32, 4);
	assert_int_equal(allocation_shares_divide(shares, &result), 8);
	assert_in_range(sum(result, 0, 4).bytes, 6300, 6400);
	assert_in_range(sum(result, 4, 4).bytes, 1, 16 * 100 * 32);
	assert_in_range(allocation_shares_unseen(shares).bytes, 940000, 994000);
	assert_in_range(sum(result, 0, 8).bytes + allocation_shares_unseen(shares).bytes, 999990, 1000010);
	/* It waits for a sample. */
	assert_true(allocation_shares_add_sample(shares, &large) >= 0);
	assert_int_equal(allocation_shares_divide(shares, &result), 1);
	assert_in_range(result[0].bytes, 940000, 994000);
	assert_int_equal(allocation_shares_unseen(shares).bytes, 0);
}

/* A minute in which no sample meets what is large is not a later sample's. */
static void what_was_met_long_ago_by_no_sample_is_lost(void **state)
{
	const struct allocation_share *result;

	(void)state;
	for (int i = 0; i < 100; i++) {
		window(10, 0, 0, 640);
		allocates(1000000);
		window(0, 0, 0, 100000);
		samples(ALLOCATION_TABLE, 64, 4);
		samples(ALLOCATION_OTHER, 32, 4);
		if (i == 99)
			samples(ALLOCATION_STRING, 100000, 1);
		assert_int_equal(allocation_shares_divide(shares, &result), i == 99 ? 9 : 8);
	}
	/* Of about four divisions before, and its own. */
	assert_in_range(result[8].bytes, 3000000, 6000000);
	assert_in_range(allocation_shares_unseen(shares).bytes, 80000000, 96000000);
}

/* Windows hardly ever have one, and then far too much of it: how much there is, the rest tells. */
static void a_large_part_that_a_window_has_caught_does_not_count(void **state)
{
	const struct listed_object objects[] = {
		{ .kind = ALLOCATION_TABLE, .bytes = 64 },
		{ .kind = ALLOCATION_TABLE, .bytes = 64, .array_bytes = 100000 }
	};
	const struct allocated allocated = { .bytes = 100128 };
	const struct allocation_share *result;

	(void)state;
	allocates(200000);
	allocation_shares_add_window(shares, &allocated, objects, 2);
	samples(ALLOCATION_TABLE, 64, 1);
	samples(ALLOCATION_OTHER, 100000, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);
	assert_in_range(result[0].bytes, 250, 260);
	assert_in_range(result[1].bytes, 199740, 199750);
	assert_int_equal(allocation_shares_unseen(shares).bytes, 0);
}

/* Of a VM that makes no strings, parts that are not large and those that are have all between them. */
static void large_parts_share_with_others_what_nothing_tells_apart(void **state)
{
	const struct allocation_share *result;

	(void)state;
	allocates(10000);
	samples(ALLOCATION_ARRAY, 24 << 10, 1);
	samples(ALLOCATION_ARRAY, 72 << 10, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);
	assert_int_equal(result[0].bytes, 2500);
	assert_int_equal(result[1].bytes, 7500);
	/* Without a sample, nothing waits for one. */
	allocates(10000);
	samples(ALLOCATION_ARRAY, 24 << 10, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 1);
	assert_int_equal(result[0].bytes, 10000);
}

/* A sample of long ago does not have at the end what large strings have taken since then. */
static void what_no_part_has_a_sample_for_waits_for_a_large_one(void **state)
{
	const struct listed_object table = { .kind = ALLOCATION_TABLE, .bytes = 64 };
	const struct allocated allocated = { .bytes = 100 };
	const struct allocation_share *result;
	size_t parts;

	(void)state;
	allocates(1000);
	samples(ALLOCATION_ARRAY, 24 << 10, 1);
	samples(ALLOCATION_STRING, 72 << 10, 1);
	parts = allocation_shares_class(shares, 0);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);
	for (int second = 0; second < 4; second++) {
		allocates(10000);
		allocation_shares_add_window(shares, &allocated, &table, 1);
		samples(ALLOCATION_TABLE, 64, 1);
		samples(ALLOCATION_STRING, 72 << 10, second == 3);
		assert_int_equal(allocation_shares_divide(shares, &result), second == 3 ? 2 : 1);
		assert_in_range(result[0].bytes, 6399, 6401);
		assert_in_range(allocation_shares_large(shares), 3599, 3601);
		assert_int_equal(allocation_shares_waiting(shares, parts).bytes, 0);
	}
	assert_in_range(result[1].bytes, 4 * 3599, 4 * 3601);
}

static void there_may_be_many_samples_and_classes(void **state)
{
	static struct listed_object objects[2 * ALLOCATION_CLASSES_MAX];
	const struct allocated allocated = { .bytes = 16 * 2 * ALLOCATION_CLASSES_MAX };
	const struct allocation_share *result;
	uint64_t bytes = 0;

	(void)state;
	for (uint32_t i = 0; i < 2 * ALLOCATION_CLASSES_MAX; i++)
		objects[i] = (struct listed_object){ .kind = ALLOCATION_CDATA,
						     .bytes = 16,
						     .ctype = 100 + i };
	allocation_shares_add_window(shares, &allocated, objects, 2 * ALLOCATION_CLASSES_MAX);
	allocates(100000);
	for (uint32_t i = 0; i < 2 * ALLOCATION_CLASSES_MAX; i++) {
		const struct allocation cdata = { .kind = ALLOCATION_CDATA, .bytes = 16, .ctype = 100 + i };

		assert_int_equal(allocation_shares_add_sample(shares, &cdata), i);
		assert_in_range(allocation_shares_class(shares, i), 0, ALLOCATION_CLASSES_MAX - 1);
	}
	assert_int_equal(allocation_shares_divide(shares, &result), 2 * ALLOCATION_CLASSES_MAX);
	for (size_t i = 0; i < 2 * ALLOCATION_CLASSES_MAX; i++) {
		assert_in_range(result[i].bytes, 96, 99);
		bytes += result[i].bytes;
	}
	assert_in_range(bytes, 99000, 101000);
}

/*---- Parts ----*/

/* A film of two new tables, of 64 bytes each, at one look, and of parts of so many bytes. */
static void film_two_tables(uint64_t part_bytes)
{
	static const struct listed_object tables[] = {
		{ .address = 3, .kind = ALLOCATION_TABLE, .bytes = 64 },
		{ .address = 2, .kind = ALLOCATION_TABLE, .bytes = 64 },
		{ .address = 1, .kind = ALLOCATION_TABLE, .bytes = 64 }
	};
	struct allocation_counters film[ALLOCATION_FILM_LOOKS];

	begin_film(film);
	filmed(film, 5, part_bytes + 2 * 64, 0);
	for (size_t i = 5; i < ALLOCATION_FILM_LOOKS; i++)
		film[i].root = 3;
	allocation_shares_add_film(shares, film, tables, 3);
}

static void two_parts_at_one_look_are_told_by_their_sizes(void **state)
{
	const struct allocation_share *result;

	(void)state;
	samples(ALLOCATION_ARRAY, 96, 1);
	samples(ALLOCATION_ARRAY, 320, 1);
	samples(ALLOCATION_ARRAY, 512, 1);
	film_two_tables(96);
	for (int i = 0; i < 3; i++) {
		film_two_tables(96 + 320);
		/* Of which no sample was: one of 96 and another, or any others. */
		film_two_tables(96 + 321);
	}
	assert_int_equal(allocation_shares_divide(shares, &result), 3);
	allocates(13440);
	samples(ALLOCATION_ARRAY, 96, 1);
	samples(ALLOCATION_ARRAY, 320, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);
	assert_in_range(result[0].bytes, 3838, 3842); /* four of 96 bytes, */
	assert_in_range(result[1].bytes, 9598, 9602); /* ... three of 320 */
}

/* Ten tables, whose array parts have 96 bytes. */
static void array_parts_of_new_tables_are_counted(void **state)
{
	struct listed_object tables[10];
	const struct allocated allocated = { .bytes = 1600 };
	const struct allocation_share *result;

	(void)state;
	for (size_t i = 0; i < 10; i++)
		tables[i] = (struct listed_object){ .kind = ALLOCATION_TABLE,
						    .bytes = 64,
						    .array_bytes = 96 };
	allocation_shares_add_window(shares, &allocated, tables, 10);
	allocates(16000);
	samples(ALLOCATION_TABLE, 64, 1);
	samples(ALLOCATION_ARRAY, 96, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);
	assert_in_range(result[0].bytes, 6399, 6401);
	assert_int_equal(result[0].objects, 100);
	assert_in_range(result[1].bytes, 9599, 9601);
	assert_int_equal(result[1].objects, 0); /* a part is none */
	assert_int_equal(allocation_shares_unseen(shares).bytes, 0);
}

/*
 * Ten tables with 17 slots: those that samples have met have got half of these, and of the rest, by growing.
 */
static void array_parts_have_grown_as_samples(void **state)
{
	static const uint64_t parts[] = { 72, 64 }; /* of 9 slots, and to 17 */
	struct listed_object tables[10];
	const struct allocated allocated = { .bytes = 2000 };
	const struct allocation_share *result;

	(void)state;
	for (size_t i = 0; i < 10; i++)
		tables[i] = (struct listed_object){ .kind = ALLOCATION_TABLE,
						    .bytes = 64,
						    .array_bytes = 136 };
	for (int round = 0; round < 2; round++) {
		if (round == 1) {
			allocation_shares_add_window(shares, &allocated, tables, 10);
			allocates(20000);
		}
		samples(ALLOCATION_TABLE, 64, 1);
		for (size_t i = 0; i < 2; i++)
			samples(ALLOCATION_ARRAY, parts[i], 1);
		assert_int_equal(allocation_shares_divide(shares, &result), 3);
	}
	assert_in_range(result[0].bytes, 6399, 6401);
	assert_in_range(result[1].bytes, 7199, 7201);
	assert_in_range(result[2].bytes, 6399, 6401);
	assert_int_equal(allocation_shares_unseen(shares).bytes, 0);
}

/*
 * Films see array parts only. New tables explain them if these have a fifth of it; else older tables have the
 * rest. Of 1000 bytes, so many tables with a part have 160 each.
 */
static void older_tables_have_what_new_ones_do_not_explain(void **state)
{
	static const struct {
		size_t tables;
		uint64_t part_bytes;
	} cases[] = { { 1, 9360 }, { 4, 3840 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct listed_object table = { .kind = ALLOCATION_TABLE,
						     .bytes = 64,
						     .array_bytes = 96 };
		const struct listed_object tables[] = { table, table, table, table };
		const struct allocated allocated = { .bytes = 1000 };
		struct allocation_counters film[ALLOCATION_FILM_LOOKS];
		const struct allocation_share *result;

		end(state);
		begin(state);
		allocation_shares_add_window(shares, &allocated, tables, cases[i].tables);
		begin_film(film);
		for (size_t at = 5; at < 10; at++)
			filmed(film, at, 96, 0);
		allocation_shares_add_film(shares, film, NULL, 0);
		allocates(10000);
		samples(ALLOCATION_TABLE, 64, 1);
		samples(ALLOCATION_ARRAY, 96, 1);
		assert_int_equal(allocation_shares_divide(shares, &result), 2);
		assert_in_range(result[0].bytes, cases[i].tables * 640 - 1, cases[i].tables * 640 + 1);
		assert_in_range(result[1].bytes, cases[i].part_bytes - 1, cases[i].part_bytes + 1);
		/* Nobody has had a sample of the rest. */
		assert_in_range(allocation_shares_unseen(shares).bytes + result[0].bytes + result[1].bytes,
				9998, 10002);
	}
}

/* The parts of the first 96 bytes, and those of 48 that came before half of them. */
static void hash_parts_have_grown_as_samples_of_their_own_size(void **state)
{
	static const struct allocation other = { .kind = ALLOCATION_HASH,
						 .bytes = 24,
						 .is_first_part = true },
				       first = { .kind = ALLOCATION_HASH,
						 .bytes = 96,
						 .is_first_part = true },
				       grown = { .kind = ALLOCATION_HASH, .bytes = 48 }, /* to 96 */
		small = { .kind = ALLOCATION_HASH, .bytes = 48, .is_first_part = true };
	static const struct allocation *const hashes[] = { &other, &first, &grown, &small };
	static const uint64_t bytes[] = { 0, 4800, 2400, 2400 };
	const size_t count = sizeof(hashes) / sizeof(hashes[0]);
	struct listed_object tables[10];
	const struct allocated allocated = { .bytes = 1600 };
	const struct allocation_share *result;

	(void)state;
	for (size_t i = 0; i < 3; i++)
		assert_true(allocation_shares_add_sample(shares, hashes[i]) >= 0);
	assert_int_equal(allocation_shares_divide(shares, &result), 3);
	for (size_t i = 0; i < 10; i++)
		tables[i] = (struct listed_object){ .kind = ALLOCATION_TABLE, .bytes = 64, .hash_bytes = 96 };
	allocation_shares_add_window(shares, &allocated, tables, 10);
	allocates(16000);
	for (size_t i = 0; i < count; i++)
		assert_true(allocation_shares_add_sample(shares, hashes[i]) >= 0);
	samples(ALLOCATION_TABLE, 64, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), count + 1);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(result[i].bytes, bytes[i]);
	assert_int_equal(result[count].bytes, 6400);
}

/* Ten tables with 96 bytes each come before the first samples, which tell that these double twice. */
static void hash_parts_that_wait_have_grown_as_later_samples(void **state)
{
	static const struct allocation to_96 = { .kind = ALLOCATION_HASH, .bytes = 48 },
				       to_48 = { .kind = ALLOCATION_HASH, .bytes = 24 },
				       first = { .kind = ALLOCATION_HASH,
						 .bytes = 24,
						 .is_first_part = true };
	struct listed_object tables[10];
	const struct allocated allocated = { .bytes = 1600 };
	const struct allocation_share *result;

	(void)state;
	for (size_t i = 0; i < 10; i++)
		tables[i] = (struct listed_object){ .kind = ALLOCATION_TABLE, .bytes = 64, .hash_bytes = 96 };
	allocation_shares_add_window(shares, &allocated, tables, 10);
	allocates(16000);
	samples(ALLOCATION_TABLE, 64, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 1);
	assert_int_equal(result[0].bytes, 6400);
	assert_int_equal(allocation_shares_unseen(shares).bytes, 9600);

	/* What samples tell, only later ones can have. */
	for (int round = 0; round < 2; round++) {
		assert_true(allocation_shares_add_sample(shares, &to_96) >= 0);
		assert_true(allocation_shares_add_sample(shares, &to_48) >= 0);
		assert_true(allocation_shares_add_sample(shares, &first) >= 0);
		assert_int_equal(allocation_shares_divide(shares, &result), 3);
		assert_int_equal(sum(result, 0, 3).bytes, round ? 9600 : 0);
	}
	assert_int_equal(result[0].bytes, 4800);
	assert_int_equal(result[1].bytes, 2400);
	assert_int_equal(result[2].bytes, 2400);
	assert_int_equal(allocation_shares_unseen(shares).bytes, 0);
}

/* Of 1000 bytes, five tables have 320 and five strings of 40 bytes 200; older tables grow. */
static void parts_have_what_tables_and_strings_leave(void **state)
{
	struct allocation_counters film[ALLOCATION_FILM_LOOKS];
	const struct allocation_share *result;

	(void)state;
	window(5, 0, 5, 1000);
	begin_film(film);
	filmed(film, 5, 96, 0);
	filmed(film, 7, 40, 1);
	allocation_shares_add_film(shares, film, NULL, 0);
	allocates(10000);
	samples(ALLOCATION_TABLE, 64, 1);
	samples(ALLOCATION_STRING, 40, 1);
	samples(ALLOCATION_ARRAY, 96, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 3);
	assert_in_range(result[0].bytes, 3199, 3201);
	assert_in_range(result[1].bytes, 1999, 2001);
	assert_in_range(result[2].bytes, 4799, 4801);
}

/* It counts less than one by then. */
static void one_string_on_film_tells_its_size_later_too(void **state)
{
	struct allocation_counters film[ALLOCATION_FILM_LOOKS];
	const struct allocation_share *result;

	(void)state;
	begin_film(film);
	filmed(film, 5, 200, 1);
	allocation_shares_add_film(shares, film, NULL, 0);
	samples(ALLOCATION_STRING, 200, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 1);
	window(0, 0, 5, 2000);
	allocates(20000);
	samples(ALLOCATION_STRING, 200, 1);
	samples(ALLOCATION_USERDATA, 100, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);
	assert_true(result[0].bytes >= 10000);
	assert_int_equal(result[0].objects, 50);
}

/*---- Shares ----*/

/*
 * A table fills 100 bytes of a window, or 112; strings of 40 bytes, one for two tables, have too little left,
 * or not.
 */
static void all_have_less_if_windows_leave_too_little_for_strings(void **state)
{
	static const struct {
		int64_t window_bytes;
		uint64_t table_bytes, tables, string_bytes, strings;
	} cases[] = { { 6400, 53333, 833, 10667, 267 }, { 7168, 64000, 1000, 7680, 320 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct allocation_share *result;

		end(state);
		begin(state);
		window(100, 0, 32, cases[i].window_bytes);
		allocates(10 * cases[i].window_bytes);
		samples(ALLOCATION_TABLE, 64, 1);
		samples(ALLOCATION_STRING, 40, 1);
		assert_int_equal(allocation_shares_divide(shares, &result), 2);
		assert_in_range(result[0].bytes, cases[i].table_bytes - 1, cases[i].table_bytes + 1);
		assert_int_equal(result[0].objects, cases[i].tables);
		assert_in_range(result[1].bytes, cases[i].string_bytes - 1, cases[i].string_bytes + 1);
		assert_int_equal(result[1].objects, cases[i].strings);
	}
}

/* Samples meet each as often as the other. */
static void samples_of_one_class_have_bytes_by_their_size(void **state)
{
	const struct allocation_share *result;

	(void)state;
	allocates(1600);
	window(0, 0, 20, 1600);
	samples(ALLOCATION_STRING, 40, 1);
	samples(ALLOCATION_STRING, 120, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);
	assert_in_range(result[0].bytes, 399, 401);
	assert_in_range(result[1].bytes, 1199, 1201);
	assert_int_equal(result[0].objects, 10);
	assert_int_equal(result[1].objects, 10);
}

/* A userdata is an object, though no window has met it. */
static void objects_that_are_not_listed_have_their_number_by_their_size(void **state)
{
	const struct allocation_share *result;

	(void)state;
	allocates(10000);
	samples(ALLOCATION_USERDATA, 100, 1);
	samples(ALLOCATION_STACK, 300, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);
	assert_int_equal(result[0].bytes, 2500);
	assert_int_equal(result[0].objects, 25);
	assert_int_equal(result[1].bytes, 7500);
	assert_int_equal(result[1].objects, 0);
}

static void userdata_have_what_windows_count(void **state)
{
	const struct listed_object userdata = { .kind = ALLOCATION_USERDATA, .bytes = 240 };
	const struct allocated allocated = { .bytes = 400, .strings = 4, .knows_strings = true };
	const struct allocation_share *result;

	(void)state;
	allocation_shares_add_window(shares, &allocated, &userdata, 1);
	allocates(40000);
	samples(ALLOCATION_USERDATA, 240, 1);
	samples(ALLOCATION_STRING, 40, 10);
	assert_int_equal(allocation_shares_divide(shares, &result), 11);
	assert_in_range(result[0].bytes, 23999, 24001);
	assert_int_equal(result[0].objects, 100);
}

/* Buffers have any size: they must not take all classes. */
static void userdata_of_many_sizes_leave_classes_to_others(void **state)
{
	struct listed_object objects[] = { { .kind = ALLOCATION_TABLE, .bytes = 64 },
					   { .kind = ALLOCATION_UPVALUE, .bytes = 64 } };
	const struct allocation_share *result;

	(void)state;
	for (uint64_t i = 0; i < 2 * ALLOCATION_CLASSES_MAX; i++) {
		const enum allocation_kind kind = i % 2 ? ALLOCATION_USERDATA : ALLOCATION_PROTO;
		const struct listed_object buffer = { .kind = kind, .bytes = 48 + 8 * i };
		const struct allocated allocated = { .bytes = (int64_t)buffer.bytes };

		allocation_shares_add_window(shares, &allocated, &buffer, 1);
	}
	for (int i = 0; i < 40; i++) {
		const struct allocated allocated = { .bytes = 128 };

		allocates(100000);
		for (int k = 0; k < 50; k++)
			allocation_shares_add_window(shares, &allocated, objects, 2);
		samples(ALLOCATION_TABLE, 64, 9);
		samples(ALLOCATION_UPVALUE, 64, 1);
		assert_int_equal(allocation_shares_divide(shares, &result), 10);
	}
	/* Those of before have faded. */
	assert_in_range(sum(result, 0, 9).bytes, 40000, 60000);
	assert_in_range(result[9].bytes, 40000, 60000);
}

static void userdata_of_about_one_size_have_their_own_bytes(void **state)
{
	const struct listed_object userdata[] = { { .kind = ALLOCATION_USERDATA, .bytes = 2056 },
						  { .kind = ALLOCATION_USERDATA, .bytes = 2456 } };
	const struct allocated allocated = { .bytes = 4512 * 2 };
	const struct allocation_share *result;

	(void)state;
	allocation_shares_add_window(shares, &allocated, userdata, 2);
	allocates(90240);
	samples(ALLOCATION_USERDATA, 2056, 1);
	samples(ALLOCATION_USERDATA, 2456, 1);
	samples(ALLOCATION_ARRAY, 24, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 3);
	assert_in_range(result[0].bytes, 20550, 20570);
	assert_in_range(result[1].bytes, 24550, 24570);
	assert_in_range(sum(result, 0, 2).objects, 19, 21);
}

/* It hardly ever falls into a window, and so it has what nothing else explains. */
static void a_large_object_in_a_window_has_no_class_of_its_own(void **state)
{
	const struct listed_object userdata = { .kind = ALLOCATION_USERDATA, .bytes = 200000 };
	const struct allocated allocated = { .bytes = 200000 };
	const struct allocation_share *result;

	(void)state;
	allocation_shares_add_window(shares, &allocated, &userdata, 1);
	allocates(1000000);
	samples(ALLOCATION_USERDATA, 200000, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 1);
	assert_in_range(result[0].bytes, 999999, 1000001);
	assert_int_equal(allocation_shares_unseen(shares).bytes, 0);
}

/* A function has the size that two strings lack; and a string that no sample has met has none. */
static void sizes_of_what_is_no_sampled_string_are_no_sizes_of_strings(void **state)
{
	const struct listed_object function = { .kind = ALLOCATION_FUNCTION, .bytes = 100 };
	const struct allocated with_function = { .bytes = 100 };
	struct allocation_counters film[ALLOCATION_FILM_LOOKS];
	const struct allocation_share *result;

	(void)state;
	allocation_shares_add_window(shares, &with_function, &function, 1);
	samples(ALLOCATION_FUNCTION, 100, 1);
	samples(ALLOCATION_STRING, 200, 1);
	samples(ALLOCATION_STRING, 400, 1);
	begin_film(film);
	filmed(film, 3, 200, 1);
	filmed(film, 5, 200, 1);
	filmed(film, 7, 400, 1);
	filmed(film, 9, 5000, 1);
	allocation_shares_add_film(shares, film, NULL, 0);
	assert_int_equal(allocation_shares_divide(shares, &result), 3);
	samples(ALLOCATION_FUNCTION, 100, 1);
	samples(ALLOCATION_STRING, 200, 1);
	samples(ALLOCATION_STRING, 400, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 3);

	begin_film(film);
	for (size_t i = 1; i <= 9; i++) {
		filmed(film, 2 * i, 100 + 200, 2);
		filmed(film, 2 * i + 1, 200, 2);
	}
	allocation_shares_add_film(shares, film, NULL, 0);
	allocates(80000);
	window(0, 0, 30, 8000);
	samples(ALLOCATION_STRING, 200, 1);
	samples(ALLOCATION_STRING, 400, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);
	assert_int_equal(result[0].objects, 200);
	assert_int_equal(result[1].objects, 100);

	/* These are two strings that samples have met. */
	begin_film(film);
	for (size_t i = 1; i <= 9; i++)
		filmed(film, 2 * i, 200 + 400, 2);
	allocation_shares_add_film(shares, film, NULL, 0);
	allocates(80000);
	samples(ALLOCATION_STRING, 200, 1);
	samples(ALLOCATION_STRING, 400, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);
	assert_in_range(result[0].objects, 150, 160);
	assert_in_range(result[1].objects, 140, 150);
}

/*
 * Of ten strings of 40 bytes and five of 200, only the former have a sample at first; but not what films may
 * have seen of a part that came with one of them.
 */
static void strings_that_films_have_met_wait_for_a_sample(void **state)
{
	struct allocation_counters film[ALLOCATION_FILM_LOOKS];
	const struct allocation_share *result;

	(void)state;
	begin_film(film);
	for (size_t i = 1; i <= 15; i++)
		filmed(film, i, i > 10 ? 200 : 40, 1);
	for (size_t i = 20; i < 30; i++)
		filmed(film, i, 40 + 320, 1);
	samples(ALLOCATION_STRING, 40, 1);
	samples(ALLOCATION_ARRAY, 320, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);
	allocation_shares_add_film(shares, film, NULL, 0);
	window(0, 0, 15, 1400);
	samples(ALLOCATION_STRING, 40, 1);
	allocates(14000);
	assert_int_equal(allocation_shares_divide(shares, &result), 1);
	assert_in_range(result[0].bytes, 4000 - 10, 4000 + 10);
	assert_in_range(allocation_shares_unseen(shares).bytes, 10000 - 10, 10000 + 10);
	samples(ALLOCATION_STRING, 200, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 1);
	assert_in_range(result[0].bytes, 10000 - 10, 10000 + 10);
	assert_in_range(result[0].objects, 49, 51);
}

/* Three strings at one look may be as large as two that samples have met. */
static void three_strings_at_one_look_tell_no_size(void **state)
{
	struct allocation_counters film[ALLOCATION_FILM_LOOKS];
	const struct allocation_share *result;

	(void)state;
	samples(ALLOCATION_STRING, 200, 1);
	samples(ALLOCATION_STRING, 400, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);
	for (size_t division = 0; division < 2; division++) {
		begin_film(film);
		for (size_t i = 1; i <= 10; i++)
			filmed(film, i, i > 8 ? 400 : 200, 1);
		for (size_t i = 20; i < 40; i++)
			filmed(film, i, 600, 3);
		allocation_shares_add_film(shares, film, NULL, 0);
		window(0, 0, 10, 2400);
		samples(ALLOCATION_STRING, 200, 1);
		samples(ALLOCATION_STRING, 400, 1);
		allocates(24000);
		assert_int_equal(allocation_shares_divide(shares, &result), 2);
	}
	assert_int_equal(result[0].objects, 80);
	assert_int_equal(result[1].objects, 20);
}

/* Of four C objects of one size, three have one type. */
static void c_objects_of_one_size_are_told_apart_by_their_types(void **state)
{
	const struct allocated allocated = { .bytes = 128 };
	struct listed_object objects[4];
	const struct allocation_share *result;

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		objects[i] = (struct listed_object){ .kind = ALLOCATION_CDATA,
						     .bytes = 32,
						     .ctype = i > 0 ? 100 : 101 };
	allocation_shares_add_window(shares, &allocated, objects, 4);
	for (uint32_t ctype = 100; ctype <= 101; ctype++) {
		const struct allocation sample = { .kind = ALLOCATION_CDATA, .bytes = 32, .ctype = ctype };

		assert_true(allocation_shares_add_sample(shares, &sample) >= 0);
	}
	allocates(12800);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);
	assert_int_equal(result[0].bytes, 9600);
	assert_int_equal(result[1].bytes, 3200);
}

/* If they do not know most of the bytes: these may be of a time with more strings. */
static void intervals_that_know_few_bytes_do_not_tell_how_many_strings_there_are(void **state)
{
	const struct allocated known = { .bytes = 2000, .strings = 200, .knows_strings = true };
	const struct allocation_share *result;

	(void)state;
	add_interval_of(&known, SECOND / 100);
	allocates(18000);
	window(0, 0, 20, 1000);
	samples(ALLOCATION_STRING, 40, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 1);
	assert_int_equal(result[0].objects, 400);
}

/* Beside twice as many in intervals, windows are not like half of the bytes: these few are chance. */
static void few_strings_in_windows_are_not_compared(void **state)
{
	const struct allocated allocated = { .bytes = 10000, .strings = 400, .knows_strings = true };
	const struct allocation_share *result;

	(void)state;
	add_interval_of(&allocated, SECOND / 100);
	window(0, 5, 20, 1000);
	samples(ALLOCATION_STRING, 10, 1);
	samples(ALLOCATION_FUNCTION, 40, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 2);
	assert_int_equal(result[1].objects, 50);
}

/* More than ljspy tells apart: those are put together, and nothing is lost. */
static void there_may_be_many_sizes(void **state)
{
	static const enum allocation_kind kinds[] = { ALLOCATION_STRING, ALLOCATION_ARRAY, ALLOCATION_HASH };
	enum { SIZES = 300 };

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		const struct allocation_share *result;
		uint64_t all = 0, waiting = 0;

		end(state);
		begin(state);
		for (int round = 0; round < 2; round++) {
			struct allocation_counters film[ALLOCATION_FILM_LOOKS];

			all = 1000000 + waiting;
			allocates(1000000);
			window(0, 0, kinds[k] == ALLOCATION_STRING ? 100 : 0, 100000);
			for (uint64_t i = 1; i <= SIZES; i++)
				samples(kinds[k], 16 * i, 1);
			begin_film(film);
			filmed(film, 5, 160, kinds[k] == ALLOCATION_STRING);
			allocation_shares_add_film(shares, film, NULL, 0);
			assert_int_equal(allocation_shares_divide(shares, &result), SIZES);
			waiting = allocation_shares_waiting(shares,
							    allocation_shares_class(shares, SIZES - 1))
					  .bytes;
			assert_in_range(sum(result, 0, SIZES).bytes + allocation_shares_unseen(shares).bytes +
						waiting,
					all - 1000, all + 1000);
			if (round == 1)
				/* The film knows that one only. */
				assert_in_range(result[9].bytes, all - 10000, all + 1000);
		}
	}
}

static void where_memory_is_short_a_sample_has_no_share(void **state)
{
	const struct allocation table = { .kind = ALLOCATION_TABLE, .bytes = 64 };
	const struct allocation_share *result;

	(void)state;
	window(10, 0, 0, 640);
	for (size_t i = 0; i < 2; i++) {
		allocation_fails_after(i);
		assert_int_equal(allocation_shares_add_sample(shares, &table), -1);
		assert_true(allocation_failed());
	}
	allocates(6400);
	samples(ALLOCATION_TABLE, 64, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 1);
	assert_in_range(result[0].bytes, 6399, 6401);
	allocation_fails_after(0);
	assert_null(allocation_shares_new());
	assert_true(allocation_failed());
}

static enum allocation_sum divided(uint64_t *ret_bytes)
{
	const struct allocation_share *result;
	uint64_t bytes;
	enum allocation_sum sum;

	samples(ALLOCATION_ARRAY, 64, 1);
	assert_int_equal(allocation_shares_divide(shares, &result), 1);
	sum = allocation_shares_sum(shares, &bytes);
	assert_in_range(bytes, result[0].bytes - 1, result[0].bytes + 1);
	*ret_bytes = bytes;
	return sum;
}

/* Not even a lower bound: nothing was missed. */
static void without_intervals_nothing_is_counted(void **state)
{
	const struct allocation_share *result;
	uint64_t bytes = 7;

	(void)state;
	assert_int_equal(allocation_shares_divide(shares, &result), 0);
	assert_int_equal(allocation_shares_sum(shares, &bytes), ALLOCATION_SUM_COUNTED);
	assert_int_equal(bytes, 0);
}

static void assert_counted(uint64_t bytes)
{
	uint64_t seen;

	assert_int_equal(divided(&seen), ALLOCATION_SUM_COUNTED);
	assert_int_equal(seen, bytes);
}

static void add_spans(int count, uint64_t bytes)
{
	const struct allocated span = { .bytes = (int64_t)bytes };

	for (int i = 0; i < count; i++)
		add_span(&span, false);
}

/* Intervals of a hundredth of a second: what they tell, of a heap of so much; and the speed of spans. */
static void add_hundredths(bool has_marked, uint64_t bytes, uint64_t heap_bytes, uint64_t span_bytes)
{
	const struct allocated interval = { .bytes = (int64_t)bytes,
					    .heap_bytes = heap_bytes,
					    .has_marked = has_marked,
					    .is_least = has_marked };

	for (int i = 0; i < 10; i++)
		add_interval_of(&interval, SECOND / 100);
	if (span_bytes)
		add_spans(16, span_bytes);
}

static void add_interval(int64_t bytes)
{
	const struct allocated interval = { .bytes = bytes, .heap_bytes = 100000000 };

	add_interval_of(&interval, SECOND / 100);
}

static void a_closed_vm_has_not_allocated_less(void **state)
{
	(void)state;
	add_interval(100000);
	for (int i = 0; i < 5; i++)
		add_interval(-1000000);
	assert_counted(100000);
}

static void what_a_sweep_frees_comes_off_once(void **state)
{
	(void)state;
	add_interval(100000);
	add_interval(-1000000);
	add_interval(5000);
	add_interval(1040000); /* 40000 of them are new */
	add_interval(60000);
	assert_counted(205000);
}

/*
 * A marking sets gc.estimate anew: what was freed before it is off already, and what is freed after it comes
 * off.
 */
static void what_is_freed_right_after_a_marking_comes_off_once(void **state)
{
	static const int64_t cases[][3] = { { 40000, -1000000, 1040000 }, { -1000000, 5000, 80000 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct allocated marked = { .bytes = cases[i][1],
						  .is_least = true,
						  .has_marked = true };

		end(state);
		begin(state);
		add_interval(40000);
		add_interval(40000);
		add_interval(cases[i][0]);
		add_interval_of(&marked, SECOND / 100);
		add_interval(cases[i][2]);
		assert_counted(200000);
	}
}

static void short_cycles_are_measured_by_spans(void **state)
{
	const struct allocated marked = { .bytes = 1000000, .is_least = true };
	uint64_t bytes;

	(void)state;
	add_hundredths(true, 3, 100000, 47);
	add_span(&marked, false);
	assert_int_equal(divided(&bytes), ALLOCATION_SUM_ESTIMATED);
	assert_in_range(bytes, 234000, 236000); /* 47 bytes in 20 us */
}

/* Though there is one in each span, the other pieces tell the speed. */
static void a_marking_hides_a_piece_of_a_span(void **state)
{
	const struct span_piece told = { .allocated = { .bytes = 47 }, .ns = 20000 },
				marked = { .allocated = { .bytes = 1, .is_least = true }, .ns = 20000 };
	const struct span_piece pieces[] = { told, marked, told };
	uint64_t bytes;

	(void)state;
	add_hundredths(true, 3, 100000, 0);
	for (int i = 0; i < 16; i++)
		allocation_shares_add_span(shares, pieces, 3, false);
	assert_int_equal(divided(&bytes), ALLOCATION_SUM_ESTIMATED);
	assert_in_range(bytes, 234000, 236000); /* 47 bytes in 20 us */
}

/*
 * Its spans do not tell what others do when looks do not meet it: it may be closed, or another of many runs.
 */
static void a_vm_that_is_not_seen_allocates_nothing(void **state)
{
	const struct allocation_share *ignored;
	uint64_t bytes;

	(void)state;
	add_hundredths(true, 3, 100000, 47);
	assert_int_equal(divided(&bytes), ALLOCATION_SUM_ESTIMATED);
	assert_in_range(bytes, 234000, 236000);
	for (int i = 0; i < 3; i++) {
		allocation_shares_divide(shares, &ignored);
		assert_int_equal(allocation_shares_sum(shares, &bytes), ALLOCATION_SUM_COUNTED);
		assert_int_equal(bytes, 0);
	}
	/* An interval over all that time. */
	allocation_shares_add_interval(shares, &(const struct allocated){ .bytes = 3, .is_least = true },
				       SECOND);
	add_hundredths(true, 3, 100000, 47);
	assert_int_equal(divided(&bytes), ALLOCATION_SUM_ESTIMATED);
	assert_in_range(bytes, 234000, 236000);
}

static void short_cycles_that_no_span_has_met_are_a_lower_bound(void **state)
{
	uint64_t bytes;

	(void)state;
	add_hundredths(true, 30, 100000, 0);
	assert_int_equal(divided(&bytes), ALLOCATION_SUM_LEAST);
	assert_int_equal(bytes, 300);
}

/*
 * A step of a sweep frees objects of 200 KB one by one, and takes all of them off gc.estimate at its end:
 * many spans have them too little, a few too much.
 */
static void what_a_sweep_frees_in_a_span_comes_off_the_others(void **state)
{
	const struct allocated freed = { .bytes = -200000 + 47 }, told = { .bytes = 15 * 200000 + 47 };
	uint64_t bytes;

	(void)state;
	add_hundredths(true, 3, 100000, 0);
	for (int i = 0; i < 15; i++)
		add_span(&freed, false);
	add_span(&told, false);
	assert_int_equal(divided(&bytes), ALLOCATION_SUM_ESTIMATED);
	assert_in_range(bytes, 234000, 236000);
}

/* Half a second in which it makes no more than some bytes, or nothing, and a heap of 100 KB lives on. */
static void add_calm(int64_t bytes, int spans)
{
	const struct allocated interval = { .bytes = bytes, .heap_bytes = 100000 };

	for (int i = 0; i < 50; i++)
		add_interval_of(&interval, SECOND / 100);
	add_spans(spans, 0);
}

/* Half a second in which cycles are short. */
static void add_burst(void)
{
	for (int i = 0; i < 5; i++)
		add_hundredths(true, 30, 100000, 47);
}

static void bursts_have_what_they_allocate_and_quiet_times_do_not(void **state)
{
	uint64_t bytes;

	(void)state;
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 4; i++) {
			add_calm(100, 50);
			assert_counted(5000);
		}
		for (int i = 0; i < 4; i++) {
			add_burst();
			assert_int_equal(divided(&bytes), ALLOCATION_SUM_ESTIMATED);
			assert_in_range(bytes, 1170000, 1180000);
		}
	}
}

static void assert_nothing(void)
{
	const struct allocation_share *ignored;
	uint64_t bytes;

	assert_int_equal(allocation_shares_divide(shares, &ignored), 0);
	assert_int_equal(allocation_shares_sum(shares, &bytes), ALLOCATION_SUM_COUNTED);
	assert_int_equal(bytes, 0);
}

/*
 * What a burst was like does not judge the time after it; and the next burst has not allocated in that time.
 */
static void quiet_times_lack_no_cycles(void **state)
{
	const struct allocated few = { .bytes = 100, .heap_bytes = 100000 };
	uint64_t bytes;

	(void)state;
	for (int round = 0; round < 3; round++) {
		add_burst();
		assert_int_equal(divided(&bytes), ALLOCATION_SUM_ESTIMATED);
		assert_in_range(bytes, 1170000, 1180000);
		for (int i = 0; i < 4; i++) {
			/* Beside others there are few spans. */
			add_calm(0, i % 2 ? 50 : 3);
			assert_nothing();
		}
		/* It makes something now and then. */
		add_calm(0, 50);
		for (int i = 0; i < 3; i++)
			add_interval_of(&few, SECOND / 100);
		assert_counted(300);
	}
}

/*
 * A fifth of the time has short cycles: each of these that was seen has allocated at least half of the heap.
 */
static void markings_tell_of_short_cycles_in_a_part_of_the_time(void **state)
{
	uint64_t bytes;

	(void)state;
	add_hundredths(true, 30, 100000, 0);
	for (int i = 0; i < 4; i++)
		add_hundredths(false, 100, 100000, 0);
	assert_int_equal(divided(&bytes), ALLOCATION_SUM_LEAST);
	assert_int_equal(bytes, 4300);
}

/* Of time with finalizers only a part is known, too. */
static void finalizers_do_not_tell_of_short_cycles(void **state)
{
	const struct allocated finalized = { .bytes = 3, .heap_bytes = 1000000, .is_least = true };

	(void)state;
	for (int i = 0; i < 8; i++)
		add_interval(1000);
	for (int i = 0; i < 2; i++)
		add_interval_of(&finalized, SECOND / 100);
	assert_counted(10000);
}

/* A program that collects all garbage now and then has allocated what the counters tell. */
static void few_markings_do_not_tell_of_short_cycles(void **state)
{
	(void)state;
	add_calm(100, 50);
	for (int i = 0; i < 2; i++) {
		const struct allocated collected = {
			.bytes = 100, .heap_bytes = 100000, .has_marked = true, .is_least = true
		};

		add_interval_of(&collected, SECOND / 100);
	}
	assert_counted(5200);
}

/*
 * In a busy quarter of the time, some of the spans have a marking: they tell that it is busy, not how much.
 */
static void spans_with_a_marking_have_as_much_as_other_busy_ones(void **state)
{
	const struct allocated marked = { .bytes = 1, .is_least = true };
	uint64_t bytes;

	(void)state;
	for (int most = 0; most < 2; most++) {
		const int marked_count = most ? 10 : 7;

		add_hundredths(true, 3, 100000, 0);
		add_spans(15 - marked_count, 94);
		for (int i = 0; i < marked_count; i++)
			add_span(&marked, false);
		add_spans(45, 0);
		/* If most have one, only what is known of them counts. */
		assert_int_equal(divided(&bytes), most ? ALLOCATION_SUM_LEAST : ALLOCATION_SUM_ESTIMATED);
		if (most)
			assert_in_range(bytes, 39900, 40100); /* 5 * 94 + 10 bytes in 60 * 20 us */
		else
			assert_in_range(bytes, 117000,
					118000); /* 94 bytes in 20 us, for a quarter of the time */
	}
}

static void slowed_spans_tell_a_lower_bound(void **state)
{
	const struct allocated span = { .bytes = 47 };
	uint64_t bytes;

	(void)state;
	for (int slowed = 10; slowed <= 20; slowed += 10) {
		add_hundredths(true, 3, 100000, 0);
		for (int i = 0; i < 30; i++)
			add_span(&span, i < slowed);
		assert_int_equal(divided(&bytes),
				 slowed > 15 ? ALLOCATION_SUM_LEAST : ALLOCATION_SUM_ESTIMATED);
		assert_in_range(bytes, 234000, 236000);
	}
}

/* What intervals have counted was there, even if spans tell less. */
static void a_lower_bound_is_no_less_than_what_was_counted(void **state)
{
	const struct allocated marked = { .bytes = 1, .is_least = true };
	uint64_t bytes;

	(void)state;
	add_hundredths(true, 1000000, 100000, 0);
	add_spans(10, 1);
	for (int i = 0; i < 16; i++)
		add_span(&marked, false);
	assert_int_equal(divided(&bytes), ALLOCATION_SUM_LEAST);
	assert_int_equal(bytes, 10 * 1000000);
}

static void spans_that_all_have_a_marking_tell_no_speed(void **state)
{
	const struct allocated marked = { .bytes = 1, .is_least = true };
	uint64_t bytes;

	(void)state;
	add_hundredths(true, 3, 100000, 0);
	add_spans(16, 0);
	for (int i = 0; i < 16; i++)
		add_span(&marked, false);
	assert_int_equal(divided(&bytes), ALLOCATION_SUM_LEAST);
}

/*
 * Of three intervals it allocates in one, while others run in the rest of the time; and half of its cycles
 * are noticed.
 */
static void add_turns_with_other_vms(void)
{
	const struct allocated rested = { .heap_bytes = 100000 };

	for (int i = 0; i < 10; i++) {
		add_hundredths(i % 2 == 0, 30, 100000, 0);
		for (int k = 0; k < 20; k++)
			add_interval_of(&rested, SECOND / 100);
	}
}

static void the_time_of_other_vms_does_not_hide_short_cycles(void **state)
{
	uint64_t bytes;

	(void)state;
	add_turns_with_other_vms();
	assert_int_equal(divided(&bytes), ALLOCATION_SUM_LEAST);
	add_turns_with_other_vms();
	add_spans(16, 47);
	add_spans(32, 0);
	assert_int_equal(divided(&bytes), ALLOCATION_SUM_ESTIMATED);
	/* 47 bytes in 20 us, for a third of 6 s. */
	assert_in_range(bytes, 4670000, 4710000);
}

/* Intervals in which a marking ended have as much as the others in which it ran. */
static void a_vm_that_rests_allocates_only_while_it_runs(void **state)
{
	const struct allocated rested = { .heap_bytes = 100000000 },
			       marked = { .bytes = 3, .heap_bytes = 100000000, .is_least = true };

	(void)state;
	for (int i = 0; i < 9; i++)
		add_interval(1000);
	add_interval_of(&marked, SECOND / 100);
	add_interval_of(&rested, SECOND);
	assert_counted(10000);
}

/* Where others want the same CPUs, spans are rare: as many as are enough are kept, however old they are. */
static void few_spans_do_not_tell_how_fast_it_is(void **state)
{
	uint64_t bytes, all = 0;

	(void)state;
	for (int i = 0; i < 4; i++) {
		add_hundredths(true, 30, 100000, 0);
		add_spans(4, i % 2 ? 0 : 94);
		assert_int_equal(divided(&bytes), i < 3 ? ALLOCATION_SUM_LEAST : ALLOCATION_SUM_ESTIMATED);
		all += bytes;
	}
	/* It was as fast before. */
	assert_in_range(all, 4 * 234000, 4 * 236000);
	for (int i = 0; i < 20; i++) {
		add_hundredths(true, 30, 100000, 0);
		assert_int_equal(divided(&bytes), ALLOCATION_SUM_ESTIMATED);
	}
	assert_in_range(bytes, 234000, 236000);
}

/* A tenth of a second: so many spans, and whose they are. */
struct turn {
	int count;
	bool of_first;
};

/* What both VMs have, in tenths of a second of the speed that either has when it runs. */
static double bytes_of_turns(const struct turn *turns, size_t count)
{
	uint64_t bytes, all = 0;

	for (int is_first = 0; is_first < 2; is_first++) {
		end(NULL);
		begin(NULL);
		for (size_t i = 0; i < count; i++) {
			add_hundredths(true, 30, 100000, 0);
			add_spans(turns[i].count, turns[i].of_first == is_first ? 47 : 0);
			divided(&bytes);
			all += bytes;
		}
	}
	return (double)all / 235000;
}

/*
 * Spans are rare for long, and by chance most of the first ones meet one of two VMs that take turns. All that
 * both have is what there was, though few spans tell of the other one, and later ones meet it, too.
 */
static void vms_that_take_turns_have_no_more_than_there_was(void **state)
{
	enum { RARE = 64, OFTEN = 12 };
	static struct turn turns[RARE + OFTEN];
	double all;

	(void)state;
	for (size_t i = 0; i < RARE; i++)
		turns[i] = (struct turn){ .count = i % 4 == 0, .of_first = i % 20 != 4 };
	for (size_t i = RARE; i < RARE + OFTEN; i++)
		turns[i] = (struct turn){ .count = 8, .of_first = i % 2 == 0 };
	all = bytes_of_turns(turns, RARE + OFTEN);
	assert_true(all > 0.9 * (RARE + OFTEN) && all < 1.1 * (RARE + OFTEN));
}

/* They tell it at least: chance, or a large object that one of them has met, does not make it more. */
static void few_spans_tell_a_lower_bound(void **state)
{
	const struct allocated large = { .bytes = 15 * 200000 };
	uint64_t bytes;

	(void)state;
	add_hundredths(true, 30, 100000, 0);
	add_spans(8, 47);
	assert_int_equal(divided(&bytes), ALLOCATION_SUM_LEAST);
	assert_in_range(bytes, 100000, 200000); /* of 235000 */
	/* Not even of enough of them, if few have met anything. */
	for (int quiet = 8; quiet <= 32; quiet += 24) {
		end(state);
		begin(state);
		add_hundredths(true, 30, 100000, 0);
		add_spans(quiet, 0);
		add_span(&large, false);
		assert_int_equal(divided(&bytes), ALLOCATION_SUM_LEAST);
		assert_int_equal(bytes, 300);
	}
}

/* A span of which a third met something met as much as a third of the spans do. */
static void few_pieces_of_spans_tell_a_lower_bound(void **state)
{
	const struct span_piece pieces[] = { { .ns = 6667 },
					     { .ns = 6667, .allocated = { .bytes = 47 } },
					     { .ns = 6666 } };
	uint64_t bytes;

	(void)state;
	add_hundredths(true, 30, 100000, 0);
	for (int i = 0; i < 8; i++)
		allocation_shares_add_span(shares, pieces, 3, false);
	assert_int_equal(divided(&bytes), ALLOCATION_SUM_LEAST);
	assert_in_range(bytes, 60000, 80000); /* of 235000 */
}

/* There, a division may have few intervals, or but one. */
static void few_intervals_are_judged_by_those_before(void **state)
{
	const struct allocated marked = { .bytes = 3, .heap_bytes = 1000000, .is_least = true };

	(void)state;
	add_hundredths(false, 1000, 1000000, 0);
	assert_counted(10000);
	add_interval_of(&marked, SECOND / 100);
	assert_counted(1000);
}

/* The same estimate at the end of each cycle hides them. */
static void cycles_that_intervals_do_not_notice_are_measured_by_spans(void **state)
{
	uint64_t bytes;

	(void)state;
	add_hundredths(false, 300, 20000, 47); /* 23 KB in an interval */
	assert_int_equal(divided(&bytes), ALLOCATION_SUM_ESTIMATED);
	assert_in_range(bytes, 234000, 236000);
}

static void spans_do_not_count_where_cycles_are_long(void **state)
{
	(void)state;
	add_hundredths(false, 300, 100000, 47);
	assert_counted(3000);
}

/* Spans are few: only far more than the intervals' counts. */
static void spans_do_not_count_where_they_tell_about_the_same(void **state)
{
	(void)state;
	add_hundredths(false, 17000, 20000, 47);
	assert_counted(170000);
}

static void spans_count_where_they_tell_twice_as_much(void **state)
{
	uint64_t bytes;

	(void)state;
	add_hundredths(false, 12000, 20000, 47);
	assert_int_equal(divided(&bytes), ALLOCATION_SUM_ESTIMATED);
	assert_in_range(bytes, 234000, 236000);
}

/* A division of a second. */
static void allocate_for_a_second(int64_t bytes)
{
	for (int i = 0; i < 100; i++)
		allocates(bytes / 100);
}

static void assert_before(enum allocation_sum sum, uint64_t bytes, uint64_t uncertain_bytes)
{
	struct allocation_share share;
	uint64_t uncertain;

	assert_int_equal(allocation_shares_before(shares, &share, &uncertain), sum);
	assert_in_range(share.bytes + 1, bytes, bytes + 2);
	assert_in_range(uncertain + 1, uncertain_bytes, uncertain_bytes + 2);
}

static void without_time_before_the_first_look_nothing_was_before(void **state)
{
	(void)state;
	allocate_for_a_second(100000);
	assert_counted(100000);
	assert_before(ALLOCATION_SUM_COUNTED, 0, 0);
}

static void a_long_time_before_the_first_look_counts_as_much_as_what_comes_after(void **state)
{
	(void)state;
	allocation_shares_add_before(shares, SECOND / 2);
	allocate_for_a_second(100000);
	assert_counted(100000);
	assert_before(ALLOCATION_SUM_ESTIMATED, 50000, 50000);
	/* Of a longer recording, what comes later counts, too. */
	allocate_for_a_second(300000);
	assert_counted(300000);
	assert_before(ALLOCATION_SUM_ESTIMATED, 100000, 100000);
}

/* Until then, there may be any more. */
static void so_much_time_is_looked_at_as_came_before_to_estimate_it(void **state)
{
	(void)state;
	allocation_shares_add_before(shares, 2 * SECOND);
	allocate_for_a_second(100000);
	assert_counted(100000);
	assert_before(ALLOCATION_SUM_LEAST, 0, 100000);
	allocate_for_a_second(300000);
	assert_counted(300000);
	assert_before(ALLOCATION_SUM_ESTIMATED, 400000, 400000);
}

/* Of the recording, which may be long. */
static void a_short_time_before_the_first_look_makes_no_difference(void **state)
{
	(void)state;
	allocation_shares_add_before(shares, SECOND / 10);
	allocate_for_a_second(100000);
	assert_counted(100000);
	assert_before(ALLOCATION_SUM_ESTIMATED, 10000, 10000);
	allocate_for_a_second(100000);
	allocate_for_a_second(100000);
	assert_counted(200000);
	assert_before(ALLOCATION_SUM_COUNTED, 0, 0);
}

/* What comes after may be any more: so may be what was before. */
static void what_was_before_is_at_least_as_much_as_after_it(void **state)
{
	uint64_t bytes;

	(void)state;
	allocation_shares_add_before(shares, SECOND / 20);
	add_hundredths(true, 30, 100000, 0);
	assert_int_equal(divided(&bytes), ALLOCATION_SUM_LEAST);
	assert_before(ALLOCATION_SUM_LEAST, bytes / 2, bytes / 2);
	end(state);
	begin(state);
	/* Those bytes are told already. */
	allocation_shares_add_before(shares, SECOND);
	add_hundredths(true, 30, 100000, 0);
	assert_int_equal(divided(&bytes), ALLOCATION_SUM_LEAST);
	assert_before(ALLOCATION_SUM_LEAST, 0, 0);
}

static void objects_before_the_first_look_are_estimated_too(void **state)
{
	const struct allocation_share *result;
	struct allocation_share share;
	uint64_t uncertain;

	(void)state;
	allocation_shares_add_before(shares, SECOND / 2);
	for (int i = 0; i < 2; i++) {
		window(10, 0, 0, 640);
		for (int j = 0; j < 50; j++)
			allocates(640);
		samples(ALLOCATION_TABLE, 64, 1);
		assert_int_equal(allocation_shares_divide(shares, &result), 1);
	}
	assert_int_equal(allocation_shares_before(shares, &share, &uncertain), ALLOCATION_SUM_ESTIMATED);
	assert_in_range(share.bytes, 31999, 32001);
	assert_in_range(share.objects, 499, 501);
}

/* Of a heap of 1 MB; a cycle of it needs half of that at least. */
static void allocate_beside_a_late_look(uint64_t late_ns, int64_t late_bytes)
{
	struct allocated allocated = { .bytes = 1000, .heap_bytes = 1000000 };

	for (int i = 0; i < 100; i++)
		add_interval_of(&allocated, SECOND / 1000);
	allocated.bytes = late_bytes;
	add_interval_of(&allocated, late_ns);
}

static void an_interval_in_which_a_whole_cycle_more_fits_hides_one(void **state)
{
	uint64_t bytes;

	(void)state;
	allocate_beside_a_late_look(SECOND, 5000);
	assert_int_equal(divided(&bytes), ALLOCATION_SUM_LEAST);
	assert_in_range(bytes, 104999, 105001);
}

/* No counter tells whether it does. */
static void a_long_time_in_which_nothing_may_have_been_done_counts_as_little_as_it_had(void **state)
{
	struct allocated allocated = { .bytes = 500000, .heap_bytes = 100000000 };
	uint64_t bytes;

	(void)state;
	for (int i = 0; i < 100; i++)
		add_interval_of(&allocated, SECOND / 1000);
	allocated.bytes = 1000;
	add_interval_of(&allocated, SECOND / 1000 * 400);
	/* They come right after looks, and so tell nothing of that time. */
	add_spans(20, 10000);
	assert_int_equal(divided(&bytes), ALLOCATION_SUM_LEAST);
	assert_in_range(bytes, 50000999, 50001001);
}

/* The rest may have short cycles, of which spans tell. */
static void a_long_time_is_not_for_spans_to_tell(void **state)
{
	struct allocated allocated = { .bytes = 20000, .heap_bytes = 20000 };
	uint64_t bytes;

	(void)state;
	for (int i = 0; i < 100; i++)
		add_interval_of(&allocated, SECOND / 1000);
	allocated.bytes = 5000;
	add_interval_of(&allocated, SECOND);
	add_spans(20, 2000); /* 10 MB in the first 100 ms */
	assert_int_equal(divided(&bytes), ALLOCATION_SUM_LEAST);
	assert_in_range(bytes, 10004990, 10005010);
}

/* A few of them count as much as the others. */
static void a_short_time_that_hides_a_cycle_counts_as_the_rest(void **state)
{
	struct allocated allocated = { .bytes = 20000, .heap_bytes = 1000000 };
	uint64_t bytes;

	(void)state;
	for (int i = 0; i < 100; i++)
		add_interval_of(&allocated, SECOND / 1000);
	allocated.bytes = 5000;
	add_interval_of(&allocated, SECOND / 1000 * 30);
	assert_int_equal(divided(&bytes), ALLOCATION_SUM_ESTIMATED);
	assert_in_range(bytes, 2599999, 2600001);
	/* The next division is judged by its own. */
	for (int i = 0; i < 100; i++)
		add_interval_of(&allocated, SECOND / 1000);
	assert_counted(500000);
}

static void looks_that_did_not_meet_the_vm_tell_that_nothing_is_hidden(void **state)
{
	struct allocated allocated = { .bytes = 1000, .heap_bytes = 1000000 };

	(void)state;
	for (int i = 0; i < 100; i++)
		add_interval_of(&allocated, SECOND / 1000);
	allocated.bytes = 5000;
	allocation_shares_add_look(shares, SECOND / 1000);
	allocation_shares_add_interval(shares, &allocated, SECOND);
	assert_counted(105000);
}

static void a_long_interval_that_has_as_much_as_others_is_whole(void **state)
{
	(void)state;
	allocate_beside_a_late_look(SECOND, 600000);
	assert_counted(700000);
}

static void a_long_interval_without_room_for_a_cycle_is_whole(void **state)
{
	(void)state;
	allocate_beside_a_late_look(SECOND / 4, 5000);
	assert_counted(105000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(how_much_there_was_is_counted_and_not_sampled, begin, end),
		cmocka_unit_test_setup_teardown(what_has_no_sample_waits_for_one, begin, end),
		cmocka_unit_test_setup_teardown(intervals_in_which_a_marking_ended_count_like_the_others,
						begin, end),
		cmocka_unit_test_setup_teardown(sizes_of_strings_and_parts_come_from_films, begin, end),
		cmocka_unit_test_setup_teardown(parts_of_new_tables_are_counted_and_not_filmed, begin, end),
		cmocka_unit_test_setup_teardown(stacks_of_new_coroutines_are_counted_and_not_filmed, begin,
						end),
		cmocka_unit_test_setup_teardown(what_stacks_grow_by_is_counted, begin, end),
		cmocka_unit_test_setup_teardown(stacks_that_grow_alike_count_beside_many_that_do_not, begin,
						end),
		cmocka_unit_test_setup_teardown(sizes_of_stacks_do_not_take_the_place_of_those_of_tables,
						begin, end),
		cmocka_unit_test_setup_teardown(stacks_that_grow_at_once_do_not_have_what_others_double_by,
						begin, end),
		cmocka_unit_test_setup_teardown(stacks_that_have_all_grown_count_once, begin, end),
		cmocka_unit_test_setup_teardown(stacks_that_grow_twice_do_not_have_what_films_miss, begin,
						end),
		cmocka_unit_test_setup_teardown(few_steps_of_stacks_on_film_do_not_have_what_films_miss,
						begin, end),
		cmocka_unit_test_setup_teardown(what_films_never_tell_waits_for_two_divisions, begin, end),
		cmocka_unit_test_setup_teardown(strings_do_not_have_what_parts_leave_that_no_film_has_met,
						begin, end),
		cmocka_unit_test_setup_teardown(what_older_stacks_grow_by_is_filmed, begin, end),
		cmocka_unit_test_setup_teardown(what_is_no_hash_part_counts_in_full, begin, end),
		cmocka_unit_test_setup_teardown(few_pieces_of_spans_tell_a_lower_bound, begin, end),
		cmocka_unit_test_setup_teardown(strings_that_films_have_met_wait_for_a_sample, begin, end),
		cmocka_unit_test_setup_teardown(three_strings_at_one_look_tell_no_size, begin, end),
		cmocka_unit_test_setup_teardown(c_objects_of_one_size_are_told_apart_by_their_types, begin,
						end),
		cmocka_unit_test_setup_teardown(
			intervals_that_know_few_bytes_do_not_tell_how_many_strings_there_are, begin, end),
		cmocka_unit_test_setup_teardown(few_strings_in_windows_are_not_compared, begin, end),
		cmocka_unit_test_setup_teardown(a_large_first_stack_is_one_that_coroutines_begin_with, begin,
						end),
		cmocka_unit_test_setup_teardown(windows_do_not_change_the_first_stack_that_a_sample_has_met,
						begin, end),
		cmocka_unit_test_setup_teardown(what_older_stacks_grow_by_is_theirs_beside_new_ones, begin,
						end),
		cmocka_unit_test_setup_teardown(a_stack_that_one_window_has_read_wrongly_does_not_count,
						begin, end),
		cmocka_unit_test_setup_teardown(what_films_take_for_stacks_is_not_theirs, begin, end),
		cmocka_unit_test_setup_teardown(strings_beside_new_tables_have_the_rest, begin, end),
		cmocka_unit_test_setup_teardown(two_strings_at_one_look_are_told_by_their_sizes, begin, end),
		cmocka_unit_test_setup_teardown(strings_are_divided_among_the_sizes_that_samples_have_met,
						begin, end),
		cmocka_unit_test_setup_teardown(what_was_divided_is_not_divided_again, begin, end),
		cmocka_unit_test_setup_teardown(strings_of_about_one_size_are_one_class, begin, end),
		cmocka_unit_test_setup_teardown(many_short_intervals_with_a_marking_tell_of_short_cycles,
						begin, end),
		cmocka_unit_test_setup_teardown(windows_and_spans_that_are_not_sound_count_for_nothing, begin,
						end),
		cmocka_unit_test_setup_teardown(earlier_windows_count_three_quarters_at_each_division, begin,
						end),
		cmocka_unit_test_setup_teardown(
			windows_whose_objects_have_more_than_was_allocated_count_for_nothing, begin, end),
		cmocka_unit_test_setup_teardown(large_allocations_have_what_strings_do_not_explain, begin,
						end),
		cmocka_unit_test_setup_teardown(series_tell_how_many_large_ones_there_are, begin, end),
		cmocka_unit_test_setup_teardown(large_ones_that_no_series_has_seen_are_divided_by_samples,
						begin, end),
		cmocka_unit_test_setup_teardown(large_ones_that_a_series_sees_together_are_several, begin,
						end),
		cmocka_unit_test_setup_teardown(large_hash_parts_count_by_what_they_add, begin, end),
		cmocka_unit_test_setup_teardown(large_ones_that_only_series_have_seen_wait, begin, end),
		cmocka_unit_test_setup_teardown(few_large_ones_of_series_do_not_fade, begin, end),
		cmocka_unit_test_setup_teardown(series_tell_how_much_is_large, begin, end),
		cmocka_unit_test_setup_teardown(strings_as_large_as_hash_parts_count_in_full, begin, end),
		cmocka_unit_test_setup_teardown(large_hash_parts_that_come_at_once_count_in_full, begin, end),
		cmocka_unit_test_setup_teardown(what_is_large_only_with_its_old_part_is_small, begin, end),
		cmocka_unit_test_setup_teardown(small_steps_count_in_full, begin, end),
		cmocka_unit_test_setup_teardown(many_small_ones_in_one_pair_are_not_large, begin, end),
		cmocka_unit_test_setup_teardown(series_that_leave_much_untold_do_not_tell, begin, end),
		cmocka_unit_test_setup_teardown(what_may_be_a_c_object_is_large, begin, end),
		cmocka_unit_test_setup_teardown(films_tell_small_parts_from_what_is_large, begin, end),
		cmocka_unit_test_setup_teardown(many_small_parts_are_nothing_large, begin, end),
		cmocka_unit_test_setup_teardown(films_that_tell_of_large_allocations_only_do_not_count, begin,
						end),
		cmocka_unit_test_setup_teardown(many_strings_are_nothing_large, begin, end),
		cmocka_unit_test_setup_teardown(it_is_told_how_much_is_large, begin, end),
		cmocka_unit_test_setup_teardown(nothing_is_large_that_no_sample_has_met, begin, end),
		cmocka_unit_test_setup_teardown(what_no_sample_has_met_does_not_go_to_small_parts, begin,
						end),
		cmocka_unit_test_setup_teardown(what_was_met_long_ago_by_no_sample_is_lost, begin, end),
		cmocka_unit_test_setup_teardown(a_large_part_that_a_window_has_caught_does_not_count, begin,
						end),
		cmocka_unit_test_setup_teardown(large_parts_share_with_others_what_nothing_tells_apart, begin,
						end),
		cmocka_unit_test_setup_teardown(what_no_part_has_a_sample_for_waits_for_a_large_one, begin,
						end),
		cmocka_unit_test_setup_teardown(there_may_be_many_samples_and_classes, begin, end),
		cmocka_unit_test_setup_teardown(two_parts_at_one_look_are_told_by_their_sizes, begin, end),
		cmocka_unit_test_setup_teardown(array_parts_of_new_tables_are_counted, begin, end),
		cmocka_unit_test_setup_teardown(array_parts_have_grown_as_samples, begin, end),
		cmocka_unit_test_setup_teardown(older_tables_have_what_new_ones_do_not_explain, begin, end),
		cmocka_unit_test_setup_teardown(hash_parts_have_grown_as_samples_of_their_own_size, begin,
						end),
		cmocka_unit_test_setup_teardown(hash_parts_that_wait_have_grown_as_later_samples, begin, end),
		cmocka_unit_test_setup_teardown(parts_have_what_tables_and_strings_leave, begin, end),
		cmocka_unit_test_setup_teardown(one_string_on_film_tells_its_size_later_too, begin, end),
		cmocka_unit_test_setup_teardown(all_have_less_if_windows_leave_too_little_for_strings, begin,
						end),
		cmocka_unit_test_setup_teardown(samples_of_one_class_have_bytes_by_their_size, begin, end),
		cmocka_unit_test_setup_teardown(objects_that_are_not_listed_have_their_number_by_their_size,
						begin, end),
		cmocka_unit_test_setup_teardown(userdata_have_what_windows_count, begin, end),
		cmocka_unit_test_setup_teardown(userdata_of_many_sizes_leave_classes_to_others, begin, end),
		cmocka_unit_test_setup_teardown(userdata_of_about_one_size_have_their_own_bytes, begin, end),
		cmocka_unit_test_setup_teardown(a_large_object_in_a_window_has_no_class_of_its_own, begin,
						end),
		cmocka_unit_test_setup_teardown(sizes_of_what_is_no_sampled_string_are_no_sizes_of_strings,
						begin, end),
		cmocka_unit_test_setup_teardown(there_may_be_many_sizes, begin, end),
		cmocka_unit_test_setup_teardown(where_memory_is_short_a_sample_has_no_share, begin, end),
		cmocka_unit_test_setup_teardown(a_closed_vm_has_not_allocated_less, begin, end),
		cmocka_unit_test_setup_teardown(what_a_sweep_frees_comes_off_once, begin, end),
		cmocka_unit_test_setup_teardown(what_is_freed_right_after_a_marking_comes_off_once, begin,
						end),
		cmocka_unit_test_setup_teardown(short_cycles_are_measured_by_spans, begin, end),
		cmocka_unit_test_setup_teardown(a_marking_hides_a_piece_of_a_span, begin, end),
		cmocka_unit_test_setup_teardown(a_vm_that_is_not_seen_allocates_nothing, begin, end),
		cmocka_unit_test_setup_teardown(short_cycles_that_no_span_has_met_are_a_lower_bound, begin,
						end),
		cmocka_unit_test_setup_teardown(what_a_sweep_frees_in_a_span_comes_off_the_others, begin,
						end),
		cmocka_unit_test_setup_teardown(quiet_times_lack_no_cycles, begin, end),
		cmocka_unit_test_setup_teardown(bursts_have_what_they_allocate_and_quiet_times_do_not, begin,
						end),
		cmocka_unit_test_setup_teardown(markings_tell_of_short_cycles_in_a_part_of_the_time, begin,
						end),
		cmocka_unit_test_setup_teardown(finalizers_do_not_tell_of_short_cycles, begin, end),
		cmocka_unit_test_setup_teardown(few_markings_do_not_tell_of_short_cycles, begin, end),
		cmocka_unit_test_setup_teardown(spans_with_a_marking_have_as_much_as_other_busy_ones, begin,
						end),
		cmocka_unit_test_setup_teardown(slowed_spans_tell_a_lower_bound, begin, end),
		cmocka_unit_test_setup_teardown(a_lower_bound_is_no_less_than_what_was_counted, begin, end),
		cmocka_unit_test_setup_teardown(spans_that_all_have_a_marking_tell_no_speed, begin, end),
		cmocka_unit_test_setup_teardown(the_time_of_other_vms_does_not_hide_short_cycles, begin, end),
		cmocka_unit_test_setup_teardown(a_vm_that_rests_allocates_only_while_it_runs, begin, end),
		cmocka_unit_test_setup_teardown(few_spans_do_not_tell_how_fast_it_is, begin, end),
		cmocka_unit_test_setup_teardown(vms_that_take_turns_have_no_more_than_there_was, begin, end),
		cmocka_unit_test_setup_teardown(few_spans_tell_a_lower_bound, begin, end),
		cmocka_unit_test_setup_teardown(few_intervals_are_judged_by_those_before, begin, end),
		cmocka_unit_test_setup_teardown(cycles_that_intervals_do_not_notice_are_measured_by_spans,
						begin, end),
		cmocka_unit_test_setup_teardown(without_intervals_nothing_is_counted, begin, end),
		cmocka_unit_test_setup_teardown(spans_do_not_count_where_cycles_are_long, begin, end),
		cmocka_unit_test_setup_teardown(spans_do_not_count_where_they_tell_about_the_same, begin,
						end),
		cmocka_unit_test_setup_teardown(spans_count_where_they_tell_twice_as_much, begin, end),
		cmocka_unit_test_setup_teardown(
			a_long_time_before_the_first_look_counts_as_much_as_what_comes_after, begin, end),
		cmocka_unit_test_setup_teardown(without_time_before_the_first_look_nothing_was_before, begin,
						end),
		cmocka_unit_test_setup_teardown(what_was_before_is_at_least_as_much_as_after_it, begin, end),
		cmocka_unit_test_setup_teardown(objects_before_the_first_look_are_estimated_too, begin, end),
		cmocka_unit_test_setup_teardown(
			a_long_time_in_which_nothing_may_have_been_done_counts_as_little_as_it_had, begin,
			end),
		cmocka_unit_test_setup_teardown(a_long_time_is_not_for_spans_to_tell, begin, end),
		cmocka_unit_test_setup_teardown(looks_that_did_not_meet_the_vm_tell_that_nothing_is_hidden,
						begin, end),
		cmocka_unit_test_setup_teardown(so_much_time_is_looked_at_as_came_before_to_estimate_it,
						begin, end),
		cmocka_unit_test_setup_teardown(a_short_time_before_the_first_look_makes_no_difference, begin,
						end),
		cmocka_unit_test_setup_teardown(an_interval_in_which_a_whole_cycle_more_fits_hides_one, begin,
						end),
		cmocka_unit_test_setup_teardown(a_short_time_that_hides_a_cycle_counts_as_the_rest, begin,
						end),
		cmocka_unit_test_setup_teardown(a_long_interval_that_has_as_much_as_others_is_whole, begin,
						end),
		cmocka_unit_test_setup_teardown(a_long_interval_without_room_for_a_cycle_is_whole, begin,
						end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
