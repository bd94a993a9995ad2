/* SPDX-License-Identifier: MIT */
/* What there is to say of one VM's heap: groups, single objects, and what is not used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/heap/heap_builder.h"
#include "output/heap_views/heap_summary.h"
#include "tests/unit/made_up_heap.h"

static struct heap_summary summary_of(const struct made_up_node *nodes, size_t node_count,
				      const struct made_up_edge *edges, size_t edge_count)
{
	struct heap_graph graph = made_up_heap(nodes, node_count, edges, edge_count);
	struct heap_account account = made_up_account(&graph);
	struct heap_summary summary;

	assert_int_equal(heap_summary_make(&graph, &account, &summary), 0);
	heap_graph_free(&graph);
	return summary;
}

/* Two groups, of which the first has more. */
static void assert_in_order(const struct heap_group *groups, const char *first, const char *second)
{
	const char *const names[] = { first, second };
	uint64_t before = UINT64_MAX;
	size_t count = 0;

	for (const struct heap_group *group = groups; group; group = group->hh.next) {
		assert_in_range(count, 0, 1);
		assert_non_null(strstr(group->name, names[count++]));
		assert_true(group->sum.bytes < before);
		before = group->sum.bytes;
	}
	assert_int_equal(count, 2);
}

/* What is found first is the smaller one of each kind. */
static void groups_come_the_largest_first(void **state)
{
	static const struct made_up_node kinds[] = {
		{ .kind = HEAP_KIND_THREAD },
		{ .kind = HEAP_KIND_FUNCTION },
		{ .kind = HEAP_KIND_CDATA },
		{ .kind = HEAP_KIND_VM },
		{ .kind = HEAP_KIND_TABLE, .slots = 100, .used = 10 },
		{ .kind = HEAP_KIND_USERDATA, .slots = 1000, .used = 10 },
	};
	enum { KINDS = sizeof(kinds) / sizeof(kinds[0]), OBJECTS = 2 * KINDS };
	struct made_up_node nodes[OBJECTS];
	struct made_up_edge edges[OBJECTS];
	struct heap_summary summary;

	(void)state;
	for (uint32_t i = 0; i < OBJECTS; i++) {
		const bool is_large = i >= KINDS;
		const char *name = is_large ? "large" : "small";

		nodes[i] = kinds[i % KINDS];
		nodes[i].bytes = is_large ? 4000 : 2000;
		nodes[i].slots *= is_large ? 2 : 1;
		nodes[i].text = nodes[i].module = name;
		edges[i] = (struct made_up_edge){ .to = 1 + i, .hold = HEAP_HOLDS_ROOT, .text = name };
	}
	summary = summary_of(nodes, OBJECTS, edges, OBJECTS);
	assert_in_order(summary.modules, "large", "small");
	assert_in_order(summary.coroutines, "large", "small");
	assert_in_order(summary.closures, "large", "small");
	assert_in_order(summary.cdata, "large", "small");
	assert_in_order(summary.own, "large", "small");
	assert_in_order(summary.waste.tables, "large", "small");
	assert_in_order(summary.waste.room, "large", "small");
	heap_summary_clear(&summary);
}

/* The smaller coroutine keeps more alive. */
static void coroutines_come_by_what_they_retain(void **state)
{
	enum { LARGE = 1, SMALL, HELD };
	static const struct made_up_node nodes[] = {
		{ .kind = HEAP_KIND_THREAD, .bytes = 2000, .text = "f a.lua:1", .place = "large" },
		{ .kind = HEAP_KIND_THREAD, .bytes = 1000, .text = "f a.lua:1", .place = "small" },
		{ .kind = HEAP_KIND_STRING, .bytes = 5000 },
	};
	static const struct made_up_edge edges[] = {
		{ .to = LARGE, .hold = HEAP_HOLDS_ROOT, .text = "large" },
		{ .to = SMALL, .hold = HEAP_HOLDS_ROOT, .text = "small" },
		{ .from = SMALL, .to = HELD, .hold = HEAP_HOLDS_SLOT },
	};
	struct heap_summary summary = summary_of(nodes, 3, edges, 3);

	(void)state;
	assert_string_equal(summary.coroutines->name, "small");
	assert_int_equal(summary.coroutines->retained, 6000);
	heap_summary_clear(&summary);
}

/*
 * A pipeline of coroutines, each of which holds the next one, that stand at two places by turns, or at as
 * many places as it has.
 */
