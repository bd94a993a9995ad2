/* SPDX-License-Identifier: MIT */
/* Snapshots for DevTools, read back as DevTools reads them and compared with the graphs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "output/heap/heap_analysis.h"
#include "output/heap_reports/heap_devtools.h"
#include "tests/unit/made_up_heap.h"

enum { GRAPHS = 150, NODE_FIELDS = 7, EDGE_FIELDS = 3, VMS_MAX = 3 };

/* Numbers of types in the list of each file. */
enum { CONTEXT = 0, ELEMENT = 1, PROPERTY = 2, INTERNAL = 3, WEAK = 6 };
enum { STRING = 2, OBJECT = 3, CODE = 4, NATIVE = 8, SYNTHETIC = 9 };

/* A snapshot with the place of what is to be read next. */
struct snapshot {
	json_t *document;
	const json_t *nodes, *edges, *strings;
	size_t node, edge;
};

struct node {
	uint64_t type, id, bytes, edges;
	const char *name;
};

struct edge {
	uint64_t type, index, to;
	const char *name; /* NULL of an element */
};

static uint64_t number_at(const json_t *array, size_t index)
{
	const json_t *value = json_array_get(array, index);

	assert_true(json_is_integer(value));
	return (uint64_t)json_integer_value(value);
}

static const char *string_at(const struct snapshot *snapshot, size_t index)
{
	const json_t *value = json_array_get(snapshot->strings, index);

	assert_true(json_is_string(value));
	return json_string_value(value);
}

static struct snapshot snapshot_of(const struct heap_subject *subjects, size_t count, bool strings)
{
	const struct heap_side side = { .subjects = subjects, .count = count };
	struct snapshot snapshot = { 0 };
	const json_t *head;
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	assert_int_equal(heap_devtools_write(out, &side, &(struct heap_view){ .strings = strings }), 0);
	assert_int_equal(fclose(out), 0);
	snapshot.document = json_loadb(text, length, 0, NULL);
	free(text);
	assert_non_null(snapshot.document);
	head = json_object_get(snapshot.document, "snapshot");
	snapshot.nodes = json_object_get(snapshot.document, "nodes");
	snapshot.edges = json_object_get(snapshot.document, "edges");
	snapshot.strings = json_object_get(snapshot.document, "strings");
	assert_int_equal(json_array_size(snapshot.nodes),
			 NODE_FIELDS * json_integer_value(json_object_get(head, "node_count")));
	assert_int_equal(json_array_size(snapshot.edges),
			 EDGE_FIELDS * json_integer_value(json_object_get(head, "edge_count")));
	assert_int_equal(json_array_size(json_object_get(json_object_get(head, "meta"), "node_fields")),
			 NODE_FIELDS);
	assert_int_equal(json_array_size(json_object_get(json_object_get(head, "meta"), "edge_fields")),
			 EDGE_FIELDS);
	return snapshot;
}

static struct node next_node(struct snapshot *snapshot)
{
	const size_t at = NODE_FIELDS * snapshot->node++;

	assert_int_equal(number_at(snapshot->nodes, at + 5), 0);
	assert_int_equal(number_at(snapshot->nodes, at + 6), 0);
	return (struct node){
		.type = number_at(snapshot->nodes, at),
		.name = string_at(snapshot, number_at(snapshot->nodes, at + 1)),
		.id = number_at(snapshot->nodes, at + 2),
		.bytes = number_at(snapshot->nodes, at + 3),
		.edges = number_at(snapshot->nodes, at + 4),
	};
}

static struct edge next_edge(struct snapshot *snapshot)
{
	const size_t at = EDGE_FIELDS * snapshot->edge++;
	struct edge edge = {
		.type = number_at(snapshot->edges, at),
		.index = number_at(snapshot->edges, at + 1),
		.to = number_at(snapshot->edges, at + 2),
	};

	assert_int_equal(edge.to % NODE_FIELDS, 0);
	edge.to /= NODE_FIELDS;
	if (edge.type != ELEMENT)
		edge.name = string_at(snapshot, edge.index);
	return edge;
}

/* All is read, and DevTools finds each node from the first one. */
static void end(struct snapshot *snapshot)
{
	const size_t count = json_array_size(snapshot->nodes) / NODE_FIELDS;
	bool *reached = calloc(count, sizeof(*reached));
	bool more = true;

	assert_int_equal(snapshot->node, count);
	assert_int_equal(EDGE_FIELDS * snapshot->edge, json_array_size(snapshot->edges));
	assert_non_null(reached);
	reached[0] = true;
	while (more) {
		more = false;
		snapshot->node = snapshot->edge = 0;
		while (snapshot->node < count) {
			const bool from = reached[snapshot->node];
			const struct node node = next_node(snapshot);

			for (uint64_t i = 0; i < node.edges; i++) {
				const struct edge edge = next_edge(snapshot);

				assert_in_range(edge.to, 1, count - 1);
				more |= from && edge.type != WEAK && !reached[edge.to];
				reached[edge.to] |= from && edge.type != WEAK;
			}
		}
	}
	for (size_t i = 0; i < count; i++)
		assert_true(reached[i]);
	free(reached);
	json_decref(snapshot->document);
}

