/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/heap/heap_builder.h"
#include "tests/unit/made_up_heap.h"

static const char *const names[] = {
	"a",       "cache",    "resty.core", "",         ";\n", "<b>&\"'",
	"\x1b[2J", "\xff\xfe", "\u202e",     "function", "a b", "finalizers",
};

enum { NAMES = sizeof(names) / sizeof(names[0]) };

static uint32_t text_of(struct heap_builder *builder, const char *text)
{
	return text ? heap_builder_text(builder, text, strlen(text)) : HEAP_TEXT_NONE;
}

static void add_edge(struct heap_builder *builder, const struct made_up_edge *edge)
{
	struct heap_edge made = {
		.to = edge->to,
		.text = text_of(builder, edge->text),
		.hold = (uint8_t)edge->hold,
		.weak = edge->weak,
	};

	if (edge->detail)
		made.detail = text_of(builder, edge->detail);
	else
		made.number = edge->number;
	heap_builder_add_edge(builder, &made);
}

static void add_node(struct heap_builder *builder, const struct made_up_node *node, uint32_t number)
{
	struct heap_node made = {
		.address = 0x1000 + 16 * (uint64_t)number,
		.bytes = node->bytes,
		.text = text_of(builder, node->text),
		.module = text_of(builder, node->module),
		.slots = node->kind == HEAP_KIND_THREAD ? text_of(builder, node->place) : node->slots,
		.used = node->used,
		.kind = (uint8_t)node->kind,
		.flags = node->flags,
	};

	assert_int_equal(heap_builder_add_node(builder, &made), number);
}

static int compare_edges(const void *a, const void *b)
{
	const struct made_up_edge *left = a, *right = b;

	if (left->from != right->from)
		return left->from < right->from ? -1 : 1;
	return left < right ? -1 : left > right;
}

struct heap_graph made_up_heap(const struct made_up_node *nodes, size_t node_count,
			       const struct made_up_edge *edges, size_t edge_count)
{
	struct heap_builder *builder = heap_builder_new();
	struct made_up_edge *sorted = calloc(edge_count + 1, sizeof(*sorted));
	struct heap_graph graph;

	assert_non_null(builder);
	assert_non_null(sorted);
	for (size_t i = 0; i < node_count; i++)
		add_node(builder, &nodes[i], (uint32_t)i + 1);
	memcpy(sorted, edges, edge_count * sizeof(*sorted));
	qsort(sorted, edge_count, sizeof(*sorted), compare_edges);
	for (size_t i = 0; i < edge_count; i++) {
		if (i == 0 || sorted[i].from != sorted[i - 1].from)
			heap_builder_start_edges(builder, sorted[i].from);
		add_edge(builder, &sorted[i]);
	}
	free(sorted);
	assert_int_equal(heap_builder_finish(builder, &graph), 0);
	heap_builder_free(builder);
	return graph;
}

static uint32_t below(unsigned int *seed, uint32_t limit)
{
	return (uint32_t)rand_r(seed) % limit;
}

struct heap_graph made_up_random_heap(unsigned int seed, uint32_t nodes_max, uint32_t edges_max)
{
	uint32_t node_count = 1 + below(&seed, nodes_max), edge_count = below(&seed, edges_max + 1);
	struct made_up_node *nodes = calloc(node_count, sizeof(*nodes));
	struct made_up_edge *edges = calloc(edge_count + 1, sizeof(*edges));
	struct heap_graph graph;

