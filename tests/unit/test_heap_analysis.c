/* SPDX-License-Identifier: MIT */
/* Holders and retained sizes, against a search that leaves out one node after the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/heap/heap_analysis.h"
#include "output/heap/heap_builder.h"
#include "output/heap/heap_dominators.h"
#include "tests/unit/made_up_heap.h"

enum { GRAPHS = 2000, CHAIN = 300000 };

/* Which nodes do strong edges lead to, but not through one node? */
static void reach(const struct heap_graph *graph, uint32_t without, bool *ret_reached)
{
	uint32_t *waiting = calloc(graph->node_count, sizeof(*waiting));
	size_t count = 0;

	memset(ret_reached, 0, graph->node_count * sizeof(bool));
	ret_reached[HEAP_ROOT] = true;
	waiting[count++] = HEAP_ROOT;
	while (count > 0) {
		uint32_t node = waiting[--count];

		for (uint32_t i = graph->nodes[node].first_edge; i < graph->nodes[node + 1].first_edge; i++) {
			uint32_t to = graph->edges[i].to;

			if (graph->edges[i].weak || to == without || ret_reached[to])
				continue;
			ret_reached[to] = true;
			waiting[count++] = to;
		}
	}
	free(waiting);
}

static void check_node(const struct heap_graph *graph, const struct heap_analysis *analysis,
		       const bool *reached, bool *left, uint32_t node)
{
	uint64_t retained = 0;

	if (!reached[node]) {
		assert_int_equal(analysis->holders[node], HEAP_NO_NODE);
		assert_int_equal(analysis->edges[node], HEAP_NO_EDGE);
		assert_int_equal(analysis->dominators[node], HEAP_NO_NODE);
		assert_int_equal(analysis->retained[node], graph->nodes[node].bytes);
		return;
	}
	assert_int_equal(graph->edges[analysis->edges[node]].to, node);
	assert_false(graph->edges[analysis->edges[node]].weak);
	reach(graph, node, left);
	for (uint32_t i = 0; i < graph->node_count; i++)
		if (reached[i] && !left[i])
			retained += graph->nodes[i].bytes;
	assert_int_equal(analysis->retained[node], retained);
	/* The dominator itself still leads to nothing but through its own. */
	if (analysis->dominators[node] != HEAP_ROOT) {
		reach(graph, analysis->dominators[node], left);
		assert_false(left[node]);
	}
}

static void check_graph(const struct heap_graph *graph)
{
	bool *reached = calloc(graph->node_count, sizeof(*reached));
	bool *left = calloc(graph->node_count, sizeof(*left));
	struct heap_analysis analysis;
	uint32_t count = 0;

	assert_int_equal(heap_analysis_make(graph, &analysis), 0);
	reach(graph, HEAP_NO_NODE, reached);
	for (uint32_t node = 1; node < graph->node_count; node++)
		check_node(graph, &analysis, reached, left, node);
	memset(left, 0, graph->node_count * sizeof(*left));
	for (uint32_t i = 0; i < analysis.reached; i++) {
		uint32_t node = analysis.order[i];

		assert_true(reached[node]);
		assert_false(left[node]);
		assert_true(i == 0 ? node == HEAP_ROOT : left[analysis.holders[node]]);
		assert_true(i == 0 || left[analysis.dominators[node]]);
		left[node] = true;
	}
	for (uint32_t node = 0; node < graph->node_count; node++)
		count += reached[node];
	assert_int_equal(analysis.reached, count);
	heap_analysis_clear(&analysis);
	free(reached);
	free(left);
}

static void random_graphs_agree_with_the_oracle(void **state)
{
	(void)state;
	for (unsigned int seed = 0; seed < GRAPHS; seed++) {
		struct heap_graph graph = made_up_random_heap(seed, seed % 2 ? 12 : 60, seed % 3 ? 40 : 150);

		check_graph(&graph);
		heap_graph_free(&graph);
	}
}

