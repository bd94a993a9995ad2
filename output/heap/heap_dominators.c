/* SPDX-License-Identifier: MIT */
#include "output/heap/heap_dominators.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Nodes are numbered in the order of a search in depth; the root has 0. All but nodes and numbers
 * are by these numbers. A forest of the numbers from first_linked on grows during the search for
 * dominators; ancestors and labels are its compressed paths.
 */
struct search {
	const struct heap_graph *graph;
	uint32_t count;
	uint32_t *nodes;      /* the node with a number */
	uint32_t *numbers;    /* of a node; HEAP_NO_NODE if not reached */
	uint32_t *ancestors;  /* at first the number's parent in the search */
	uint32_t *labels;     /* the number with the least semi on the compressed path */
	uint32_t *semis;      /* semidominators */
	uint32_t *dominators; /* at first relative; see find() */
	uint32_t *buckets;    /* the first number with this semidominator; before, the next edge to follow */
	uint32_t *next_in_bucket;
	uint32_t *first_into; /* where the sources of a number's edges begin; one more than count */
	uint32_t *into;       /* numbers */
	uint32_t *way;        /* of compress(), back from the root */
};

static uint32_t *new_numbers(size_t count)
{
	return malloc((count + 1) * sizeof(uint32_t));
}

static bool allocate(struct search *search)
{
	size_t count = search->count;

	search->nodes = new_numbers(count);
	search->numbers = new_numbers(search->graph->node_count);
	search->ancestors = new_numbers(count);
	search->labels = new_numbers(count);
	search->semis = new_numbers(count);
	search->dominators = new_numbers(count);
	search->buckets = new_numbers(count);
	search->next_in_bucket = new_numbers(count);
	search->way = new_numbers(count);
	search->first_into = calloc(count + 2, sizeof(uint32_t));
	return search->nodes && search->numbers && search->ancestors && search->labels && search->semis &&
	       search->dominators && search->buckets && search->next_in_bucket && search->way &&
	       search->first_into;
}

static void clear(struct search *search)
{
	free(search->nodes);
	free(search->numbers);
	free(search->ancestors);
	free(search->labels);
	free(search->semis);
	free(search->dominators);
	free(search->buckets);
	free(search->next_in_bucket);
	free(search->first_into);
	free(search->into);
	free(search->way);
}

static uint32_t enter(struct search *search, uint32_t node, uint32_t number, uint32_t parent)
{
	search->nodes[number] = node;
	search->numbers[node] = number;
	search->ancestors[number] = parent;
	search->buckets[number] = search->graph->nodes[node].first_edge;
	return number;
}

static void number_nodes(struct search *search)
{
	const struct heap_graph *graph = search->graph;
	uint32_t at, count = 0;

	memset(search->numbers, 0xff, graph->node_count * sizeof(uint32_t));
	at = enter(search, HEAP_ROOT, count++, 0);
	for (;;) {
		uint32_t end = graph->nodes[search->nodes[at] + 1].first_edge;
		const struct heap_edge *edge = NULL;

		while (search->buckets[at] < end) {
			edge = &graph->edges[search->buckets[at]++];
			if (!edge->weak && search->numbers[edge->to] == HEAP_NO_NODE)
				break;
			edge = NULL;
		}
		if (edge)
			at = enter(search, edge->to, count++, at);
		else if (at == 0)
			break;
		else
			at = search->ancestors[at];
	}
}