static void coroutines_within_others_of_their_place_count_once(void **state)
{
	enum { PIPELINE = 100000, NAME = 16 };
	struct made_up_node *nodes = calloc(PIPELINE, sizeof(*nodes));
	struct made_up_edge *edges = calloc(PIPELINE, sizeof(*edges));
	char(*names)[NAME] = calloc(PIPELINE, sizeof(*names));

	(void)state;
	assert_true(nodes && edges && names);
	for (uint32_t places = 2; places <= PIPELINE; places *= PIPELINE / 2) {
		const struct heap_group *group;
		struct heap_summary summary;

		for (uint32_t i = 0; i < PIPELINE; i++) {
			snprintf(names[i], NAME, "at %u", i % places);
			nodes[i] = (struct made_up_node){ .kind = HEAP_KIND_THREAD,
							  .bytes = 100,
							  .text = names[i] };
			edges[i] = (struct made_up_edge){ .from = i,
							  .to = i + 1,
							  .hold = i ? HEAP_HOLDS_SLOT : HEAP_HOLDS_ROOT,
							  .text = "pipeline" };
		}
		summary = summary_of(nodes, PIPELINE, edges, PIPELINE);
		group = summary.coroutines;
		assert_string_equal(group->name, "at 0");
		assert_int_equal(group->retained, PIPELINE * 100);
		group = group->hh.next;
		assert_string_equal(group->name, "at 1");
		assert_int_equal(group->retained, (PIPELINE - 1) * 100);
		heap_summary_clear(&summary);
	}
	free(nodes);
	free(edges);
	free(names);
}

/* Two coroutines beside each other, below a third one of another place; one of them holds a fourth. */
static void coroutines_beside_each_other_count_each(void **state)
{
	static const struct made_up_node nodes[] = {
		{ .kind = HEAP_KIND_THREAD, .bytes = 1, .text = "outer" },
		{ .kind = HEAP_KIND_THREAD, .bytes = 10, .text = "inner" },
		{ .kind = HEAP_KIND_THREAD, .bytes = 100, .text = "inner" },
		{ .kind = HEAP_KIND_THREAD, .bytes = 1000, .text = "outer" },
		{ .kind = HEAP_KIND_THREAD, .bytes = 10000, .text = "inner" }, /* nothing holds it */
	};
	static const struct made_up_edge edges[] = {
		{ .to = 1, .hold = HEAP_HOLDS_ROOT, .text = "outer" },
		{ .from = 1, .to = 2, .hold = HEAP_HOLDS_SLOT },
		{ .from = 1, .to = 3, .hold = HEAP_HOLDS_SLOT },
		{ .from = 3, .to = 4, .hold = HEAP_HOLDS_SLOT },
	};
	struct heap_summary summary = summary_of(nodes, 5, edges, 4);
	const struct heap_group *group = summary.coroutines;

	(void)state;
	assert_string_equal(group->name, "inner");
	assert_int_equal(group->retained, 11110);
	group = group->hh.next;
	assert_string_equal(group->name, "outer");
	assert_int_equal(group->retained, 1111);
	heap_summary_clear(&summary);
}

/* An object's kind, its bytes, and how much of it is used. */
static void what_is_not_used_is_waste_from_some_size_on(void **state)
{
	static const struct {
		struct made_up_node node;
		uint64_t empty_tables, empty_buffers, long_strings; /* bytes */
	} known[] = {
		{ { .kind = HEAP_KIND_TABLE, .bytes = 1600, .slots = 16, .used = 4 }, 1200, 0, 0 },
		{ { .kind = HEAP_KIND_TABLE, .bytes = 1600, .slots = 16, .used = 5 }, 0, 0, 0 },
		{ { .kind = HEAP_KIND_TABLE, .bytes = 1500, .slots = 15, .used = 0 }, 0, 0, 0 },
		{ { .kind = HEAP_KIND_USERDATA, .bytes = 300, .slots = 256, .used = 64 }, 0, 192, 0 },
		{ { .kind = HEAP_KIND_USERDATA, .bytes = 300, .slots = 256, .used = 65 }, 0, 0, 0 },
		{ { .kind = HEAP_KIND_USERDATA, .bytes = 300, .slots = 255, .used = 0 }, 0, 0, 0 },
		{ { .kind = HEAP_KIND_STRING, .bytes = 4096 }, 0, 0, 4096 },
		{ { .kind = HEAP_KIND_STRING, .bytes = 4095 }, 0, 0, 0 },
		{ { .kind = HEAP_KIND_FUNCTION, .bytes = 5000, .slots = 5000 }, 0, 0, 0 },
	};
	static const struct made_up_edge edge = { .to = 1, .hold = HEAP_HOLDS_ROOT, .text = "registry" };

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct heap_summary summary = summary_of(&known[i].node, 1, &edge, 1);
		const struct heap_waste *waste = &summary.waste;

		assert_int_equal(waste->sparse.bytes, known[i].empty_tables);
		assert_int_equal(waste->sparse.count, known[i].empty_tables > 0);
		assert_int_equal(waste->tables ? waste->tables->sum.bytes : 0, known[i].empty_tables);
		assert_int_equal(waste->buffers.bytes, known[i].empty_buffers);
		assert_int_equal(waste->buffers.count, known[i].empty_buffers > 0);
		assert_int_equal(waste->room ? waste->room->sum.bytes : 0, known[i].empty_buffers);
		assert_int_equal(waste->long_strings.bytes, known[i].long_strings);
		assert_int_equal(waste->long_strings.count, known[i].long_strings > 0);
		heap_summary_clear(&summary);
	}
}

