/* SPDX-License-Identifier: MIT */
/* Which objects of a heap have one path, how it reads, and what is summed up there. */
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
#include "output/heap_views/heap_paths.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_heap.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
INSTEAD_OF(reallocarray);
#define FAILING_REALLOCARRAY
#include "tests/unit/failing_allocation.h"

enum {
	NODES_MAX = 60000,
	NAME_SIZE = HEAP_TEXT_MAX + 1,
	MODULES = 128, /* more than a table's string keys that are told apart */
	PIECES = 9,    /* more than its other keys */
	FIELDS = 40,   /* of each piece, so that there are more paths than a table of them holds at first */
	STEPS = 70,    /* more than a path has */
};

/* Which keys a made-up table has. */
static char numbered[HEAP_CHILDREN_MAX + 1][8];

/* A heap that grows by one object and the reference to it at a time, and its tree. */
struct heap {
	struct made_up_node nodes[NODES_MAX];
	struct made_up_edge edges[NODES_MAX];
	uint32_t node_count, edge_count;
	struct heap_graph graph;
	struct heap_analysis analysis;
	struct heap_paths paths;
	uint32_t *of;
};

static int begin_heap(void **state)
{
	for (size_t i = 0; i < sizeof(numbered) / sizeof(numbered[0]); i++)
		snprintf(numbered[i], sizeof(numbered[i]), "k%zu", i);
	*state = test_calloc(1, sizeof(struct heap));
	return 0;
}

static int end_heap(void **state)
{
	struct heap *heap = *state;

	heap_paths_clear(&heap->paths);
	free(heap->of);
	heap_analysis_clear(&heap->analysis);
	heap_graph_free(&heap->graph);
	test_free(heap);
	return 0;
}

static uint32_t add(struct heap *heap, struct made_up_node node)
{
	assert_true(heap->node_count < NODES_MAX);
	node.bytes = node.bytes ? node.bytes : 1;
	heap->nodes[heap->node_count] = node;
	return ++heap->node_count;
}

static void hold(struct heap *heap, struct made_up_edge edge)
{
	assert_true(heap->edge_count < NODES_MAX);
	heap->edges[heap->edge_count++] = edge;
}

/* An object of this kind, with its text, which a holder holds by this name. */
static uint32_t put(struct heap *heap, uint32_t from, enum heap_hold how, const char *name,
		    enum heap_kind kind, const char *text)
{
	uint32_t node = add(heap, (struct made_up_node){ .kind = kind, .text = text });

	hold(heap, (struct made_up_edge){ .from = from, .to = node, .hold = how, .text = name });
	return node;
}

static uint32_t put_table(struct heap *heap, uint32_t from, enum heap_hold how, const char *name)
{
	return put(heap, from, how, name, HEAP_KIND_TABLE, NULL);
}

static uint32_t put_field(struct heap *heap, uint32_t from, const char *name)
{
	return put_table(heap, from, HEAP_HOLDS_FIELD, name);
}

static uint32_t put_item(struct heap *heap, uint32_t from, int32_t number)
{
	uint32_t node = add(heap, (struct made_up_node){ .kind = HEAP_KIND_TABLE });

	hold(heap,
	     (struct made_up_edge){ .from = from, .to = node, .hold = HEAP_HOLDS_INDEX, .number = number });
	return node;
}

static uint32_t put_registry(struct heap *heap)
{
	return put_table(heap, HEAP_ROOT, HEAP_HOLDS_ROOT, "registry");
}

static uint32_t put_loaded(struct heap *heap)
{
	return put_table(heap, HEAP_ROOT, HEAP_HOLDS_ROOT, "package.loaded");
}

static void analyse(struct heap *heap)
{
	heap->graph = made_up_heap(heap->nodes, heap->node_count, heap->edges, heap->edge_count);
	assert_int_equal(heap_analysis_make(&heap->graph, &heap->analysis), 0);
}

static void make_paths(struct heap *heap)
{
	analyse(heap);
	assert_int_equal(heap_paths_make(&heap->graph, &heap->analysis, &heap->paths, &heap->of), 0);
}

/* What is known of the path of an object. */
static const struct heap_path *path_of(const struct heap *heap, uint32_t node)
{
	return &heap->paths.nodes[heap->of[node]];
}

static void assert_path(const struct heap *heap, uint32_t node, const char *expected)
{
	char text[HEAP_PATH_SIZE];

	assert_string_equal(heap_path_text(&heap->paths, heap->of[node], text), expected);
}

static void assert_module(const struct heap *heap, uint32_t node, const char *expected)
{
	assert_string_equal(heap_paths_text(&heap->paths, path_of(heap, node)->module), expected);
}

