/* SPDX-License-Identifier: MIT */
#include "output/heap_views/heap_cdata.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How often something finalizes cdata of a type. */
struct pair {
	struct {
		uint64_t group;     /* of the type: its address */
		uint64_t finalizer; /* a path */
	} key;
	uint64_t count;
	UT_hash_handle hh;
};

struct finder {
	const struct heap_graph *graph;
	const uint32_t *of;
	struct heap_group *groups;
	struct pair *pairs;
};

static struct heap_group *group_of(const struct heap_graph *graph, const struct heap_node *node,
				   struct heap_group *groups)
{
	const char *name = heap_text(graph, node->text);
	struct heap_group *group;

	HASH_FIND(hh, groups, name, strlen(name), group);
	return group;
}

static void keep_most(struct heap_most *most, uint32_t path, uint64_t amount)
{
	if (amount > most->amount)
		*most = (struct heap_most){ .path = path, .amount = amount };
}

/*---- Holders ----*/

/* A path of cdata is of one type; any object of it says which. */
static void find_holders(const struct finder *finder, const struct heap_paths *paths)
{
	for (uint32_t i = 1; i < finder->graph->node_count; i++) {
		const struct heap_node *node = &finder->graph->nodes[i];
		const struct heap_path *path = &paths->nodes[finder->of[i]];
		struct heap_group *group;

		if (node->kind != HEAP_KIND_CDATA || path->unheld)
			continue;
		group = group_of(finder->graph, node, finder->groups);
		if (group)
			keep_most(&group->held, finder->of[i], path->own.bytes);
	}
}

/*---- Finalizers ----*/

static int add_pair(struct finder *finder, struct heap_group *group, uint32_t finalizer)
{
	struct pair *pair, searched;

	searched.key.group = (uint64_t)(uintptr_t)group;
	searched.key.finalizer = finalizer;
	HASH_FIND(hh, finder->pairs, &searched.key, sizeof(searched.key), pair);
	if (!pair) {
		pair = calloc(1, sizeof(*pair));
		if (!pair)
			return -ENOMEM;
		pair->key = searched.key;
		HASH_ADD(hh, finder->pairs, key, sizeof(pair->key), pair);
		if (!hash_added(&pair->hh)) {
			free(pair);
			return -ENOMEM;
		}
	}
	keep_most(&group->finalizer, finalizer, ++pair->count);
	return 0;
}

/* The table that ffi.gc() keeps: its keys are cdata, its values their finalizers. */
static const struct heap_node *finalizer_table(const struct heap_graph *graph)
{
	for (uint32_t i = graph->nodes[HEAP_ROOT].first_edge; i < graph->nodes[HEAP_ROOT + 1].first_edge;
	     i++) {
		const struct heap_edge *edge = &graph->edges[i];

		if (edge->hold == HEAP_HOLDS_ROOT && graph->nodes[edge->to].kind == HEAP_KIND_TABLE &&
		    strcmp(heap_text(graph, edge->text), "finalizers") == 0)
			return &graph->nodes[edge->to];
	}
	return NULL;
}

/* The edge to a key comes right before that to its value. */
static int find_finalizers(struct finder *finder)
{
	const struct heap_graph *graph = finder->graph;
	const struct heap_node *table = finalizer_table(graph);
	int error = 0;

	for (uint32_t i = table ? table->first_edge : 0; table && i + 1 < table[1].first_edge && !error;
	     i++) {
		const struct heap_edge *key = &graph->edges[i], *value = &graph->edges[i + 1];
		struct heap_group *group;

		if (key->hold != HEAP_HOLDS_KEY || value->hold != HEAP_HOLDS_VALUE ||
		    graph->nodes[key->to].kind != HEAP_KIND_CDATA)
			continue;
		group = group_of(graph, &graph->nodes[key->to], finder->groups);
		if (group)
			error = add_pair(finder, group, finder->of[value->to]);
	}
	return error;
}

int heap_cdata_find(const struct heap_graph *graph, const struct heap_paths *paths, const uint32_t *of,
		    struct heap_group *groups)
{
	struct finder finder = { .graph = graph, .of = of, .groups = groups };
	int error;

	find_holders(&finder, paths);
	error = find_finalizers(&finder);
	HASH_FREE_ALL(finder.pairs);
	return error;
}
