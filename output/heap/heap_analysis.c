/* SPDX-License-Identifier: MIT */
#include "output/heap/heap_analysis.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "output/heap/heap_dominators.h"

enum { PRICE_MAX = 7, QUEUES = PRICE_MAX + 1 };

/* Nodes that may have been reached at one price. A node is in it again when a lower price was found. */
struct queue {
	uint32_t *nodes;
	size_t count, size;
};

struct search {
	const struct heap_graph *graph;
	struct heap_analysis *analysis;
	uint32_t *prices;            /* of the best path so far; HEAP_NO_NODE: none */
	struct queue queues[QUEUES]; /* by price, modulo QUEUES */
};

/*
 * What a path pays for an edge. What the source names is cheap; what only the VM knows is dear:
 * package.loaded["x"].y is better than registry._LOADED["x"].y, or than another function's environment.
 */
static uint32_t price_of(const struct heap_graph *graph, const struct heap_edge *edge)
{
	static const uint8_t prices[HEAP_HOLD_COUNT] = {
		[HEAP_HOLDS_ROOT] = 3,        [HEAP_HOLDS_FIELD] = 1,   [HEAP_HOLDS_INDEX] = 1,
		[HEAP_HOLDS_VALUE] = 1,       [HEAP_HOLDS_KEY] = 3,     [HEAP_HOLDS_METATABLE] = 3,
		[HEAP_HOLDS_ENVIRONMENT] = 7, [HEAP_HOLDS_UPVALUE] = 1, [HEAP_HOLDS_CLOSED] = 1,
		[HEAP_HOLDS_LOCAL] = 1,       [HEAP_HOLDS_SLOT] = 2,    [HEAP_HOLDS_PROTO] = 2,
		[HEAP_HOLDS_CONSTANT] = 2,    [HEAP_HOLDS_TRACE] = 4,   [HEAP_HOLDS_OTHER] = 3,
	};
	uint32_t hold = edge->hold;

	if (hold == HEAP_HOLDS_ROOT && strcmp(heap_text(graph, edge->text), "package.loaded") == 0)
		return 1;
	/* At the next look it may be another one. */
	if (hold == HEAP_HOLDS_ROOT && strcmp(heap_text(graph, edge->text), "running coroutine") == 0)
		return PRICE_MAX;
	return hold < HEAP_HOLD_COUNT ? prices[hold] : PRICE_MAX;
}

static int queue_add(struct queue *queue, uint32_t node)
{
	if (queue->count == queue->size) {
		uint32_t *nodes = array_grow(queue->nodes, &queue->size, queue->count + 1, sizeof(*nodes));

		if (!nodes)
			return -ENOMEM;
		queue->nodes = nodes;
	}
	queue->nodes[queue->count++] = node;
	return 0;
}

/* Offer node's paths to what it holds. 0 or -ENOMEM. */
static int follow(struct search *search, uint32_t node)
{
	const struct heap_graph *graph = search->graph;
	struct heap_analysis *analysis = search->analysis;

	for (uint32_t i = graph->nodes[node].first_edge; i < graph->nodes[node + 1].first_edge; i++) {
		const struct heap_edge *edge = &graph->edges[i];
		uint32_t price = search->prices[node] + price_of(graph, edge);

		if (edge->weak || price >= search->prices[edge->to])
			continue;
		search->prices[edge->to] = price;
		analysis->edges[edge->to] = i;
		analysis->holders[edge->to] = node;
		if (queue_add(&search->queues[price % QUEUES], edge->to))
			return -ENOMEM;
	}
	return 0;
}

/* Follow the nodes whose best price this is. Their edges lead to other queues: no edge is free. */
static int empty_queue(struct search *search, uint32_t price)
{
	struct queue *queue = &search->queues[price % QUEUES];

	for (size_t i = 0; i < queue->count; i++) {
		uint32_t node = queue->nodes[i];

		/* A lower price was found, and the node followed then. */
		if (search->prices[node] != price)
			continue;
		search->analysis->order[search->analysis->reached++] = node;
		if (follow(search, node))
			return -ENOMEM;
	}
	queue->count = 0;
	return 0;
}

static int find_holders(struct search *search)
{
	int error = queue_add(&search->queues[0], HEAP_ROOT);
	uint32_t empty = 0;

	search->prices[HEAP_ROOT] = 0;
	for (uint32_t price = 0; !error && empty <= PRICE_MAX; price++) {
		empty = search->queues[price % QUEUES].count ? 0 : empty + 1;
		error = empty_queue(search, price);
	}
	return error;
}

static uint32_t *new_numbers(size_t count)
{
	uint32_t *numbers = malloc(count * sizeof(*numbers));

	if (numbers)
		memset(numbers, 0xff, count * sizeof(*numbers));
	return numbers;
}

static int search_graph(const struct heap_graph *graph, struct heap_analysis *analysis)
{
	struct search search = { .graph = graph, .analysis = analysis };
	int error;

	search.prices = new_numbers(graph->node_count);
	error = search.prices ? find_holders(&search) : -ENOMEM;
	free(search.prices);
	for (size_t i = 0; i < QUEUES; i++)
		free(search.queues[i].nodes);
	return error;
}

int heap_analysis_make(const struct heap_graph *graph, struct heap_analysis *ret_analysis)
{
	size_t count = graph->node_count;
	struct heap_analysis analysis = { 0 };
	int error = -ENOMEM;

	analysis.edges = new_numbers(count);
	analysis.holders = new_numbers(count);
	analysis.order = new_numbers(count);
	if (analysis.edges && analysis.holders && analysis.order)
		error = search_graph(graph, &analysis);
	if (!error) {
		analysis.dominators = new_numbers(count);
		analysis.retained = malloc(count * sizeof(*analysis.retained));
		error = -ENOMEM;
		if (analysis.dominators && analysis.retained)
			error = heap_dominators_find(graph, analysis.reached, analysis.dominators,
						     analysis.retained);
	}
	if (error)
		heap_analysis_clear(&analysis);
	else
		*ret_analysis = analysis;
	return error;
}

void heap_analysis_clear(struct heap_analysis *analysis)
{
	free(analysis->edges);
	free(analysis->holders);
	free(analysis->order);
	free(analysis->dominators);
	free(analysis->retained);
	*analysis = (struct heap_analysis){ 0 };
}