/*---- Which objects have one path ----*/

/* A table with as many string keys. Returns the object that the first one holds. */
static uint32_t put_fields(struct heap *heap, uint32_t table, uint32_t count)
{
	uint32_t first = heap->node_count + 1;

	for (uint32_t i = 0; i < count; i++)
		put_field(heap, table, numbered[i]);
	return first;
}

static void string_keys_are_told_apart_unless_they_are_many(void **state)
{
	struct heap *heap = *state;
	uint32_t registry = put_registry(heap);
	uint32_t few = put_fields(heap, put_field(heap, registry, "few"), HEAP_KEYS_MAX);
	uint32_t many = put_fields(heap, put_field(heap, registry, "many"), HEAP_KEYS_MAX + 1);

	make_paths(heap);
	assert_path(heap, few, "registry.few.k0");
	assert_path(heap, few + HEAP_KEYS_MAX - 1, "registry.few.k63");
	assert_false(path_of(heap, few)->many);
	for (uint32_t i = 0; i <= HEAP_KEYS_MAX; i++)
		assert_path(heap, many + i, "registry.many[\"*\"]");
	assert_true(path_of(heap, many)->many);
	assert_int_equal(path_of(heap, many)->own.count, HEAP_KEYS_MAX + 1);
}

/* Half of the keys are numbers, the others of other types. Returns what the first one holds. */
static uint32_t put_items(struct heap *heap, uint32_t table, uint32_t count)
{
	uint32_t first = heap->node_count + 1;

	for (uint32_t i = 0; i < count; i++) {
		if (i < count / 2)
			put_table(heap, table, HEAP_HOLDS_VALUE, numbered[i]);
		else
			put_item(heap, table, (int32_t)i);
	}
	return first;
}

static void other_keys_are_told_apart_unless_they_are_many_together(void **state)
{
	struct heap *heap = *state;
	uint32_t registry = put_registry(heap), mixed;
	uint32_t few = put_items(heap, put_field(heap, registry, "few"), HEAP_INDEXES_MAX);
	uint32_t many = put_items(heap, put_field(heap, registry, "many"), HEAP_INDEXES_MAX + 1);

	mixed = put_field(heap, heap->edges[heap->edge_count - 1].from, "named");
	make_paths(heap);
	assert_path(heap, few, "registry.few[k0]");
	assert_path(heap, few + HEAP_INDEXES_MAX - 1, "registry.few[7]");
	assert_false(path_of(heap, few)->many);
	for (uint32_t i = 0; i <= HEAP_INDEXES_MAX; i++)
		assert_path(heap, many + i, "registry.many[*]");
	assert_int_equal(path_of(heap, many)->own.count, HEAP_INDEXES_MAX + 1);
	assert_path(heap, mixed, "registry.many.named");
}

static void modules_and_globals_keep_their_names_though_they_are_many(void **state)
{
	struct heap *heap = *state;
	uint32_t loaded = put_loaded(heap), globals = put_field(heap, loaded, "_G");
	uint32_t module = put_fields(heap, loaded, HEAP_KEYS_MAX + 1);
	uint32_t global = put_fields(heap, globals, HEAP_KEYS_MAX + 1);
	uint32_t below = put_fields(heap, module, HEAP_KEYS_MAX + 1);
	uint32_t other = put_fields(heap, put_field(heap, put_registry(heap), "_G"), HEAP_KEYS_MAX + 1);

	make_paths(heap);
	assert_path(heap, module, "package.loaded[\"k0\"]");
	assert_path(heap, global, "_G.k0");
	assert_path(heap, below, "package.loaded[\"k0\"][\"*\"]");
	assert_path(heap, other, "registry._G[\"*\"]");
}

static void no_path_goes_on_by_more_names_than_a_bound(void **state)
{
	struct heap *heap = *state;
	uint32_t module = put_fields(heap, put_loaded(heap), HEAP_CHILDREN_MAX + 1);

	make_paths(heap);
	assert_path(heap, module, "package.loaded[\"k0\"]");
	assert_path(heap, module + HEAP_CHILDREN_MAX - 1, "package.loaded[\"k1023\"]");
	assert_path(heap, module + HEAP_CHILDREN_MAX, "package.loaded[\"*\"]");
}