static uint32_t unheld_of(const struct heap_graph *graph, const struct heap_analysis *analysis)
{
	uint32_t unheld = 0;

	for (uint32_t i = 1; i < graph->node_count; i++)
		unheld += !heap_is_reached(analysis, i);
	return unheld;
}

static void check_nodes(struct snapshot *snapshot, const struct heap_graph *graph, uint32_t unheld,
			bool is_only)
{
	const uint64_t first = snapshot->node;
	struct node node = next_node(snapshot);

	assert_int_equal(node.type, is_only ? SYNTHETIC : OBJECT);
	assert_string_equal(node.name, is_only ? "" : "VM");
	assert_int_equal(node.id, first);
	assert_int_equal(node.bytes, 0);
	assert_int_equal(node.edges, graph->nodes[1].first_edge + (unheld > 0));
	for (uint32_t i = 1; i < graph->node_count; i++) {
		node = next_node(snapshot);
		assert_int_equal(node.bytes, graph->nodes[i].bytes);
		assert_int_equal(node.id, graph->nodes[i].address >> 3);
		assert_int_equal(node.edges, graph->nodes[i + 1].first_edge - graph->nodes[i].first_edge);
	}
	if (unheld == 0)
		return;
	node = next_node(snapshot);
	assert_int_equal(node.type, OBJECT);
	assert_string_equal(node.name, "held weakly or by nothing");
	assert_int_equal(node.id, first + graph->node_count);
	assert_int_equal(node.bytes, 0);
	assert_int_equal(node.edges, unheld);
}

static void check_edges(struct snapshot *snapshot, const struct heap_graph *graph,
			const struct heap_analysis *analysis, uint64_t first)
{
	const uint32_t unheld = unheld_of(graph, analysis);
	uint64_t index = 0;

	for (uint32_t i = 0; i < graph->node_count; i++) {
		for (uint32_t j = graph->nodes[i].first_edge; j < graph->nodes[i + 1].first_edge; j++) {
			const struct edge edge = next_edge(snapshot);

			assert_int_equal(edge.to, first + graph->edges[j].to);
			assert_int_equal(edge.type == WEAK, graph->edges[j].weak);
			if (edge.type == ELEMENT)
				assert_int_equal(edge.index, graph->edges[j].number);
		}
		if (i == HEAP_ROOT && unheld > 0)
			assert_int_equal(next_edge(snapshot).to, first + graph->node_count);
	}
	for (uint32_t i = 1; i < graph->node_count; i++)
		if (!heap_is_reached(analysis, i)) {
			const struct edge edge = next_edge(snapshot);

			assert_int_equal(edge.type, ELEMENT);
			assert_int_equal(edge.index, index++);
			assert_int_equal(edge.to, first + i);
		}
}

static void check_vms(const struct heap_subject *subjects, size_t count)
{
	struct snapshot snapshot = snapshot_of(subjects, count, true);
	struct heap_analysis analyses[VMS_MAX] = { 0 };
	uint64_t firsts[VMS_MAX];

	if (count > 1) {
		const struct node root = next_node(&snapshot);

		assert_int_equal(root.type, SYNTHETIC);
		assert_string_equal(root.name, "");
		assert_int_equal(root.id, 0);
		assert_int_equal(root.bytes, 0);
		assert_int_equal(root.edges, count);
	}
	for (size_t i = 0; i < count; i++) {
		const struct heap_graph *graph = &subjects[i].graph;

		assert_int_equal(heap_analysis_make(graph, &analyses[i]), 0);
		firsts[i] = snapshot.node;
		check_nodes(&snapshot, graph, unheld_of(graph, &analyses[i]), count == 1);
	}
	for (size_t i = 0; count > 1 && i < count; i++) {
		const struct edge edge = next_edge(&snapshot);

		assert_int_equal(edge.type, ELEMENT);
		assert_int_equal(edge.index, i);
		assert_int_equal(edge.to, firsts[i]);
	}
	for (size_t i = 0; i < count; i++) {
		check_edges(&snapshot, &subjects[i].graph, &analyses[i], firsts[i]);
		heap_analysis_clear(&analyses[i]);
	}
	end(&snapshot);
}

static void a_snapshot_has_the_graphs_of_all_vms(void **state)
{
	(void)state;
	for (unsigned int seed = 0; seed < GRAPHS; seed++) {
		struct heap_subject subjects[VMS_MAX];

		for (unsigned int i = 0; i < VMS_MAX; i++)
			subjects[i] = made_up_subject(made_up_random_heap(seed + i * GRAPHS, 20, 60));
		check_vms(subjects, 1 + seed % VMS_MAX);
		for (unsigned int i = 0; i < VMS_MAX; i++)
			heap_subject_clear(&subjects[i]);
	}
}

