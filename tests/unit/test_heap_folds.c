/* SPDX-License-Identifier: MIT */
/* Trees of several moments tell a table's keys apart in the same places. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/heap/heap_builder.h"
#include "output/heap_reports/heap_profile.h"
#include "output/heap_views/heap_folds.h"
#include "output/heap_views/heap_growth.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_heap.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
#include "tests/unit/failing_allocation.h"

enum { NODES_MAX = 2000, MOMENTS = 2, FEW = 3, MANY = HEAP_KEYS_MAX + 1, BYTES = 10 };

static char numbered[MANY][8];

/* A heap that grows by one object and the reference to it at a time, and its tree. */
struct heap {
	struct made_up_node nodes[NODES_MAX];
	struct made_up_edge edges[NODES_MAX];
	uint32_t count; /* of both */
	struct heap_paths paths;
	uint32_t *of;
};

static struct heap heaps[MOMENTS];

static int begin(void **state)
{
	(void)state;
	for (size_t i = 0; i < MANY; i++)
		snprintf(numbered[i], sizeof(numbered[i]), "k%zu", i);
	memset(heaps, 0, sizeof(heaps));
	return 0;
}

static int end(void **state)
{
	(void)state;
	for (size_t i = 0; i < MOMENTS; i++) {
		heap_paths_clear(&heaps[i].paths);
		free(heaps[i].of);
	}
	return 0;
}

static uint32_t put(struct heap *heap, struct made_up_edge edge)
{
	assert_true(heap->count < NODES_MAX);
	edge.to = heap->count + 1;
	heap->nodes[heap->count] = (struct made_up_node){ .kind = HEAP_KIND_TABLE, .bytes = BYTES };
	heap->edges[heap->count++] = edge;
	return edge.to;
}

static uint32_t put_root(struct heap *heap, const char *name)
{
	return put(heap, (struct made_up_edge){ .from = HEAP_ROOT, .hold = HEAP_HOLDS_ROOT, .text = name });
}

static uint32_t put_field(struct heap *heap, uint32_t from, const char *name)
{
	return put(heap, (struct made_up_edge){ .from = from, .hold = HEAP_HOLDS_FIELD, .text = name });
}

/* What the last of so many string keys holds. */
static uint32_t put_fields(struct heap *heap, uint32_t from, size_t count)
{
	uint32_t last = HEAP_ROOT;

	for (size_t i = 0; i < count; i++)
		last = put_field(heap, from, numbered[i]);
	return last;
}

static uint32_t put_items(struct heap *heap, uint32_t from, int32_t count)
{
	uint32_t last = HEAP_ROOT;

	for (int32_t i = 1; i <= count; i++)
		last = put(heap,
			   (struct made_up_edge){ .from = from, .hold = HEAP_HOLDS_INDEX, .number = i });
	return last;
}

static void make_tree(struct heap *heap)
{
	struct heap_graph graph = made_up_heap(heap->nodes, heap->count, heap->edges, heap->count);
	struct heap_analysis analysis;

	assert_int_equal(heap_analysis_make(&graph, &analysis), 0);
	assert_int_equal(heap_paths_make(&graph, &analysis, &heap->paths, &heap->of), 0);
	heap_analysis_clear(&analysis);
	heap_graph_free(&graph);
}

static int fold(void)
{
	struct heap_trees trees = { 0 };

	for (size_t i = 0; i < MOMENTS; i++)
		heap_trees_add(&trees, &heaps[i].paths);
	return heap_trees_fold(&trees);
}

static void fold_trees(void)
{
	for (size_t i = 0; i < MOMENTS; i++)
		make_tree(&heaps[i]);
	assert_int_equal(fold(), 0);
}

static void assert_path(const struct heap *heap, uint32_t node, const char *expected)
{
	char text[HEAP_PATH_SIZE];

	assert_string_equal(heap_path_text(&heap->paths, heap->of[node], text), expected);
}

