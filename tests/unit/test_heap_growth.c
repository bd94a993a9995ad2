/* SPDX-License-Identifier: MIT */
/* What grew between looks at a heap, and which steps of a path a table of it leaves out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "output/heap_views/heap_growth.h"
#include "output/heap_views/heap_rows.h"

enum { KB = 1000 };

/* A tree of three nodes below the root, each below the one before it. */
struct tree {
	struct heap_path nodes[4];
	char texts[16];
};

static struct tree tree_of(bool many)
{
	return (struct tree){
		.nodes = { { .begins = true },
			   { .parent = HEAP_PATHS_ROOT, .depth = 1, .step = 1, .begins = true, .many = many },
			   { .parent = 1, .depth = 2, .step = 3 },
			   { .parent = 2, .depth = 3, .step = 5 } },
		.texts = "\0a\0b\0c",
	};
}

static struct heap_paths paths_of(struct tree *tree)
{
	return (struct heap_paths){
		.nodes = tree->nodes, .count = 4, .texts = tree->texts, .texts_bytes = sizeof(tree->texts)
	};
}

static struct heap_growth *row_of(const struct heap_growths *growths, const char *name)
{
	struct heap_growth *row;

	HASH_FIND_STR(growths->rows, name, row);
	assert_non_null(row);
	return row;
}

static void add(struct heap_growths *growths, const char *name, uint64_t before, uint64_t after)
{
	const struct heap_moment moments[] = { { .held = before }, { .held = after } };

	for (size_t i = 0; i < 2; i++)
		assert_int_equal(heap_growths_add(growths, name, i, &moments[i]), 0);
}

/* The rows of that tree, with what they grew by; which of them a table leaves out, as letters. */
static const char *left_out(bool many, int64_t a, int64_t b, int64_t c)
{
	static char letters[4];
	struct heap_growths growths = { .moment_count = 2 };
	struct tree tree = tree_of(many);
	const struct heap_paths paths = paths_of(&tree);
	size_t count = 0;

	add(&growths, "a", 500 * KB, (uint64_t)(500 * KB + a));
	add(&growths, "ab", 500 * KB, (uint64_t)(500 * KB + b));
	add(&growths, "abc", 500 * KB, (uint64_t)(500 * KB + c));
	heap_growths_find_chains(&growths, &paths);
	if (row_of(&growths, "a")->in_chain)
		letters[count++] = 'a';
	if (row_of(&growths, "ab")->in_chain)
		letters[count++] = 'b';
	if (row_of(&growths, "abc")->in_chain)
		letters[count++] = 'c';
	letters[count] = '\0';
	heap_growths_clear(&growths);
	return letters;
}

static void a_step_is_left_out_if_the_next_one_has_nearly_all_of_its_growth(void **state)
{
	const int64_t nearly = 100 * KB / 100 * HEAP_CHAIN_PERCENT;

	(void)state;
	assert_string_equal(left_out(false, 100 * KB, nearly, 10 * KB), "a");
	assert_string_equal(left_out(false, 100 * KB, nearly - 1, 10 * KB), "");
	assert_string_equal(left_out(false, 100 * KB, 100 * KB, 100 * KB), "ab");
}

/* Below many things, it is the steps after them: what is told is that there are many. */
static void what_is_below_many_things_is_left_out_instead(void **state)
{
	(void)state;
	assert_string_equal(left_out(true, 100 * KB, 100 * KB, 10 * KB), "b");
	assert_string_equal(left_out(true, 100 * KB, 100 * KB, 100 * KB), "bc");
	/* What has a part only goes by the usual rule. */
	assert_string_equal(left_out(true, 100 * KB, 10 * KB, 10 * KB), "b");
}

static void what_did_not_grow_is_in_no_chain(void **state)
{
	(void)state;
	assert_string_equal(left_out(false, 0, 0, 0), "");
	assert_string_equal(left_out(false, 0, 100 * KB, 0), "");
	assert_string_equal(left_out(false, -100 * KB, -100 * KB, -100 * KB), "");
	assert_string_equal(left_out(false, -100 * KB, 100 * KB, 0), "");
	assert_string_equal(left_out(false, 100 * KB, -100 * KB, 0), "");
}

/* As those of two paths that are cut. */
static void a_path_that_reads_like_its_holder_is_no_step_of_its_own(void **state)
{
	struct heap_growths growths = { .moment_count = 2 };
	struct tree tree = tree_of(false);
	const struct heap_paths paths = paths_of(&tree);

	(void)state;
	tree.nodes[2].step = 0;
	add(&growths, "a", 0, 100 * KB);
	heap_growths_find_chains(&growths, &paths);
	assert_false(row_of(&growths, "a")->in_chain);
	heap_growths_clear(&growths);
}

