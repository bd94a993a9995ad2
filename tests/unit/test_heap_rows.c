/* SPDX-License-Identifier: MIT */
/* Which paths of a heap a table shows: those that hold enough, and of a chain only one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "output/heap_views/heap_rows.h"

enum { KB = 1000, NODES = 5 };

/* A tree: a holds b, and that holds c and d. */
struct tree {
	struct heap_path nodes[NODES];
	char texts[16];
};

static struct tree tree_of(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	return (struct tree){
		.nodes = { { .begins = true, .first_child = 1, .retained = 1000 * KB },
			   { .depth = 1, .step = 1, .begins = true, .first_child = 2, .retained = a },
			   { .parent = 1, .depth = 2, .step = 3, .first_child = 3, .retained = b },
			   { .parent = 2, .depth = 3, .step = 5, .next_sibling = 4, .retained = c },
			   { .parent = 2, .depth = 3, .step = 7, .retained = d } },
		.texts = "\0a\0b\0c\0d",
	};
}

/* The last letters of the paths that a table shows, in its order. */
static const char *shown(struct tree *tree, uint64_t min_bytes, bool chains)
{
	const struct heap_paths paths = {
		.nodes = tree->nodes, .count = NODES, .texts = tree->texts, .texts_bytes = sizeof(tree->texts)
	};
	static char letters[NODES];
	struct heap_group *rows;
	size_t count = 0;

	assert_int_equal(heap_rows_make(&paths, min_bytes, chains, &rows), 0);
	for (const struct heap_group *row = rows; row; row = row->hh.next)
		letters[count++] = row->name[strlen(row->name) - 1];
	letters[count] = '\0';
	heap_groups_clear(&rows);
	return letters;
}

static void of_a_chain_the_last_path_is_shown(void **state)
{
	struct tree tree = tree_of(100 * KB, 90 * KB, 81 * KB, 10 * KB);

	(void)state;
	assert_string_equal(shown(&tree, 0, false), "cd");
	assert_string_equal(shown(&tree, 0, true), "abcd");
	/* Not so if the next one has less. */
	tree.nodes[3].retained = 80 * KB;
	assert_string_equal(shown(&tree, 0, false), "bcd");
	tree.nodes[2].retained = 89 * KB;
	tree.nodes[3].retained = 30 * KB;
	assert_string_equal(shown(&tree, 0, false), "abcd");
	/* Or another one has nearly all. */
	tree.nodes[4].retained = 89 * KB;
	assert_string_equal(shown(&tree, 0, false), "adc");
}

static void of_a_chain_the_first_path_of_many_things_is_shown(void **state)
{
	struct tree tree = tree_of(100 * KB, 95 * KB, 94 * KB, 1 * KB);

	(void)state;
	tree.nodes[2].many = true;
	assert_string_equal(shown(&tree, 0, false), "bd");
	tree.nodes[1].many = true;
	assert_string_equal(shown(&tree, 0, false), "ad");
	tree.nodes[2].many = false;
	assert_string_equal(shown(&tree, 0, false), "ad");
	/* What has less than nearly all is shown beside it. */
	tree.nodes[2].retained = tree.nodes[3].retained = 50 * KB;
	assert_string_equal(shown(&tree, 0, false), "acd");
}

static void what_holds_too_little_or_nothing_is_not_shown(void **state)
{
	struct tree tree = tree_of(100 * KB, 50 * KB, 20 * KB, 0);

	(void)state;
	assert_string_equal(shown(&tree, 0, true), "abc");
	assert_string_equal(shown(&tree, 50 * KB, true), "ab");
	assert_string_equal(shown(&tree, 50 * KB + 1, true), "a");
}

/* c has the text of a, and holds part of what that holds. Of the row's nodes, a is in a chain. */
static void a_row_has_all_nodes_of_its_text_and_nothing_twice(void **state)
{
	struct tree tree = tree_of(100 * KB, 95 * KB, 80 * KB, 1 * KB);
	const struct heap_paths paths = {
		.nodes = tree.nodes, .count = NODES, .texts = tree.texts, .texts_bytes = sizeof(tree.texts)
	};

	(void)state;
	tree.nodes[3].step = 1;
	tree.nodes[2].begins = tree.nodes[3].begins = true;
	tree.nodes[3].within = 75 * KB;
	tree.nodes[1].own = (struct heap_sum){ 5 * KB, 1 };
	tree.nodes[3].own = (struct heap_sum){ 7 * KB, 2 };
	for (int chains = 0; chains < 2; chains++) {
		struct heap_group *rows;

		assert_int_equal(heap_rows_make(&paths, 0, chains, &rows), 0);
		assert_string_equal(rows->name, "a");
		assert_int_equal(rows->retained, 105 * KB);
		assert_int_equal(rows->sum.bytes, 12 * KB);
		assert_int_equal(rows->sum.count, 3);
		heap_groups_clear(&rows);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_a_chain_the_last_path_is_shown),
		cmocka_unit_test(of_a_chain_the_first_path_of_many_things_is_shown),
		cmocka_unit_test(what_holds_too_little_or_nothing_is_not_shown),
		cmocka_unit_test(a_row_has_all_nodes_of_its_text_and_nothing_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