static void paths_are_found_again_however_many_there_are(void **state)
{
	struct heap *heap = *state;
	uint32_t module = put_fields(heap, put_loaded(heap), MODULES);

	for (uint32_t i = 0; i < MODULES; i++)
		for (int32_t piece = 0; piece < PIECES; piece++)
			put_fields(heap, put_item(heap, module + i, piece), FIELDS);
	make_paths(heap);
	/* The root, package.loaded, and of each module: itself, [*] and the fields. */
	assert_int_equal(heap->paths.count, 2 + MODULES * (1 + 1 + FIELDS));
	for (uint32_t node = module + MODULES; node <= heap->node_count; node++)
		assert_int_equal(path_of(heap, node)->own.count, PIECES);
}

static void slots_upvalues_and_traces_are_told_apart_by_more_than_a_name(void **state)
{
	static const struct {
		enum heap_hold hold;
		const char *first, *second;
	} known[] = {
		{ HEAP_HOLDS_UPVALUE, "upvalue 1 of function f a.lua:1", "upvalue 2 of function f a.lua:1" },
		{ HEAP_HOLDS_TRACE, "trace 1 of function f a.lua:1", "trace 2 of function f a.lua:1" },
	};
	struct heap *heap = *state;
	uint32_t registry = put_registry(heap), thread, local, slot;
	uint32_t function = put(heap, registry, HEAP_HOLDS_FIELD, "f", HEAP_KIND_FUNCTION, "f a.lua:1");

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		put_table(heap, function, known[i].hold, NULL);
		heap->edges[heap->edge_count - 1].number = 1;
		put_table(heap, function, known[i].hold, NULL);
		heap->edges[heap->edge_count - 1].number = 2;
	}
	thread = put(heap, registry, HEAP_HOLDS_FIELD, "t", HEAP_KIND_THREAD, "g a.lua:9");
	local = put_table(heap, thread, HEAP_HOLDS_LOCAL, "row");
	heap->edges[heap->edge_count - 1].detail = "f a.lua:1";
	put_table(heap, thread, HEAP_HOLDS_LOCAL, "row");
	heap->edges[heap->edge_count - 1].detail = "g a.lua:9";
	slot = put_table(heap, thread, HEAP_HOLDS_SLOT, NULL);
	heap->edges[heap->edge_count - 1].detail = "f a.lua:1";
	put_table(heap, thread, HEAP_HOLDS_SLOT, NULL);
	heap->edges[heap->edge_count - 1].detail = "g a.lua:9";
	make_paths(heap);
	for (uint32_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		assert_path(heap, function + 1 + 2 * i, known[i].first);
		assert_path(heap, function + 2 + 2 * i, known[i].second);
	}
	assert_path(heap, local, "local \"row\" of f a.lua:1 (coroutine at g a.lua:9)");
	assert_path(heap, local + 1, "local \"row\" of g a.lua:9");
	assert_path(heap, slot, "slot of f a.lua:1 (coroutine at g a.lua:9)");
	assert_path(heap, slot + 1, "slot of g a.lua:9");
}

static void the_main_thread_is_no_coroutine(void **state)
{
	struct heap *heap = *state;
	uint32_t main_thread = put(heap, HEAP_ROOT, HEAP_HOLDS_ROOT, "main thread", HEAP_KIND_THREAD,
				   "g a.lua:9");
	uint32_t table = put_table(heap, main_thread, HEAP_HOLDS_LOCAL, "row");

	heap->edges[heap->edge_count - 1].detail = "f a.lua:1";
	make_paths(heap);
	assert_path(heap, table, "local \"row\" of f a.lua:1");
	assert_path(heap, main_thread, "main thread");
	assert_true(heap_path_is_main_thread(&heap->paths, heap->of[main_thread]));
	assert_false(heap_path_is_main_thread(&heap->paths, heap->of[table]));
}

/* Of a coroutine that nothing but the root holds, what runs is not the main thread's. */
static void a_coroutine_that_runs_is_no_main_thread(void **state)
{
	struct heap *heap = *state;
	uint32_t running = put(heap, HEAP_ROOT, HEAP_HOLDS_ROOT, "running coroutine", HEAP_KIND_THREAD,
			       "g a.lua:9");
	uint32_t table = put_table(heap, running, HEAP_HOLDS_LOCAL, "row");

	heap->edges[heap->edge_count - 1].detail = "f a.lua:1";
	make_paths(heap);
	assert_path(heap, table, "local \"row\" of f a.lua:1 (coroutine at g a.lua:9)");
}