/* a holds b, and that holds one more of a: one of the two has to be shown. */
static void of_paths_that_hold_each_other_by_turns_one_is_left_out(void **state)
{
	struct heap_growths growths = { .moment_count = 2 };
	struct tree tree = tree_of(false);
	const struct heap_paths paths = paths_of(&tree);

	(void)state;
	tree.nodes[2].begins = tree.nodes[3].begins = true;
	tree.nodes[3].step = tree.nodes[1].step;
	tree.nodes[3].within = 90 * KB;
	add(&growths, "a", 0, 100 * KB);
	add(&growths, "b", 0, 95 * KB);
	heap_growths_find_chains(&growths, &paths);
	assert_true(row_of(&growths, "a")->in_chain);
	assert_false(row_of(&growths, "b")->in_chain);
	heap_growths_clear(&growths);
}

static void growth_is_steady_if_there_is_more_at_each_moment(void **state)
{
	static const struct {
		uint64_t held[3];
		bool steady;
	} known[] = {
		{ { 1, 2, 3 }, true },  { { 1, 1, 3 }, false }, { { 1, 3, 3 }, false },
		{ { 1, 4, 3 }, false }, { { 2, 1, 3 }, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct heap_growths growths = { .moment_count = 3 };

		for (size_t moment = 0; moment < 3; moment++)
			assert_int_equal(heap_growths_add(&growths, "a", moment,
							  &(struct heap_moment){
								  .held = known[i].held[moment],
								  .sum = { .count = 7 * (moment + 1) } }),
					 0);
		assert_int_equal(heap_growth_is_steady(&growths, growths.rows), known[i].steady);
		assert_int_equal(heap_growth_bytes(&growths, growths.rows),
				 (int64_t)(known[i].held[2] - known[i].held[0]));
		assert_int_equal(heap_growth_count(&growths, growths.rows), 14);
		heap_growths_clear(&growths);
	}
}

static void the_most_growth_comes_first_then_the_name(void **state)
{
	static const char *const wanted[] = { "b", "a", "d", "c" };
	struct heap_growths growths = { .moment_count = 2 };
	const struct heap_growth *row;
	size_t count = 0;

	(void)state;
	add(&growths, "c", 9 * KB, 1 * KB);
	add(&growths, "d", 100 * KB, 105 * KB);
	add(&growths, "b", 0, 6 * KB);
	add(&growths, "a", 1 * KB, 6 * KB);
	heap_growths_sort(&growths);
	for (row = growths.rows; row; row = row->hh.next)
		assert_string_equal(row->name, wanted[count++]);
	assert_int_equal(count, 4);
	heap_growths_clear(&growths);
}

static void of_paths_those_that_hold_enough_have_a_row(void **state)
{
	struct heap_growths growths = { .moment_count = 1 };
	struct tree tree = tree_of(false);
	const struct heap_paths paths = paths_of(&tree);

	(void)state;
	tree.nodes[0].retained = 1000 * KB; /* the root's is all */
	tree.nodes[1].retained = 10 * KB;
	tree.nodes[1].own = (struct heap_sum){ 3 * KB, 5 };
	tree.nodes[2].retained = 10 * KB - 1;
	assert_int_equal(heap_growths_add_paths(&growths, &paths, 0, 10 * KB), 0);
	assert_int_equal(HASH_COUNT(growths.rows), 1);
	assert_int_equal(row_of(&growths, "a")->moments[0].held, 10 * KB);
	assert_int_equal(row_of(&growths, "a")->moments[0].sum.bytes, 3 * KB);
	assert_int_equal(row_of(&growths, "a")->moments[0].sum.count, 5);
	assert_false(row_of(&growths, "a")->unheld);
	/* What holds nothing has none, though no least is asked for. */
	tree.nodes[1].unheld = true;
	assert_int_equal(heap_growths_add_paths(&growths, &paths, 0, 0), 0);
	assert_int_equal(HASH_COUNT(growths.rows), 2);
	assert_int_equal(row_of(&growths, "a")->moments[0].held, 20 * KB);
	assert_int_equal(row_of(&growths, "ab")->moments[0].held, 10 * KB - 1);
	assert_true(row_of(&growths, "a")->unheld);
	assert_false(row_of(&growths, "ab")->unheld);
	/* What a node above of the same text holds, too, counts there. */
	tree.nodes[1].within = 9 * KB;
	assert_int_equal(heap_growths_add_paths(&growths, &paths, 0, 0), 0);
	assert_int_equal(row_of(&growths, "a")->moments[0].held, 21 * KB);
	heap_growths_clear(&growths);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_is_left_out_if_the_next_one_has_nearly_all_of_its_growth),
		cmocka_unit_test(what_is_below_many_things_is_left_out_instead),
		cmocka_unit_test(what_did_not_grow_is_in_no_chain),
		cmocka_unit_test(a_path_that_reads_like_its_holder_is_no_step_of_its_own),
		cmocka_unit_test(of_paths_that_hold_each_other_by_turns_one_is_left_out),
		cmocka_unit_test(growth_is_steady_if_there_is_more_at_each_moment),
		cmocka_unit_test(the_most_growth_comes_first_then_the_name),
		cmocka_unit_test(of_paths_those_that_hold_enough_have_a_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