static void a_node_is_of_what_devtools_groups_by(void **state)
{
	static const struct {
		struct made_up_node node;
		uint64_t type;
		const char *name, *with_strings;
	} known[] = {
		{ { .kind = HEAP_KIND_STRING, .text = "secret" }, STRING, "", "secret" },
		{ { .kind = HEAP_KIND_VM, .text = "string table" }, NATIVE, "string table", "string table" },
		{ { .kind = HEAP_KIND_TRACE }, CODE, "trace", "trace" },
		{ { .kind = HEAP_KIND_TABLE }, OBJECT, "table", "table" },
		{ { .kind = HEAP_KIND_FUNCTION, .text = "f a.lua:1" },
		  OBJECT,
		  "function f a.lua:1",
		  "function f a.lua:1" },
		{ { .kind = HEAP_KIND_CDATA, .text = "struct x" },
		  OBJECT,
		  "cdata struct x",
		  "cdata struct x" },
	};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(known) / sizeof(known[0]); i++) {
		const size_t at = i / 2;
		const bool strings = i % 2;
		const struct made_up_edge edge = { 0, 1, HEAP_HOLDS_ROOT, "registry", NULL, 0, false };
		struct heap_subject subject = made_up_subject(made_up_heap(&known[at].node, 1, &edge, 1));
		struct snapshot snapshot = snapshot_of(&subject, 1, strings);
		struct node node;

		next_node(&snapshot);
		node = next_node(&snapshot);
		assert_int_equal(node.type, known[at].type);
		assert_string_equal(node.name, strings ? known[at].with_strings : known[at].name);
		json_decref(snapshot.document);
		heap_subject_clear(&subject);
	}
}

static void an_edge_reads_as_devtools_shows_it(void **state)
{
	static const struct {
		struct made_up_edge edge;
		uint64_t type;
		const char *name;
	} known[] = {
		{ { 0, 1, HEAP_HOLDS_ROOT, "registry", NULL, 0, false }, PROPERTY, "registry" },
		{ { 0, 1, HEAP_HOLDS_FIELD, "a b", NULL, 0, false }, PROPERTY, "a b" },
		{ { 0, 1, HEAP_HOLDS_FIELD, "a b", NULL, 0, true }, WEAK, "a b" },
		{ { 0, 1, HEAP_HOLDS_INDEX, NULL, NULL, 0, false }, ELEMENT, NULL },
		{ { 0, 1, HEAP_HOLDS_INDEX, NULL, NULL, 3, false }, ELEMENT, NULL },
		{ { 0, 1, HEAP_HOLDS_INDEX, NULL, NULL, -1, false }, PROPERTY, "[-1]" },
		{ { 0, 1, HEAP_HOLDS_INDEX, NULL, NULL, 3, true }, WEAK, "[3]" },
		{ { 0, 1, HEAP_HOLDS_VALUE, "1.5", NULL, 0, false }, PROPERTY, "[1.5]" },
		{ { 0, 1, HEAP_HOLDS_KEY, NULL, NULL, 0, false }, INTERNAL, "key" },
		{ { 0, 1, HEAP_HOLDS_METATABLE, NULL, NULL, 0, false }, INTERNAL, "metatable" },
		{ { 0, 1, HEAP_HOLDS_ENVIRONMENT, NULL, NULL, 0, false }, INTERNAL, "environment" },
		{ { 0, 1, HEAP_HOLDS_UPVALUE, "cache", NULL, 2, false }, CONTEXT, "cache" },
		{ { 0, 1, HEAP_HOLDS_UPVALUE, NULL, NULL, 2, false }, CONTEXT, "upvalue 2" },
		{ { 0, 1, HEAP_HOLDS_CLOSED, NULL, NULL, 0, false }, INTERNAL, "value" },
		{ { 0, 1, HEAP_HOLDS_LOCAL, "row", "f a.lua:1", 0, false },
		  CONTEXT,
		  "local \"row\" of f a.lua:1" },
		{ { 0, 1, HEAP_HOLDS_SLOT, NULL, "f a.lua:1", 0, false }, INTERNAL, "slot of f a.lua:1" },
		{ { 0, 1, HEAP_HOLDS_PROTO, NULL, NULL, 0, false }, INTERNAL, "prototype" },
		{ { 0, 1, HEAP_HOLDS_CONSTANT, NULL, NULL, 0, false }, INTERNAL, "constant" },
		{ { 0, 1, HEAP_HOLDS_TRACE, NULL, NULL, 7, false }, INTERNAL, "trace 7" },
		{ { 0, 1, HEAP_HOLDS_OTHER, "c", NULL, 0, false }, INTERNAL, "c" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const struct made_up_node node = { .kind = HEAP_KIND_TABLE, .bytes = 1 };
		struct heap_subject subject = made_up_subject(made_up_heap(&node, 1, &known[i].edge, 1));
		struct snapshot snapshot = snapshot_of(&subject, 1, false);
		const struct edge edge = next_edge(&snapshot);

		assert_int_equal(edge.type, known[i].type);
		if (known[i].name)
			assert_string_equal(edge.name, known[i].name);
		else
			assert_int_equal(edge.index, known[i].edge.number);
		json_decref(snapshot.document);
		heap_subject_clear(&subject);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_snapshot_has_the_graphs_of_all_vms),
		cmocka_unit_test(a_node_is_of_what_devtools_groups_by),
		cmocka_unit_test(an_edge_reads_as_devtools_shows_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