/* It stands elsewhere at the next look, and what its locals hold has the same path. */
static void a_coroutine_has_one_path_wherever_it_stands(void **state)
{
	struct heap *heap = *state;
	uint32_t list = put_field(heap, put_registry(heap), "list"), threads[3], tables[3];
	static const char *const places[] = { "wait a.lua:3", "running f a.lua:1", "start of f a.lua:1" };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		threads[i] = put(heap, list, HEAP_HOLDS_FIELD, "co", HEAP_KIND_THREAD, "f a.lua:1");
		heap->nodes[heap->node_count - 1].place = places[i];
		tables[i] = put_table(heap, threads[i], HEAP_HOLDS_LOCAL, "row");
		heap->edges[heap->edge_count - 1].detail = i ? "g a.lua:9" : "f a.lua:1";
	}
	make_paths(heap);
	assert_path(heap, threads[0], "registry.list.co: coroutine of f a.lua:1");
	assert_int_equal(heap->of[threads[1]], heap->of[threads[0]]);
	assert_int_equal(heap->of[threads[2]], heap->of[threads[0]]);
	assert_path(heap, tables[0], "local \"row\" of f a.lua:1");
	assert_path(heap, tables[1], "local \"row\" of g a.lua:9 (coroutine of f a.lua:1)");
	assert_int_equal(heap->of[tables[2]], heap->of[tables[1]]);
}

static void functions_are_told_apart_by_their_definition_and_strings_are_not(void **state)
{
	struct heap *heap = *state;
	uint32_t list = put_field(heap, put_registry(heap), "list"), first = heap->node_count + 1;

	put(heap, list, HEAP_HOLDS_FIELD, "a", HEAP_KIND_FUNCTION, "f a.lua:1");
	put(heap, list, HEAP_HOLDS_FIELD, "a", HEAP_KIND_FUNCTION, "g a.lua:2");
	put(heap, list, HEAP_HOLDS_FIELD, "a", HEAP_KIND_FUNCTION, "f a.lua:1");
	put(heap, list, HEAP_HOLDS_FIELD, "a", HEAP_KIND_PROTO, "f a.lua:1");
	put(heap, list, HEAP_HOLDS_FIELD, "a", HEAP_KIND_STRING, "f a.lua:1");
	put(heap, list, HEAP_HOLDS_FIELD, "a", HEAP_KIND_STRING, "g a.lua:2");
	put(heap, list, HEAP_HOLDS_FIELD, "a", HEAP_KIND_FUNCTION, NULL);
	make_paths(heap);
	assert_path(heap, first, "registry.list.a: function f a.lua:1");
	assert_path(heap, first + 1, "registry.list.a: function g a.lua:2");
	assert_int_equal(heap->of[first + 2], heap->of[first]);
	assert_path(heap, first + 3, "registry.list.a: prototype of f a.lua:1");
	assert_path(heap, first + 4, "registry.list.a");
	assert_int_equal(heap->of[first + 5], heap->of[first + 4]);
	assert_int_equal(heap->of[first + 6], heap->of[first + 4]);
}

static void an_upvalue_and_its_value_have_one_path_unless_that_is_a_function(void **state)
{
	struct heap *heap = *state;
	uint32_t function = put(heap, put_registry(heap), HEAP_HOLDS_FIELD, "f", HEAP_KIND_FUNCTION,
				"f a.lua:1");
	uint32_t first = put(heap, function, HEAP_HOLDS_UPVALUE, "conns", HEAP_KIND_UPVALUE, NULL);
	uint32_t second = put(heap, function, HEAP_HOLDS_UPVALUE, "send", HEAP_KIND_UPVALUE, NULL);
	uint32_t table = put_table(heap, first, HEAP_HOLDS_CLOSED, NULL);
	uint32_t called = put(heap, second, HEAP_HOLDS_CLOSED, NULL, HEAP_KIND_FUNCTION, "g a.lua:2");

	make_paths(heap);
	assert_path(heap, table, "upvalue \"conns\" of function f a.lua:1");
	assert_int_equal(heap->of[table], heap->of[first]);
	assert_path(heap, second, "upvalue \"send\" of function f a.lua:1");
	assert_path(heap, called, "upvalue \"send\" of function f a.lua:1: function g a.lua:2");
}

static void a_list_stays_at_the_step_that_repeats(void **state)
{
	struct heap *heap = *state;
	uint32_t first = put_field(heap, put_field(heap, put_registry(heap), "list"), "next");
	uint32_t second = put_field(heap, first, "next"), other = put_field(heap, second, "value");
	uint32_t third = put_field(heap, second, "next"), item = put_item(heap, third, 1);
	uint32_t below = put_item(heap, item, 2), same = put_item(heap, below, 2);

	make_paths(heap);
	assert_path(heap, first, "registry.list.next\u2026");
	assert_int_equal(heap->of[second], heap->of[first]);
	assert_int_equal(heap->of[third], heap->of[first]);
	assert_true(path_of(heap, first)->repeats);
	assert_path(heap, other, "registry.list.next\u2026.value");
	assert_path(heap, item, "registry.list.next\u2026[1]");
	assert_false(path_of(heap, item)->repeats);
	assert_path(heap, below, "registry.list.next\u2026[1][2]\u2026");
	assert_int_equal(heap->of[same], heap->of[below]);
}

