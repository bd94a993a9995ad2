/* SPDX-License-Identifier: MIT */
/*
 * A table that gets no memory stays as it was, and ljspy goes on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

static unsigned int allocations_left;

static void *allocate(size_t size)
{
	return allocations_left && allocations_left-- ? malloc(size) : NULL;
}

#define uthash_malloc(size) allocate(size)
#include "memory/hash.h"

enum { ELEMENTS = 1000, ALLOCATIONS_TO_BEGIN = 2 }; /* a table and its buckets */

struct element {
	int key;
	UT_hash_handle hh;
};

static struct element *find(struct element *table, int key)
{
	struct element *found;

	HASH_FIND_INT(table, &key, found);
	return found;
}

/* Add until an element does not get in; how many have. */
static int fill(struct element **table, struct element *elements)
{
	for (int i = 0; i < ELEMENTS; i++) {
		struct element *element = &elements[i];

		element->key = i;
		HASH_ADD_INT(*table, key, element);
		if (!hash_added(&element->hh))
			return i;
	}
	return ELEMENTS;
}

static void table_that_cannot_begin_is_empty(void **state)
{
	(void)state;
	for (unsigned int allocations = 0; allocations < ALLOCATIONS_TO_BEGIN; allocations++) {
		struct element *table = NULL, elements[1];

		allocations_left = allocations;
		elements[0].key = 0;
		HASH_ADD_INT(table, key, (&elements[0]));
		assert_false(hash_added(&elements[0].hh));
		assert_null(table);
	}
}

static void table_that_cannot_grow_keeps_what_it_has(void **state)
{
	static struct element elements[ELEMENTS];
	struct element *table = NULL;
	int count;

	(void)state;
	allocations_left = ALLOCATIONS_TO_BEGIN;
	count = fill(&table, elements);
	assert_in_range(count, 1, ELEMENTS - 1);
	assert_int_equal(HASH_COUNT(table), count);
	for (int i = 0; i < count; i++)
		assert_ptr_equal(find(table, i), &elements[i]);
	assert_null(find(table, count));
	HASH_CLEAR(hh, table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_that_cannot_begin_is_empty),
		cmocka_unit_test(table_that_cannot_grow_keeps_what_it_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