/* Objects with names of their own have paths of their own, and those that are alike one. */
static void the_largest_object_of_each_path_is_kept(void **state)
{
	enum { PATHS = HEAP_LARGEST_MAX + 5, OBJECTS = 2 * PATHS };
	struct made_up_node nodes[OBJECTS];
	struct made_up_edge edges[OBJECTS];
	char names[PATHS][16];
	struct heap_summary summary;

	(void)state;
	for (uint32_t i = 0; i < OBJECTS; i++) {
		const uint32_t path = i % PATHS;

		snprintf(names[path], sizeof(names[path]), "of path %u", path);
		/*
		 * Neither in ascending order nor in descending order; of each path, the first one is larger.
		 */
		nodes[i] = (struct made_up_node){ .kind = HEAP_KIND_STRING,
						  .bytes = 1000 + 100 * (path * 7 % PATHS) - (i >= PATHS) };
		edges[i] = (struct made_up_edge){ .to = 1 + i, .hold = HEAP_HOLDS_ROOT, .text = names[path] };
	}
	summary = summary_of(nodes, OBJECTS, edges, OBJECTS);
	assert_int_equal(summary.kinds[HEAP_KIND_STRING].sum.count, OBJECTS);
	assert_int_equal(summary.kinds[HEAP_KIND_STRING].largest, 1000 + 100 * (PATHS - 1));
	assert_int_equal(summary.largest_count, HEAP_LARGEST_MAX);
	for (uint32_t i = 0; i < HEAP_LARGEST_MAX; i++)
		assert_int_equal(summary.largest[i].bytes, 1000 + 100 * (PATHS - 1 - i));
	heap_summary_clear(&summary);
}

/* A VM's own memory is no object of the program, and what takes no bytes is not worth a line. */
static void memory_of_the_vm_and_nothing_are_no_large_objects(void **state)
{
	static const struct made_up_node nodes[] = {
		{ .kind = HEAP_KIND_VM, .bytes = 4000, .text = "string table" },
		{ .kind = HEAP_KIND_STRING, .bytes = 0 },
		{ .kind = HEAP_KIND_USERDATA, .bytes = 40, .flags = HEAP_FINALIZER },
	};
	static const struct made_up_edge edges[] = {
		{ .to = 1, .hold = HEAP_HOLDS_ROOT, .text = "vm" },
		{ .to = 2, .hold = HEAP_HOLDS_ROOT, .text = "empty" },
		{ .to = 3, .hold = HEAP_HOLDS_ROOT, .text = "socket" },
	};
	struct heap_summary summary = summary_of(nodes, 3, edges, 3);

	(void)state;
	assert_int_equal(summary.all.bytes, 4040);
	assert_int_equal(summary.largest_count, 1);
	assert_int_equal(summary.largest[0].bytes, 40);
	assert_int_equal(summary.waste.finalizers, 1);
	heap_summary_clear(&summary);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_come_the_largest_first),
		cmocka_unit_test(coroutines_come_by_what_they_retain),
		cmocka_unit_test(coroutines_within_others_of_their_place_count_once),
		cmocka_unit_test(coroutines_beside_each_other_count_each),
		cmocka_unit_test(what_is_not_used_is_waste_from_some_size_on),
		cmocka_unit_test(memory_of_the_vm_and_nothing_are_no_large_objects),
		cmocka_unit_test(the_largest_object_of_each_path_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