static void assert_moment(const struct heap_growths *growths, const char *name, size_t moment, uint64_t count)
{
	const struct heap_growth *row;

	HASH_FIND_STR(growths->rows, name, row);
	if (!row)
		fail_msg("%s has no row", name);
	else
		assert_true(row->moments[moment].held == count * BYTES &&
			    row->moments[moment].sum.count == count);
}

static void keys_that_are_many_at_one_moment_read_as_one_at_all(void **state)
{
	struct heap_growths growths = { .moment_count = MOMENTS };
	uint32_t few, many;

	(void)state;
	few = put_fields(&heaps[0], put_field(&heaps[0], put_root(&heaps[0], "registry"), "cache"), FEW);
	many = put_fields(&heaps[1], put_field(&heaps[1], put_root(&heaps[1], "registry"), "cache"), MANY);
	fold_trees();
	assert_path(&heaps[0], few, "registry.cache[\"*\"]");
	assert_path(&heaps[1], many, "registry.cache[\"*\"]");
	/* The paths of one moment add up, however little each of them holds. */
	for (size_t i = 0; i < MOMENTS; i++)
		assert_int_equal(heap_growths_add_paths(&growths, &heaps[i].paths, i, 2 * BYTES), 0);
	assert_moment(&growths, "registry.cache[\"*\"]", 0, FEW);
	assert_moment(&growths, "registry.cache[\"*\"]", 1, MANY);
	heap_growths_clear(&growths);
}

/* However little each of them holds. */
static void what_is_below_keys_that_are_folded_adds_up(void **state)
{
	struct heap_growths growths = { .moment_count = MOMENTS };

	(void)state;
	for (size_t i = 0; i < MOMENTS; i++) {
		const uint32_t cache = put_field(&heaps[i], put_root(&heaps[i], "registry"), "cache");

		for (size_t k = 0; k < (i ? MANY : FEW); k++)
			put_field(&heaps[i], put_field(&heaps[i], cache, numbered[k]), "body");
	}
	fold_trees();
	for (size_t i = 0; i < MOMENTS; i++)
		assert_int_equal(heap_growths_add_paths(&growths, &heaps[i].paths, i, 2 * BYTES), 0);
	assert_moment(&growths, "registry.cache[\"*\"].body", 0, FEW);
	assert_moment(&growths, "registry.cache[\"*\"].body", 1, MANY);
	heap_growths_clear(&growths);
}

/* An array of so many rows of so many columns each. */
static void put_rows(struct heap *heap, int32_t rows, int32_t columns)
{
	const uint32_t matrix = put_field(heap, put_root(heap, "registry"), "m");

	for (int32_t i = 1; i <= rows; i++)
		put_items(heap,
			  put(heap,
			      (struct made_up_edge){ .from = matrix, .hold = HEAP_HOLDS_INDEX, .number = i }),
			  columns);
}

/* Of few, [1][1] is at [1]; of many, none is, or all are. */
static void rows_of_rows_that_become_many_have_one_path(void **state)
{
	static const int32_t columns[] = { 2, HEAP_INDEXES_MAX + 1 };

	for (size_t k = 0; k < sizeof(columns) / sizeof(columns[0]); k++) {
		struct heap_growths growths = { .moment_count = MOMENTS };
		struct heap_growth *row;

		begin(state);
		for (size_t i = 0; i < MOMENTS; i++)
			put_rows(&heaps[i], HEAP_INDEXES_MAX + (int32_t)i, columns[k]);
		fold_trees();
		for (size_t i = 0; i < MOMENTS; i++)
			assert_int_equal(heap_growths_add_paths(&growths, &heaps[i].paths, i, 0), 0);
		for (row = growths.rows; row; row = row->hh.next)
			if (strstr(row->name, "m["))
				assert_string_equal(row->name, "registry.m[*]\u2026");
		for (size_t i = 0; i < MOMENTS; i++)
			assert_moment(&growths, "registry.m[*]\u2026", i,
				      (HEAP_INDEXES_MAX + i) * (1 + (uint64_t)columns[k]));
		heap_growths_clear(&growths);
		end(state);
	}
	begin(state);
}

