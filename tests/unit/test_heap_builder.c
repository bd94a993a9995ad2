/* SPDX-License-Identifier: MIT */
/* Graphs of heaps: nodes by address, each node's edges, each text once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "output/heap/heap_builder.h"

enum { MANY = 100000 };

static uint32_t add(struct heap_builder *builder, uint64_t address)
{
	struct heap_node node = { .address = address, .bytes = 16, .kind = HEAP_KIND_TABLE };

	return heap_builder_add_node(builder, &node);
}

static struct heap_graph finish(struct heap_builder *builder)
{
	struct heap_graph graph = { 0 };

	assert_int_equal(heap_builder_finish(builder, &graph), 0);
	heap_builder_free(builder);
	return graph;
}

static void an_empty_heap_has_a_root(void **state)
{
	struct heap_graph graph = finish(heap_builder_new());

	(void)state;
	assert_int_equal(graph.node_count, 1);
	assert_int_equal(graph.edge_count, 0);
	assert_int_equal(graph.nodes[HEAP_ROOT].kind, HEAP_KIND_ROOT);
	assert_int_equal(graph.nodes[1].first_edge, 0);
	assert_string_equal(heap_text(&graph, HEAP_TEXT_NONE), "");
	heap_graph_free(&graph);
}

static void an_address_leads_to_its_node(void **state)
{
	struct heap_builder *builder = heap_builder_new();

	(void)state;
	for (uint32_t i = 1; i <= MANY; i++)
		assert_int_equal(add(builder, 16 * i), i);
	assert_int_equal(add(builder, 16), HEAP_ROOT);
	for (uint32_t i = 1; i <= MANY; i++)
		assert_int_equal(heap_builder_find(builder, 16 * i), i);
	assert_int_equal(heap_builder_find(builder, 8), HEAP_ROOT);
	assert_int_equal(heap_builder_find(builder, 0), HEAP_ROOT);
	assert_int_equal(heap_builder_count(builder), MANY + 1);
	heap_builder_free(builder);
}

static void each_node_has_its_own_edges(void **state)
{
	static const uint32_t FROM[] = { HEAP_ROOT, 2, 2, 4 }, TO[] = { 2, 4, 1, 4 };
	static const uint32_t FIRST[] = { 0, 1, 1, 3, 3, 4, 4 };
	struct heap_builder *builder = heap_builder_new();
	struct heap_edge nowhere = { .to = HEAP_ROOT }, outside = { .to = 6 };
	struct heap_graph graph;

	(void)state;
	for (uint32_t i = 1; i <= 5; i++)
		add(builder, 0);
	for (size_t i = 0; i < sizeof(FROM) / sizeof(FROM[0]); i++) {
		struct heap_edge edge = { .to = TO[i], .hold = HEAP_HOLDS_INDEX, .number = -(int32_t)i };

		heap_builder_start_edges(builder, FROM[i]);
		heap_builder_add_edge(builder, &edge);
		heap_builder_add_edge(builder, &nowhere);
		heap_builder_add_edge(builder, &outside);
	}
	graph = finish(builder);
	assert_int_equal(graph.edge_count, 4);
	for (size_t i = 0; i < sizeof(FIRST) / sizeof(FIRST[0]); i++)
		assert_int_equal(graph.nodes[i].first_edge, FIRST[i]);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(graph.edges[i].to, TO[i]);
		assert_int_equal(graph.edges[i].number, -(int32_t)i);
	}
	heap_graph_free(&graph);
}

static void equal_bytes_are_one_text(void **state)
{
	struct heap_builder *builder = heap_builder_new();
	char name[16], text_long[HEAP_TEXT_MAX + 10];
	struct heap_graph graph;
	uint32_t text = heap_builder_text(builder, "name", 4);

	(void)state;
	for (int i = 0; i < MANY; i++)
		heap_builder_text(builder, name, (size_t)snprintf(name, sizeof(name), "name%d", i));
	assert_int_equal(heap_builder_text(builder, "names", 4), text);
	assert_int_equal(heap_builder_text(builder, "name\0s", 6), text);
	assert_int_not_equal(heap_builder_text(builder, "nam", 3), text);
	assert_int_equal(heap_builder_text(builder, "", 0), HEAP_TEXT_NONE);
	memset(text_long, 'x', sizeof(text_long));
	text = heap_builder_text(builder, text_long, sizeof(text_long));
	assert_int_equal(heap_builder_text(builder, text_long, HEAP_TEXT_MAX), text);
	graph = finish(builder);
	assert_int_equal(strlen(heap_text(&graph, text)), HEAP_TEXT_MAX);
	heap_graph_free(&graph);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_heap_has_a_root),
		cmocka_unit_test(an_address_leads_to_its_node),
		cmocka_unit_test(each_node_has_its_own_edges),
		cmocka_unit_test(equal_bytes_are_one_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