static void what_the_root_holds_without_a_name_has_a_path(void **state)
{
	struct heap *heap = *state;
	uint32_t table = put_table(heap, HEAP_ROOT, HEAP_HOLDS_ROOT, NULL);

	make_paths(heap);
	assert_path(heap, table, "root");
	assert_false(heap->paths.nodes[HEAP_PATHS_ROOT].repeats);
}

static void a_path_has_a_bounded_number_of_steps(void **state)
{
	struct heap *heap = *state;
	uint32_t first = put_registry(heap);

	for (uint32_t i = 1; i < STEPS; i++)
		put_field(heap, first + i - 1, i % 2 ? "a" : "b");
	make_paths(heap);
	for (uint32_t i = 0; i < HEAP_DEPTH_MAX; i++) {
		assert_int_equal(path_of(heap, first + i)->depth, i + 1);
		assert_int_equal(path_of(heap, first + i)->repeats, i == HEAP_DEPTH_MAX - 1);
	}
	for (uint32_t i = HEAP_DEPTH_MAX; i < STEPS; i++)
		assert_int_equal(heap->of[first + i], heap->of[first + HEAP_DEPTH_MAX - 1]);
}

static void what_nothing_holds_is_apart_by_kind_and_by_whether_it_is_dead(void **state)
{
	struct heap *heap = *state;
	uint32_t registry = put_registry(heap),
		 weak = add(heap, (struct made_up_node){ .kind = HEAP_KIND_TABLE });
	uint32_t loose = add(heap, (struct made_up_node){ .kind = HEAP_KIND_TABLE });
	uint32_t text = add(heap, (struct made_up_node){ .kind = HEAP_KIND_STRING });
	uint32_t dead = add(heap, (struct made_up_node){ .kind = HEAP_KIND_TABLE, .flags = HEAP_DEAD });

	hold(heap,
	     (struct made_up_edge){
		     .from = registry, .to = weak, .hold = HEAP_HOLDS_FIELD, .text = "weak", .weak = true });
	make_paths(heap);
	assert_path(heap, weak, "held weakly or by nothing: tables");
	assert_int_equal(heap->of[loose], heap->of[weak]);
	assert_path(heap, text, "held weakly or by nothing: strings");
	assert_path(heap, dead, "dead, not swept yet: tables");
	assert_true(path_of(heap, dead)->unheld);
	assert_false(path_of(heap, registry)->unheld);
	assert_int_equal(path_of(heap, dead)->parent, HEAP_PATHS_ROOT);
}

static void functions_that_nothing_holds_are_told_apart_and_strings_are_not(void **state)
{
	static const struct made_up_node nodes[] = {
		{ .kind = HEAP_KIND_FUNCTION, .text = "f a.lua:1" },
		{ .kind = HEAP_KIND_FUNCTION, .text = "g a.lua:2" },
		{ .kind = HEAP_KIND_FUNCTION, .text = "f a.lua:1" },
		{ .kind = HEAP_KIND_FUNCTION },
		{ .kind = HEAP_KIND_STRING, .text = "one" },
		{ .kind = HEAP_KIND_STRING, .text = "two" },
	};
	struct heap *heap = *state;
	uint32_t first = heap->node_count + 1;

	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++)
		add(heap, nodes[i]);
	make_paths(heap);
	assert_path(heap, first, "held weakly or by nothing: function f a.lua:1");
	assert_path(heap, first + 1, "held weakly or by nothing: function g a.lua:2");
	assert_int_equal(heap->of[first + 2], heap->of[first]);
	assert_path(heap, first + 3, "held weakly or by nothing: functions");
	assert_path(heap, first + 4, "held weakly or by nothing: strings");
	assert_int_equal(heap->of[first + 5], heap->of[first + 4]);
}

/*---- How it reads ----*/

static void a_path_reads_with_and_without_what_it_leads_to_or_as_its_last_step(void **state)
{
	struct heap *heap = *state;
	uint32_t registry = put_registry(heap);
	uint32_t function = put(heap, put_field(heap, registry, "timers"), HEAP_HOLDS_FIELD, "run",
				HEAP_KIND_FUNCTION, "f a.lua:1");
	char text[HEAP_PATH_SIZE];

	make_paths(heap);
	assert_string_equal(heap_path_text(&heap->paths, heap->of[function], text),
			    "registry.timers.run: function f a.lua:1");
	assert_string_equal(heap_path_place(&heap->paths, heap->of[function], text), "registry.timers.run");
	assert_string_equal(heap_step_text(&heap->paths, heap->of[function], text),
			    ".run: function f a.lua:1");
	assert_string_equal(heap_step_text(&heap->paths, heap->of[registry], text), "registry");
	assert_string_equal(heap_path_text(&heap->paths, HEAP_PATHS_ROOT, text), "");
}

