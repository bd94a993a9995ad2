/* SPDX-License-Identifier: MIT */
/* Texts that are added once, however often and however many they are. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/heap_views/text_pool.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
INSTEAD_OF(reallocarray);
#define FAILING_REALLOCARRAY
#include "tests/unit/failing_allocation.h"

enum { TEXTS = 20000 };

static uint32_t add(struct text_pool *pool, const char *text)
{
	uint32_t number = UINT32_MAX;

	assert_int_equal(text_pool_add(pool, text, &number), 0);
	return number;
}

static void each_text_is_there_once_after_the_empty_one(void **state)
{
	static const char all[] = "\0one\0three\0on";
	struct text_pool pool;
	uint32_t length = 0;
	char *bytes;

	(void)state;
	assert_int_equal(text_pool_init(&pool), 0);
	assert_int_equal(add(&pool, ""), 0);
	assert_int_equal(add(&pool, "one"), 1);
	assert_int_equal(add(&pool, "three"), 5);
	assert_int_equal(add(&pool, "one"), 1);
	assert_int_equal(add(&pool, "on"), 11); /* a part of another is a text of its own */
	assert_int_equal(add(&pool, ""), 0);
	assert_int_equal(pool.used, 3);
	bytes = text_pool_take(&pool, &length);
	assert_int_equal(length, sizeof(all));
	assert_memory_equal(bytes, all, sizeof(all));
	free(bytes);
	assert_null(pool.bytes);
	assert_null(pool.slots);
	assert_int_equal(pool.length, 0);
	assert_int_equal(pool.slot_count, 0);
	text_pool_clear(&pool);
}

static void many_texts_keep_their_numbers_while_the_pool_grows(void **state)
{
	uint32_t *numbers = calloc(TEXTS, sizeof(*numbers));
	struct text_pool pool;
	char text[32];

	(void)state;
	assert_non_null(numbers);
	assert_int_equal(text_pool_init(&pool), 0);
	for (int round = 0; round < 2; round++)
		for (unsigned int i = 0; i < TEXTS; i++) {
			uint32_t number;

			snprintf(text, sizeof(text), "%u", i);
			number = add(&pool, text);
			assert_true(round == 0 || number == numbers[i]);
			numbers[i] = number;
			assert_string_equal(pool.bytes + number, text);
			/* A table that fills up makes a search longer and longer, and at last endless. */
			assert_true(pool.used <= pool.slot_count / 2);
			assert_int_equal(pool.slot_count & (pool.slot_count - 1), 0);
		}
	assert_int_equal(pool.used, TEXTS);
	assert_true(pool.slot_count <= 4 * TEXTS);
	text_pool_clear(&pool);
	free(numbers);
}

/* As names of a program, which differ in one character at either end or in the order of two. */
static void similar_texts_are_spread_over_the_table(void **state)
{
	struct text_pool pool;
	char text[64];
	size_t run = 0, longest = 0;

	(void)state;
	assert_int_equal(text_pool_init(&pool), 0);
	for (unsigned int i = 0; i < 400; i++) {
		snprintf(text, sizeof(text), i % 2 ? "%c%c local of function <app.lua:12>" : "local %c%c",
			 'a' + i / 20, 'a' + i % 20);
		add(&pool, text);
	}
	for (size_t i = 0; i < 2 * pool.slot_count; i++) {
		run = pool.slots[i % pool.slot_count] ? run + 1 : 0;
		if (run > longest)
			longest = run;
	}
	/* 400 of 1,024 by chance: runs of some ten. */
	assert_in_range(longest, 2, 60);
	text_pool_clear(&pool);
}

static void a_pool_has_less_than_4_gib(void **state)
{
	struct text_pool pool;
	uint32_t number = 77;
	size_t length;

	(void)state;
	assert_int_equal(text_pool_init(&pool), 0);
	length = pool.length;
	pool.length = UINT32_MAX - 3; /* as if there were so many already */
	assert_int_equal(text_pool_add(&pool, "abc", &number), -EOVERFLOW);
	assert_int_equal(number, 77);
	assert_int_equal(pool.length, UINT32_MAX - 3);
	assert_int_equal(pool.used, 0);
	pool.length = length;
	assert_int_equal(add(&pool, "abc"), 1);
	text_pool_clear(&pool);
}

static void short_memory_is_told_and_leaves_the_pool_as_it_was(void **state)
{
	size_t failures = 0;
	char text[128];

	(void)state;
	for (bool failed = true; failed; failures++) {
		struct text_pool pool;
		unsigned int count = 0;
		uint32_t number;
		int error;

		allocation_fails_after(failures);
		error = text_pool_init(&pool);
		if (error)
			assert_null(pool.bytes);
		while (!error && count < 1500) {
			snprintf(text, sizeof(text), "%0100u", count);
			error = text_pool_add(&pool, text, &number);
			count += !error;
		}
		failed = allocation_failed();
		assert_int_equal(error, failed ? -ENOMEM : 0);
		if (pool.bytes) {
			assert_int_equal(pool.used, count);
			assert_int_equal(pool.length, 1 + 101 * (size_t)count);
			assert_int_equal(text_pool_add(&pool, text, &number), 0);
			assert_string_equal(pool.bytes + number, text);
		}
		text_pool_clear(&pool);
	}
	assert_in_range(failures, 6, 100); /* both parts at first, and each time that one grows */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_text_is_there_once_after_the_empty_one),
		cmocka_unit_test(many_texts_keep_their_numbers_while_the_pool_grows),
		cmocka_unit_test(similar_texts_are_spread_over_the_table),
		cmocka_unit_test(a_pool_has_less_than_4_gib),
		cmocka_unit_test(short_memory_is_told_and_leaves_the_pool_as_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