	for (uint32_t i = 0; i < node_count; i++)
		nodes[i] = (struct made_up_node){
			.kind = (enum heap_kind)(1 + below(&seed, HEAP_KIND_COUNT - 1)),
			.bytes = below(&seed, 1000),
			.text = names[below(&seed, NAMES)],
			.module = below(&seed, 2) ? names[below(&seed, NAMES)] : NULL,
			.slots = below(&seed, 100),
			.used = below(&seed, 50),
			.flags = (uint8_t)below(&seed, 8),
			.place = names[below(&seed, NAMES)],
		};
	for (uint32_t i = 0; i < edge_count; i++)
		edges[i] = (struct made_up_edge){
			.from = below(&seed, node_count + 1),
			.to = 1 + below(&seed, node_count),
			.hold = (enum heap_hold)below(&seed, HEAP_HOLD_COUNT),
			.text = names[below(&seed, NAMES)],
			.number = (int32_t)below(&seed, 5),
			.weak = below(&seed, 8) == 0,
		};
	for (uint32_t i = 0; i < edge_count; i++)
		if (edges[i].hold == HEAP_HOLDS_LOCAL || edges[i].hold == HEAP_HOLDS_SLOT)
			edges[i].detail = names[below(&seed, NAMES)];
	graph = made_up_heap(nodes, node_count, edges, edge_count);
	free(nodes);
	free(edges);
	return graph;
}

/* A list of nodes and edges that grows. */
struct draft {
	struct made_up_node *nodes;
	struct made_up_edge *edges;
	size_t node_count, edge_count;
};

static uint32_t put_node(struct draft *draft, struct made_up_node node)
{
	draft->nodes[draft->node_count] = node;
	return (uint32_t)++draft->node_count;
}

static void put_edge(struct draft *draft, struct made_up_edge edge)
{
	draft->edges[draft->edge_count++] = edge;
}

/* A table that one of its holder's fields holds. */
static uint32_t put_table(struct draft *draft, uint32_t from, enum heap_hold hold, const char *text)
{
	uint32_t table = put_node(
		draft, (struct made_up_node){ .kind = HEAP_KIND_TABLE, .bytes = 64, .slots = 8, .used = 2 });

	put_edge(draft, (struct made_up_edge){ .from = from, .to = table, .hold = hold, .text = text });
	return table;
}

static void put_entries(struct draft *draft, uint32_t function, uint32_t entries)
{
	uint32_t upvalue = put_node(draft, (struct made_up_node){ .kind = HEAP_KIND_UPVALUE, .bytes = 40 });
	uint32_t cache = put_table(draft, upvalue, HEAP_HOLDS_CLOSED, NULL);
	char name[32];

	put_edge(draft,
		 (struct made_up_edge){
			 .from = function, .to = upvalue, .hold = HEAP_HOLDS_UPVALUE, .text = "cache" });
	for (uint32_t i = 0; i < entries; i++) {
		uint32_t entry, body = put_node(draft, (struct made_up_node){ .kind = HEAP_KIND_STRING,
									      .bytes = 1000 });

		snprintf(name, sizeof(name), "user:%u", i);
		entry = put_table(draft, cache, HEAP_HOLDS_FIELD, strdup(name));
		put_edge(draft,
			 (struct made_up_edge){
				 .from = entry, .to = body, .hold = HEAP_HOLDS_FIELD, .text = "body" });
	}
}

static void put_coroutines(struct draft *draft, uint32_t registry, uint32_t coroutines)
{
	uint32_t pool = put_table(draft, registry, HEAP_HOLDS_FIELD, "coroutines");

	for (uint32_t i = 0; i < coroutines; i++) {
		uint32_t thread = put_node(draft, (struct made_up_node){ .kind = HEAP_KIND_THREAD,
									 .bytes = 1200,
									 .text = "wait app.lua:30",
									 .module = "app.lua" });
		uint32_t rows = put_node(
			draft, (struct made_up_node){
				       .kind = HEAP_KIND_TABLE, .bytes = 300, .slots = 100, .used = 3 });

		put_edge(draft, (struct made_up_edge){ .from = pool,
						       .to = thread,
						       .hold = HEAP_HOLDS_INDEX,
						       .number = (int32_t)i + 1 });
		put_edge(draft, (struct made_up_edge){ .from = thread,
						       .to = rows,
						       .hold = HEAP_HOLDS_LOCAL,
						       .text = "rows",
						       .detail = "wait app.lua:30" });
	}
}