static void a_step_that_repeats_says_so(void **state)
{
	struct heap *heap = *state;
	uint32_t next = put_field(heap, put_registry(heap), "next");
	char text[HEAP_PATH_SIZE];

	put_field(heap, next, "next");
	make_paths(heap);
	assert_string_equal(heap_step_text(&heap->paths, heap->of[next], text), ".next\u2026");
}

static void a_path_that_is_too_long_is_cut(void **state)
{
	static char names[HEAP_DEPTH_MAX][NAME_SIZE];
	struct heap *heap = *state;
	uint32_t table = put_registry(heap);
	char text[HEAP_PATH_SIZE];

	for (uint32_t i = 0; i < HEAP_DEPTH_MAX - 1; i++) {
		memset(names[i], 'a' + (int)i % 2, NAME_SIZE - 1);
		table = put_field(heap, table, names[i]);
	}
	make_paths(heap);
	assert_int_equal(strlen(heap_path_text(&heap->paths, heap->of[table], text)), HEAP_PATH_SIZE - 1);
	assert_memory_equal(text, "registry.aaaa", strlen("registry.aaaa"));
	assert_int_equal(text[HEAP_PATH_SIZE - 2], 'a' + (HEAP_PATH_SIZE - 10) / NAME_SIZE % 2);
}

static void a_path_belongs_to_the_module_of_its_file_or_else_to_that_above_it(void **state)
{
	struct heap *heap = *state;
	uint32_t registry = put_registry(heap), loaded = put_loaded(heap),
		 globals = put_field(heap, loaded, "_G");
	uint32_t core = put_field(heap, loaded, "resty.core"), cache = put_field(heap, core, "cache");
	uint32_t nameless = put_field(heap, loaded, ""), item = put_item(heap, loaded, 1);
	uint32_t field = put_field(heap, registry, "resty.core");
	uint32_t function = add(heap, (struct made_up_node){
					      .kind = HEAP_KIND_FUNCTION,
					      .text = "f b.lua:1",
					      .module = "@/usr/share/lua/5.1/app/b.lua",
				      });
	uint32_t upvalue;

	hold(heap,
	     (struct made_up_edge){ .from = core, .to = function, .hold = HEAP_HOLDS_FIELD, .text = "f" });
	upvalue = put_table(heap, function, HEAP_HOLDS_UPVALUE, "conns");
	make_paths(heap);
	assert_module(heap, registry, "");
	assert_module(heap, loaded, "");
	assert_module(heap, globals, "");
	assert_module(heap, nameless, "");
	assert_module(heap, item, "");
	assert_module(heap, field, "");
	assert_module(heap, core, "resty/core");
	assert_module(heap, cache, "resty/core");
	assert_module(heap, function, "app/b");
	assert_module(heap, upvalue, "app/b");
}

/*---- What is summed up ----*/

static void a_path_has_its_own_objects_and_those_of_all_below(void **state)
{
	struct heap *heap = *state;
	uint32_t registry = put_registry(heap), list = put_field(heap, registry, "list");
	uint32_t first = put_field(heap, list, "a"), second = put_field(heap, list, "b"), seen = 0;
	const struct heap_path *path;

	heap->nodes[registry - 1].bytes = 1;
	heap->nodes[list - 1].bytes = 10;
	heap->nodes[first - 1].bytes = 100;
	heap->nodes[second - 1].bytes = 1000;
	add(heap, (struct made_up_node){ .kind = HEAP_KIND_STRING, .bytes = 10000 });
	make_paths(heap);
	path = path_of(heap, list);
	assert_int_equal(path->own.bytes, 10);
	assert_int_equal(path->own.count, 1);
	assert_int_equal(path->total.bytes, 1110);
	assert_int_equal(path->total.count, 3);
	assert_int_equal(path->retained, 1110);
	assert_int_equal(path_of(heap, registry)->total.bytes, 1111);
	for (uint32_t child = path->first_child; child; child = heap->paths.nodes[child].next_sibling)
		seen += child == heap->of[first] || child == heap->of[second] ? 1 : 100;
	assert_int_equal(seen, 2);
	path = &heap->paths.nodes[HEAP_PATHS_ROOT];
	assert_int_equal(path->own.count, 0);
	assert_int_equal(path->total.bytes, 11111);
	assert_int_equal(path->total.count, 5);
	assert_int_equal(path->retained, 11111);
}