/* Turn the edges between reached nodes around. 0 or -ENOMEM. */
static int turn_edges(struct search *search)
{
	const struct heap_graph *graph = search->graph;
	uint32_t *first = search->first_into;

	/* Count one place further on, so that filling moves each beginning to where it belongs. */
	for (uint32_t number = 0; number < search->count; number++) {
		uint32_t node = search->nodes[number];

		for (uint32_t i = graph->nodes[node].first_edge; i < graph->nodes[node + 1].first_edge; i++)
			if (!graph->edges[i].weak)
				first[search->numbers[graph->edges[i].to] + 2]++;
	}
	for (uint32_t number = 2; number <= search->count + 1; number++)
		first[number] += first[number - 1];
	search->into = new_numbers(first[search->count + 1]);
	if (!search->into)
		return -ENOMEM;
	for (uint32_t number = 0; number < search->count; number++) {
		uint32_t node = search->nodes[number];

		for (uint32_t i = graph->nodes[node].first_edge; i < graph->nodes[node + 1].first_edge; i++)
			if (!graph->edges[i].weak)
				search->into[first[search->numbers[graph->edges[i].to] + 1]++] = number;
	}
	return 0;
}

/* Compress the path from number, which is linked, to the root of its tree in the forest. */
static void compress(struct search *search, uint32_t number, uint32_t first_linked)
{
	uint32_t *way = search->way;
	uint32_t length = 0;

	while (search->ancestors[number] >= first_linked) {
		way[length++] = number;
		number = search->ancestors[number];
	}
	while (length > 0) {
		uint32_t below = way[--length], above = search->ancestors[below];

		if (search->semis[search->labels[above]] < search->semis[search->labels[below]])
			search->labels[below] = search->labels[above];
		search->ancestors[below] = search->ancestors[above];
	}
}

/* The number with the least semidominator on the path to number in the forest, its tree's root left out. */
static uint32_t least(struct search *search, uint32_t number, uint32_t first_linked)
{
	if (number < first_linked)
		return number;
	compress(search, number, first_linked);
	return search->labels[number];
}

static void find_semidominator(struct search *search, uint32_t number)
{
	uint32_t semi = number;

	for (uint32_t i = search->first_into[number]; i < search->first_into[number + 1]; i++) {
		uint32_t from = search->semis[least(search, search->into[i], number + 1)];

		if (from < semi)
			semi = from;
	}
	search->semis[number] = semi;
}

static void find(struct search *search)
{
	for (uint32_t number = 0; number < search->count; number++) {
		search->labels[number] = search->semis[number] = number;
		search->buckets[number] = HEAP_NO_NODE;
	}
	search->dominators[0] = 0;
	for (uint32_t number = search->count; number-- > 1;) {
		uint32_t parent = search->ancestors[number], semi;

		find_semidominator(search, number);
		semi = search->semis[number];
		search->next_in_bucket[number] = search->buckets[semi];
		search->buckets[semi] = number;
		/* From here on number is linked to its parent. */
		for (uint32_t of = search->buckets[parent]; of != HEAP_NO_NODE;
		     of = search->next_in_bucket[of]) {
			uint32_t low = least(search, of, number);

			search->dominators[of] = search->semis[low] < parent ? low : parent;
		}
		search->buckets[parent] = HEAP_NO_NODE;
	}
	for (uint32_t number = 1; number < search->count; number++)
		if (search->dominators[number] != search->semis[number])
			search->dominators[number] = search->dominators[search->dominators[number]];
}

static void give(const struct search *search, uint32_t *ret_dominators, uint64_t *ret_retained)
{
	const struct heap_graph *graph = search->graph;

	for (uint32_t node = 0; node < graph->node_count; node++) {
		ret_dominators[node] = HEAP_NO_NODE;
		ret_retained[node] = graph->nodes[node].bytes;
	}
	for (uint32_t number = search->count; number-- > 1;) {
		uint32_t node = search->nodes[number], by = search->nodes[search->dominators[number]];

		ret_dominators[node] = by;
		ret_retained[by] += ret_retained[node];
	}
}

int heap_dominators_find(const struct heap_graph *graph, uint32_t reached, uint32_t *ret_dominators,
			 uint64_t *ret_retained)
{
	struct search search = { .graph = graph, .count = reached };
	int error = allocate(&search) ? 0 : -ENOMEM;

	if (!error) {
		number_nodes(&search);
		error = turn_edges(&search);
	}
	if (!error) {
		find(&search);
		give(&search, ret_dominators, ret_retained);
	}
	clear(&search);
	return error;
}
