/* SPDX-License-Identifier: MIT */
/* The paths of a heap that has more of them than a tree holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "output/heap/heap_builder.h"
#include "output/heap_views/heap_paths.h"
#include "tests/unit/made_up_heap.h"

/* The root, and the registry that holds the functions. */
enum { REGISTRY = 1, FIRST_FUNCTION = 2, NODES_BESIDE = 2, NAME_SIZE = 20 };

/* A heap whose registry holds as many functions, no two alike, and with two more that nothing holds. */
struct heap {
	struct heap_graph graph;
	struct heap_analysis analysis;
	struct heap_paths paths;
	uint32_t *of, unheld;
};

static struct heap heap_of(uint32_t functions)
{
	struct made_up_node *nodes = calloc(functions + 3, sizeof(*nodes));
	struct made_up_edge *edges = calloc(functions + 1, sizeof(*edges));
	char(*names)[NAME_SIZE] = calloc(functions, sizeof(*names));
	struct heap heap = { .unheld = FIRST_FUNCTION + functions };

	assert_non_null(nodes);
	assert_non_null(edges);
	assert_non_null(names);
	nodes[0] = (struct made_up_node){ .kind = HEAP_KIND_TABLE, .bytes = 1 };
	edges[0] = (struct made_up_edge){
		.from = HEAP_ROOT, .to = REGISTRY, .hold = HEAP_HOLDS_ROOT, .text = "registry"
	};
	for (uint32_t i = 0; i < functions; i++) {
		snprintf(names[i], NAME_SIZE, "f a.lua:%u", (unsigned)i);
		nodes[1 + i] = (struct made_up_node){ .kind = HEAP_KIND_FUNCTION,
						      .bytes = 1,
						      .text = names[i] };
		edges[1 + i] = (struct made_up_edge){ .from = REGISTRY,
						      .to = FIRST_FUNCTION + i,
						      .hold = HEAP_HOLDS_INDEX,
						      .number = (int32_t)i };
	}
	nodes[1 + functions] = (struct made_up_node){ .kind = HEAP_KIND_FUNCTION,
						      .bytes = 1,
						      .text = "g b.lua:1" };
	nodes[2 + functions] = (struct made_up_node){ .kind = HEAP_KIND_FUNCTION,
						      .bytes = 1,
						      .text = "h b.lua:2" };
	heap.graph = made_up_heap(nodes, functions + 3, edges, functions + 1);
	free(nodes);
	free(edges);
	free(names);
	assert_int_equal(heap_analysis_make(&heap.graph, &heap.analysis), 0);
	assert_int_equal(heap_paths_make(&heap.graph, &heap.analysis, &heap.paths, &heap.of), 0);
	return heap;
}

static void clear(struct heap *heap)
{
	heap_paths_clear(&heap->paths);
	free(heap->of);
	heap_analysis_clear(&heap->analysis);
	heap_graph_free(&heap->graph);
}

static void assert_path(const struct heap *heap, uint32_t node, const char *expected)
{
	char text[HEAP_PATH_SIZE];

	assert_string_equal(heap_path_text(&heap->paths, heap->of[node], text), expected);
}

static void what_has_no_path_in_a_full_tree_is_at_its_holder(void **state)
{
	const uint32_t functions = HEAP_PATHS_MAX - NODES_BESIDE + 1;
	struct heap heap = heap_of(functions);
	char last[64];

	(void)state;
	snprintf(last, sizeof(last), "registry\u2026[*]: function f a.lua:%u", (unsigned)functions - 2);
	/* The registry says that it stands for more. */
	assert_path(&heap, heap.unheld - 2, last);
	assert_int_equal(heap.of[heap.unheld - 1], heap.of[REGISTRY]);
	assert_true(heap.paths.nodes[heap.of[REGISTRY]].repeats);
	assert_int_equal(heap.paths.nodes[heap.of[REGISTRY]].own.count, 2);
	/* What nothing holds has a path for each kind, however full the tree is. */
	assert_path(&heap, heap.unheld, "held weakly or by nothing: functions");
	assert_int_equal(heap.of[heap.unheld + 1], heap.of[heap.unheld]);
	assert_int_equal(heap.paths.count, HEAP_PATHS_MAX + 1);
	clear(&heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_has_no_path_in_a_full_tree_is_at_its_holder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