static void what_is_retained_along_a_list_counts_once(void **state)
{
	struct heap *heap = *state;
	uint32_t next = put_field(heap, put_registry(heap), "next"), first = next;

	for (int i = 0; i < 4; i++)
		next = put_field(heap, next, "next");
	make_paths(heap);
	assert_int_equal(path_of(heap, first)->own.count, 5);
	assert_int_equal(path_of(heap, first)->retained, 5);
}

/* The function of the other text that a function holds, with a table of 100 bytes. */
static uint32_t put_link(struct heap *heap, uint32_t from, const char *text)
{
	uint32_t link = put(heap, from, from ? HEAP_HOLDS_UPVALUE : HEAP_HOLDS_ROOT, from ? "next" : "chain",
			    HEAP_KIND_FUNCTION, text);

	heap->nodes[put_field(heap, link, "pay") - 1].bytes = 100;
	return link;
}

/* Along a chain of functions that hold each other by turns, each second path has the same text. */
static void what_a_node_above_of_the_same_text_retains_is_within_it(void **state)
{
	struct heap *heap = *state;
	uint32_t root = put_link(heap, HEAP_ROOT, "f"), first = put_link(heap, root, "g");
	uint32_t second = put_link(heap, first, "f"), third = put_link(heap, second, "g");
	uint32_t fourth = put_link(heap, third, "f"), last = put_link(heap, fourth, "g");
	char left[HEAP_PATH_SIZE], right[HEAP_PATH_SIZE];

	/* The end of the chain is held by something else, too. */
	hold(heap, (struct made_up_edge){ .to = fourth, .hold = HEAP_HOLDS_OTHER });
	make_paths(heap);
	assert_string_equal(heap_path_text(&heap->paths, heap->of[first], left),
			    heap_path_text(&heap->paths, heap->of[third], right));
	assert_int_not_equal(heap->of[first], heap->of[third]);
	assert_int_equal(path_of(heap, first)->retained, 303);
	assert_int_equal(path_of(heap, first)->within, 0);
	assert_int_equal(path_of(heap, second)->within, 0);
	assert_int_equal(path_of(heap, third)->retained, 101);
	assert_int_equal(path_of(heap, third)->within, 101);
	assert_int_equal(path_of(heap, fourth)->retained, 202);
	assert_int_equal(path_of(heap, fourth)->within, 0);
	assert_int_equal(path_of(heap, last)->retained, 101);
	assert_int_equal(path_of(heap, last)->within, 0);
}

static void a_path_has_a_dominator_above_it(void **state)
{
	struct heap *heap = *state;
	uint32_t registry = put_registry(heap), list = put_field(heap, registry, "list");
	uint32_t left = put_field(heap, list, "left"), right = put_field(heap, list, "right");
	uint32_t only = put_field(heap, left, "only"), both = put_field(heap, left, "both");
	uint32_t other = put_registry(heap), anywhere = put_field(heap, right, "anywhere");

	hold(heap,
	     (struct made_up_edge){ .from = right, .to = both, .hold = HEAP_HOLDS_FIELD, .text = "both" });
	hold(heap, (struct made_up_edge){ .from = other, .to = anywhere, .hold = HEAP_HOLDS_ENVIRONMENT });
	make_paths(heap);
	assert_int_equal(path_of(heap, only)->dominator, heap->of[left]);
	assert_int_equal(path_of(heap, both)->dominator, heap->of[list]);
	assert_int_equal(path_of(heap, anywhere)->dominator, HEAP_PATHS_ROOT);
}

static void the_dominator_of_objects_with_one_path_is_above_all_of_theirs(void **state)
{
	struct heap *heap = *state;
	uint32_t list = put_field(heap, put_registry(heap), "list"), pieces[PIECES], deep, shallow;

	for (int32_t i = 0; i < PIECES; i++)
		pieces[i] = put_field(heap, put_item(heap, list, i), "piece");
	deep = put_field(heap, pieces[0], "body");
	shallow = put_field(heap, pieces[1], "body");
	/* A worse path leads there, too, so that the pieces do not dominate it. */
	hold(heap, (struct made_up_edge){ .from = list, .to = shallow, .hold = HEAP_HOLDS_ENVIRONMENT });
	make_paths(heap);
	assert_int_equal(heap->of[deep], heap->of[shallow]);
	assert_path(heap, deep, "registry.list[*].piece.body");
	assert_int_equal(path_of(heap, deep)->dominator, heap->of[list]);
	assert_int_equal(path_of(heap, pieces[0])->dominator, path_of(heap, pieces[0])->parent);
}