static int count_rows_of_rows(void *context, const struct frame *frames, size_t count,
			      const struct heap_sum *sum)
{
	size_t *objects = context, rows = 0;

	for (size_t i = 0; i < count; i++)
		rows += strchr(frames[i].function->name, '[') != NULL;
	assert_in_range(rows, 0, 1);
	*objects += rows * sum->count;
	return 0;
}

/* A picture has one frame for them, whatever is drawn. */
static void rows_of_rows_have_one_frame(void **state)
{
	(void)state;
	for (size_t i = 0; i < MOMENTS; i++)
		put_rows(&heaps[i], HEAP_INDEXES_MAX + (int32_t)i, 2);
	fold_trees();
	for (size_t i = 0; i < MOMENTS; i++)
		for (int retained = 0; retained < 2; retained++) {
			struct heap_subject subject = { .summary.paths = heaps[i].paths };
			const struct heap_side side = { .subjects = &subject, .count = 1 };
			const struct heap_view view = { .measure = retained ? HEAP_BY_RETAINED
									    : HEAP_BY_OWN };
			struct functions *functions = functions_new();
			size_t objects = 0;

			assert_int_equal(
				heap_profile_each(&side, &view, functions, count_rows_of_rows, &objects), 0);
			assert_int_equal(objects, 3 * (HEAP_INDEXES_MAX + i));
			functions_free(functions);
		}
}

/* A list is one path, however long; what is below a key that is folded may be a list or not. */
static void lists_below_keys_that_are_folded_have_one_path(void **state)
{
	uint32_t last[MOMENTS], first[MOMENTS];

	(void)state;
	for (size_t i = 0; i < MOMENTS; i++) {
		uint32_t cache = put_field(&heaps[i], put_root(&heaps[i], "registry"), "cache");

		last[i] = put_fields(&heaps[i], cache, i ? MANY : FEW);
		last[i] = put_field(&heaps[i], last[i], "next");
		last[i] = put_field(&heaps[i], last[i], "next");
		first[i] = put_field(&heaps[i], put_field(&heaps[i], cache, "other"), "next");
	}
	fold_trees();
	for (size_t i = 0; i < MOMENTS; i++) {
		assert_path(&heaps[i], first[i], "registry.cache[\"*\"].next");
		assert_path(&heaps[i], last[i], "registry.cache[\"*\"].next");
	}
}

/* One table of those with a path has many keys, at both moments. */
static void few_keys_beside_many_of_the_same_path_keep_their_names(void **state)
{
	uint32_t few[MOMENTS], many[MOMENTS];

	(void)state;
	for (size_t i = 0; i < MOMENTS; i++) {
		const uint32_t list = put_field(&heaps[i], put_root(&heaps[i], "registry"), "list");
		uint32_t record = HEAP_ROOT;

		for (int32_t k = 1; k <= HEAP_INDEXES_MAX + 1; k++) {
			record = put(
				&heaps[i],
				(struct made_up_edge){ .from = list, .hold = HEAP_HOLDS_INDEX, .number = k });
			few[i] = put_field(&heaps[i], record, "data");
		}
		record = put(&heaps[i],
			     (struct made_up_edge){ .from = list, .hold = HEAP_HOLDS_INDEX, .number = 100 });
		many[i] = put_fields(&heaps[i], record, MANY);
	}
	fold_trees();
	for (size_t i = 0; i < MOMENTS; i++) {
		assert_path(&heaps[i], few[i], "registry.list[*].data");
		assert_path(&heaps[i], many[i], "registry.list[*][\"*\"]");
	}
}

static void keys_that_are_few_at_all_moments_keep_their_names(void **state)
{
	uint32_t last[MOMENTS];

	(void)state;
	for (size_t i = 0; i < MOMENTS; i++) {
		const uint32_t registry = put_root(&heaps[i], "registry");

		last[i] = put_fields(&heaps[i], put_field(&heaps[i], registry, "cache"), FEW);
		put_fields(&heaps[i], put_field(&heaps[i], registry, "other"), i ? MANY : FEW);
	}
	fold_trees();
	for (size_t i = 0; i < MOMENTS; i++)
		assert_path(&heaps[i], last[i], "registry.cache.k2");
}