static void put_closures(struct draft *draft, uint32_t registry, uint32_t closures)
{
	uint32_t timers = put_table(draft, registry, HEAP_HOLDS_FIELD, "timers");
	uint32_t proto = put_node(draft, (struct made_up_node){ .kind = HEAP_KIND_PROTO,
								.bytes = 200,
								.text = "function <app.lua:12>",
								.module = "app.lua" });

	for (uint32_t i = 0; i < closures; i++) {
		uint32_t closure = put_node(draft, (struct made_up_node){ .kind = HEAP_KIND_FUNCTION,
									  .bytes = 48,
									  .text = "function <app.lua:12>",
									  .module = "app.lua" });

		put_edge(draft, (struct made_up_edge){ .from = timers,
						       .to = closure,
						       .hold = HEAP_HOLDS_INDEX,
						       .number = (int32_t)i + 1 });
		put_edge(draft,
			 (struct made_up_edge){ .from = closure, .to = proto, .hold = HEAP_HOLDS_PROTO });
	}
}

struct heap_graph made_up_leak(uint32_t entries, uint32_t coroutines, uint32_t closures)
{
	size_t room = 100 + 2 * (size_t)(entries + coroutines + closures);
	struct draft draft = { .nodes = calloc(room, sizeof(*draft.nodes)),
			       .edges = calloc(2 * room, sizeof(*draft.edges)) };
	uint32_t loaded, registry, app, function;
	struct heap_graph graph;

	assert_non_null(draft.nodes);
	assert_non_null(draft.edges);
	loaded = put_table(&draft, HEAP_ROOT, HEAP_HOLDS_ROOT, "package.loaded");
	registry = put_table(&draft, HEAP_ROOT, HEAP_HOLDS_ROOT, "registry");
	put_edge(&draft,
		 (struct made_up_edge){
			 .from = registry, .to = loaded, .hold = HEAP_HOLDS_FIELD, .text = "_LOADED" });
	app = put_table(&draft, loaded, HEAP_HOLDS_FIELD, "my.app");
	function = put_node(&draft, (struct made_up_node){ .kind = HEAP_KIND_FUNCTION,
							   .bytes = 48,
							   .text = "handler /srv/my/app.lua:5",
							   .module = "@/srv/my/app.lua" });
	put_edge(&draft, (struct made_up_edge){
				 .from = app, .to = function, .hold = HEAP_HOLDS_FIELD, .text = "handler" });
	put_entries(&draft, function, entries);
	put_coroutines(&draft, registry, coroutines);
	put_closures(&draft, registry, closures);
	put_edge(&draft, (struct made_up_edge){
				 .from = HEAP_ROOT,
				 .to = put_node(&draft, (struct made_up_node){ .kind = HEAP_KIND_VM,
									       .bytes = 4096,
									       .text = "string table" }),
				 .hold = HEAP_HOLDS_ROOT,
				 .text = "string table" });
	graph = made_up_heap(draft.nodes, draft.node_count, draft.edges, draft.edge_count);
	for (size_t i = 0; i < draft.edge_count; i++)
		if (draft.edges[i].text && strncmp(draft.edges[i].text, "user:", 5) == 0)
			free((char *)(uintptr_t)draft.edges[i].text);
	free(draft.nodes);
	free(draft.edges);
	return graph;
}

struct heap_account made_up_account(const struct heap_graph *graph)
{
	static char process[] = "nginx", module[] = "/lib/libluajit.so";
	struct heap_account account = {
		.pid = 4242,
		.process = process,
		.vm = 1,
		.g = 0x7f0000001000,
		.module = module,
		.time = 1700000000,
		.gc_state = "pause",
		.threshold = { true, 2000000 },
		.estimate = { true, 1000000 },
		.pause = { true, 200 },
		.stepmul = { true, 200 },
		.dead_known = true,
		.method = HEAP_ONE_HOLD,
		.attempts = 1,
		.holds = 1,
		.longest_hold_ns = 1234567,
		.held_ns = 1234567,
	};

	for (uint32_t i = 0; i < graph->node_count; i++)
		account.sum += graph->nodes[i].bytes;
	account.gc_total = account.sum;
	return account;
}

struct heap_graph made_up_root_alone(void)
{
	struct heap_builder *builder = heap_builder_new();
	struct heap_graph graph;

	assert_non_null(builder);
	assert_int_equal(heap_builder_finish(builder, &graph), 0);
	heap_builder_free(builder);
	return graph;
}