static void short_memory_is_told(void **state)
{
	struct heap *heap = *state;
	const struct heap_paths unchanged = { .count = 4711 };
	uint32_t registry = put_registry(heap);
	bool failed = true;

	for (uint32_t i = 0; i < HEAP_KEYS_MAX; i++)
		put_fields(heap, put_field(heap, registry, numbered[i]), FIELDS);
	analyse(heap);
	for (size_t count = 0; failed; count++) {
		struct heap_paths paths = unchanged;
		uint32_t *of = NULL;
		int error;

		allocation_fails_after(count);
		error = heap_paths_make(&heap->graph, &heap->analysis, &paths, &of);
		failed = allocation_failed();
		assert_int_equal(error, failed ? -ENOMEM : 0);
		if (failed) {
			assert_int_equal(paths.count, unchanged.count);
			assert_null(of);
		} else {
			assert_true(count > 4);
			heap_paths_clear(&paths);
			assert_null(paths.nodes);
			free(of);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(string_keys_are_told_apart_unless_they_are_many, begin_heap,
						end_heap),
		cmocka_unit_test_setup_teardown(other_keys_are_told_apart_unless_they_are_many_together,
						begin_heap, end_heap),
		cmocka_unit_test_setup_teardown(modules_and_globals_keep_their_names_though_they_are_many,
						begin_heap, end_heap),
		cmocka_unit_test_setup_teardown(no_path_goes_on_by_more_names_than_a_bound, begin_heap,
						end_heap),
		cmocka_unit_test_setup_teardown(paths_are_found_again_however_many_there_are, begin_heap,
						end_heap),
		cmocka_unit_test_setup_teardown(slots_upvalues_and_traces_are_told_apart_by_more_than_a_name,
						begin_heap, end_heap),
		cmocka_unit_test_setup_teardown(the_main_thread_is_no_coroutine, begin_heap, end_heap),
		cmocka_unit_test_setup_teardown(a_coroutine_that_runs_is_no_main_thread, begin_heap,
						end_heap),
		cmocka_unit_test_setup_teardown(a_coroutine_has_one_path_wherever_it_stands, begin_heap,
						end_heap),
		cmocka_unit_test_setup_teardown(
			functions_are_told_apart_by_their_definition_and_strings_are_not, begin_heap,
			end_heap),
		cmocka_unit_test_setup_teardown(
			an_upvalue_and_its_value_have_one_path_unless_that_is_a_function, begin_heap,
			end_heap),
		cmocka_unit_test_setup_teardown(a_list_stays_at_the_step_that_repeats, begin_heap, end_heap),
		cmocka_unit_test_setup_teardown(what_the_root_holds_without_a_name_has_a_path, begin_heap,
						end_heap),
		cmocka_unit_test_setup_teardown(a_path_has_a_bounded_number_of_steps, begin_heap, end_heap),
		cmocka_unit_test_setup_teardown(what_nothing_holds_is_apart_by_kind_and_by_whether_it_is_dead,
						begin_heap, end_heap),
		cmocka_unit_test_setup_teardown(
			a_path_reads_with_and_without_what_it_leads_to_or_as_its_last_step, begin_heap,
			end_heap),
		cmocka_unit_test_setup_teardown(a_step_that_repeats_says_so, begin_heap, end_heap),
		cmocka_unit_test_setup_teardown(a_path_that_is_too_long_is_cut, begin_heap, end_heap),
		cmocka_unit_test_setup_teardown(
			a_path_belongs_to_the_module_of_its_file_or_else_to_that_above_it, begin_heap,
			end_heap),
		cmocka_unit_test_setup_teardown(a_path_has_its_own_objects_and_those_of_all_below, begin_heap,
						end_heap),
		cmocka_unit_test_setup_teardown(what_is_retained_along_a_list_counts_once, begin_heap,
						end_heap),
		cmocka_unit_test_setup_teardown(what_a_node_above_of_the_same_text_retains_is_within_it,
						begin_heap, end_heap),
		cmocka_unit_test_setup_teardown(a_path_has_a_dominator_above_it, begin_heap, end_heap),
		cmocka_unit_test_setup_teardown(the_dominator_of_objects_with_one_path_is_above_all_of_theirs,
						begin_heap, end_heap),
		cmocka_unit_test_setup_teardown(short_memory_is_told, begin_heap, end_heap),
		cmocka_unit_test_setup_teardown(
			functions_that_nothing_holds_are_told_apart_and_strings_are_not, begin_heap,
			end_heap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
