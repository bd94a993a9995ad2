/* SPDX-License-Identifier: MIT */
/*
 * heap_walk: what an object of a heap's graph holds, and what that holds, as text.
 */
#ifndef LJSPY_HEAP_WALK_H
#define LJSPY_HEAP_WALK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/heap/heap_graph.h"
#include "tests/unit/kept_text.h"

enum { WALK_DEPTH_MAX = 6, WALK_SEEN_MAX = 4096, WALK_EDGES_MAX = 30 };

struct heap_walk {
	FILE *out;
	const struct heap_graph *graph;
	bool seen[WALK_SEEN_MAX];
};

/* By name: the order of a table's keys is not that of the program. */
static const struct heap_graph *heap_walk_sorted;

static inline int heap_walk_compare(const void *a, const void *b)
{
	const struct heap_edge *left = *(const struct heap_edge *const *)a,
			       *right = *(const struct heap_edge *const *)b;
	int by_text = strcmp(heap_text(heap_walk_sorted, left->text),
			     heap_text(heap_walk_sorted, right->text));
	int by_target = strcmp(heap_text(heap_walk_sorted, heap_walk_sorted->nodes[left->to].text),
			       heap_text(heap_walk_sorted, heap_walk_sorted->nodes[right->to].text));

	if (left->hold != right->hold)
		return left->hold - right->hold;
	if (by_text)
		return by_text;
	if (by_target && left->hold != HEAP_HOLDS_INDEX)
		return by_target;
	return left->hold == HEAP_HOLDS_INDEX ? left->number - right->number : left->to < right->to ? -1 : 1;
}

static inline void heap_walk_node(struct heap_walk *walk, uint32_t number, int depth)
{
	const struct heap_node *node = &walk->graph->nodes[number];
	const struct heap_edge *edges[WALK_SEEN_MAX];
	size_t count = node[1].first_edge - node->first_edge;

	fprintf(walk->out, "kind %d, %llu bytes, flags %d, ", node->kind, (unsigned long long)node->bytes,
		node->flags);
	if (node->kind == HEAP_KIND_THREAD)
		fprintf(walk->out, "at \"%s\", \"", heap_text(walk->graph, node->place));
	else
		fprintf(walk->out, "%u of %u, \"", node->used, node->slots);
	print_without_addresses(walk->out, heap_text(walk->graph, node->text));
	fprintf(walk->out, "\" \"%s\"\n", heap_text(walk->graph, node->module));
	/* The globals hold all of the library. */
	if (number >= WALK_SEEN_MAX || walk->seen[number] || depth >= WALK_DEPTH_MAX ||
	    count > WALK_EDGES_MAX)
		return;
	walk->seen[number] = true;
	for (size_t i = 0; i < count; i++)
		edges[i] = &walk->graph->edges[node->first_edge + i];
	heap_walk_sorted = walk->graph;
	qsort(edges, count, sizeof(edges[0]), heap_walk_compare);
	for (size_t i = 0; i < count; i++) {
		const struct heap_edge *edge = edges[i];

		fprintf(walk->out, "%*s%d \"", 2 * depth, "", edge->hold);
		print_without_addresses(walk->out, heap_text(walk->graph, edge->text));
		fputs("\" ", walk->out);
		if (edge->hold == HEAP_HOLDS_INDEX || edge->hold == HEAP_HOLDS_UPVALUE)
			fprintf(walk->out, "%d ", edge->number);
		else if (edge->hold == HEAP_HOLDS_LOCAL || edge->hold == HEAP_HOLDS_SLOT)
			fprintf(walk->out, "%s ", heap_text(walk->graph, edge->detail));
		fprintf(walk->out, "%s-> ", edge->weak ? "weakly " : "");
		heap_walk_node(walk, edge->to, depth + 1);
	}
}

/* What the field of any table holds. */
static inline uint32_t heap_walk_find(const struct heap_graph *graph, const char *name)
{
	for (uint32_t i = 0; i < graph->edge_count; i++)
		if (graph->edges[i].hold == HEAP_HOLDS_FIELD &&
		    strcmp(heap_text(graph, graph->edges[i].text), name) == 0)
			return graph->edges[i].to;
	return HEAP_NO_NODE;
}

/* Print what the only field of this name holds. */
static inline void heap_walk_print(FILE *out, const struct heap_graph *graph, const char *name)
{
	static struct heap_walk walk;

	walk = (struct heap_walk){ .out = out, .graph = graph };
	assert_int_not_equal(heap_walk_find(graph, name), HEAP_NO_NODE);
	heap_walk_node(&walk, heap_walk_find(graph, name), 0);
}

#endif