/* Whatever was in the results before. */
static void the_root_has_no_dominator_and_retains_what_is_reached(void **state)
{
	(void)state;
	for (unsigned int seed = 0; seed < 20; seed++) {
		struct heap_graph graph = made_up_random_heap(seed, 60, 150);
		bool *reached = calloc(graph.node_count, sizeof(*reached));
		uint32_t *dominators = calloc(graph.node_count, sizeof(*dominators)), count = 0;
		uint64_t *retained = calloc(graph.node_count, sizeof(*retained)), bytes = 0;

		reach(&graph, HEAP_NO_NODE, reached);
		for (uint32_t node = 0; node < graph.node_count; node++) {
			count += reached[node];
			bytes += reached[node] ? graph.nodes[node].bytes : 0;
			retained[node] = UINT64_MAX;
		}
		assert_int_equal(heap_dominators_find(&graph, count, dominators, retained), 0);
		assert_int_equal(dominators[HEAP_ROOT], HEAP_NO_NODE);
		assert_int_equal(retained[HEAP_ROOT], bytes);
		heap_graph_free(&graph);
		free(reached);
		free(dominators);
		free(retained);
	}
}

static void names_win_over_internals(void **state)
{
	/* registry._LOADED is package.loaded, and a function's environment is _G. */
	static const struct made_up_node nodes[] = {
		{ .kind = HEAP_KIND_TABLE },    { .kind = HEAP_KIND_TABLE }, { .kind = HEAP_KIND_TABLE },
		{ .kind = HEAP_KIND_FUNCTION }, { .kind = HEAP_KIND_TABLE },
	};
	static const struct made_up_edge edges[] = {
		{ .from = 0, .to = 1, .hold = HEAP_HOLDS_ROOT, .text = "registry" },
		{ .from = 0, .to = 2, .hold = HEAP_HOLDS_ROOT, .text = "package.loaded" },
		{ .from = 0, .to = 4, .hold = HEAP_HOLDS_ROOT, .text = "main function" },
		{ .from = 1, .to = 5, .hold = HEAP_HOLDS_FIELD, .text = "x" },
		{ .from = 1, .to = 2, .hold = HEAP_HOLDS_FIELD, .text = "_LOADED" },
		{ .from = 2, .to = 3, .hold = HEAP_HOLDS_FIELD, .text = "_G" },
		{ .from = 4, .to = 3, .hold = HEAP_HOLDS_ENVIRONMENT },
		{ .from = 3, .to = 5, .hold = HEAP_HOLDS_FIELD, .text = "x" },
	};
	struct heap_graph graph = made_up_heap(nodes, 5, edges, 8);
	struct heap_analysis analysis;

	(void)state;
	assert_int_equal(heap_analysis_make(&graph, &analysis), 0);
	assert_int_equal(analysis.holders[2], HEAP_ROOT);
	assert_int_equal(analysis.holders[3], 2);
	assert_int_equal(analysis.holders[5], 3);
	assert_int_equal(analysis.dominators[5], HEAP_ROOT);
	heap_analysis_clear(&analysis);
	heap_graph_free(&graph);
}

/* A list whose last element leads back to each: deep, and with many edges into few nodes. */
static void a_long_list_needs_no_stack(void **state)
{
	struct made_up_node *nodes = calloc(CHAIN, sizeof(*nodes));
	struct made_up_edge *edges = calloc(2 * CHAIN, sizeof(*edges));
	struct heap_analysis analysis;
	struct heap_graph graph;

	(void)state;
	for (uint32_t i = 0; i < CHAIN; i++) {
		nodes[i] = (struct made_up_node){ .kind = HEAP_KIND_TABLE, .bytes = 1 };
		edges[2 * i] = (struct made_up_edge){
			.from = i, .to = i + 1, .hold = HEAP_HOLDS_FIELD, .text = "next"
		};
		edges[2 * i + 1] = (struct made_up_edge){
			.from = CHAIN, .to = i + 1, .hold = HEAP_HOLDS_INDEX, .number = (int32_t)i
		};
	}
	graph = made_up_heap(nodes, CHAIN, edges, 2 * CHAIN);
	assert_int_equal(heap_analysis_make(&graph, &analysis), 0);
	assert_int_equal(analysis.reached, CHAIN + 1);
	for (uint32_t i = 1; i <= CHAIN; i++) {
		assert_int_equal(analysis.dominators[i], i - 1);
		assert_int_equal(analysis.retained[i], CHAIN - i + 1);
	}
	heap_analysis_clear(&analysis);
	heap_graph_free(&graph);
	free(nodes);
	free(edges);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_graphs_agree_with_the_oracle),
		cmocka_unit_test(the_root_has_no_dominator_and_retains_what_is_reached),
		cmocka_unit_test(names_win_over_internals),
		cmocka_unit_test(a_long_list_needs_no_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