static void keys_of_each_sort_are_folded_apart(void **state)
{
	uint32_t field[MOMENTS], item[MOMENTS];

	(void)state;
	for (size_t i = 0; i < MOMENTS; i++) {
		const uint32_t list = put_field(&heaps[i], put_root(&heaps[i], "registry"), "list");

		field[i] = put_fields(&heaps[i], list, FEW);
		item[i] = put_items(&heaps[i], list, i ? FEW : HEAP_INDEXES_MAX + 1);
	}
	fold_trees();
	for (size_t i = 0; i < MOMENTS; i++) {
		assert_path(&heaps[i], field[i], "registry.list.k2");
		assert_path(&heaps[i], item[i], "registry.list[*]");
	}
}

/* At one moment the keys below are many, at the other those above. */
static void what_is_below_keys_that_are_folded_is_folded_alike(void **state)
{
	uint32_t last[MOMENTS], below;

	(void)state;
	for (size_t i = 0; i < MOMENTS; i++) {
		const uint32_t registry = put_root(&heaps[i], "registry");

		below = put_fields(&heaps[i], put_field(&heaps[i], registry, "cache"), i ? MANY : FEW);
		below = put_field(&heaps[i], below, "parts");
		last[i] = put_fields(&heaps[i], below, i ? FEW : MANY);
	}
	fold_trees();
	for (size_t i = 0; i < MOMENTS; i++)
		assert_path(&heaps[i], last[i], "registry.cache[\"*\"].parts[\"*\"]");
}

static void modules_and_globals_keep_their_names(void **state)
{
	uint32_t module, global;

	(void)state;
	for (size_t i = 0; i < MOMENTS; i++) {
		const uint32_t loaded = put_root(&heaps[i], "package.loaded");

		global = put_fields(&heaps[i], put_field(&heaps[i], loaded, "_G"), i ? MANY : FEW);
		module = put_fields(&heaps[i], loaded, i ? MANY : FEW);
		if (i)
			continue;
		make_tree(&heaps[i]);
		assert_path(&heaps[i], module, "package.loaded[\"k2\"]");
		assert_path(&heaps[i], global, "_G.k2");
	}
	make_tree(&heaps[1]);
	assert_int_equal(fold(), 0);
	assert_path(&heaps[1], module, "package.loaded[\"k64\"]");
	assert_path(&heaps[1], global, "_G.k64");
}

static void short_memory_is_told(void **state)
{
	bool failed = true;
	size_t count;

	(void)state;
	for (size_t i = 0; i < MOMENTS; i++) {
		put_fields(&heaps[i], put_root(&heaps[i], "registry"), i ? MANY : FEW);
		make_tree(&heaps[i]);
	}
	for (count = 0; failed; count++) {
		int error;

		allocation_fails_after(count);
		error = fold();
		failed = allocation_failed();
		assert_int_equal(error, failed ? -ENOMEM : 0);
	}
	assert_true(count > 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(keys_that_are_many_at_one_moment_read_as_one_at_all, begin,
						end),
		cmocka_unit_test_setup_teardown(keys_that_are_few_at_all_moments_keep_their_names, begin,
						end),
		cmocka_unit_test_setup_teardown(what_is_below_keys_that_are_folded_adds_up, begin, end),
		cmocka_unit_test_setup_teardown(rows_of_rows_that_become_many_have_one_path, begin, end),
		cmocka_unit_test_setup_teardown(rows_of_rows_have_one_frame, begin, end),
		cmocka_unit_test_setup_teardown(lists_below_keys_that_are_folded_have_one_path, begin, end),
		cmocka_unit_test_setup_teardown(few_keys_beside_many_of_the_same_path_keep_their_names, begin,
						end),
		cmocka_unit_test_setup_teardown(keys_of_each_sort_are_folded_apart, begin, end),
		cmocka_unit_test_setup_teardown(what_is_below_keys_that_are_folded_is_folded_alike, begin,
						end),
		cmocka_unit_test_setup_teardown(modules_and_globals_keep_their_names, begin, end),
		cmocka_unit_test_setup_teardown(short_memory_is_told, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
