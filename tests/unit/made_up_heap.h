/* SPDX-License-Identifier: MIT */
/*
 * made_up_heap: graphs of heaps for tests, written as a list of nodes and edges.
 */
#ifndef LJSPY_MADE_UP_HEAP_H
#define LJSPY_MADE_UP_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/heap/heap_account.h"
#include "output/heap/heap_graph.h"
#include "output/heap_reports/heap_subject.h"

struct made_up_edge {
	uint32_t from, to;
	enum heap_hold hold;
	const char *text, *detail;
	int32_t number;
	bool weak;
};

struct made_up_node {
	enum heap_kind kind;
	uint64_t bytes;
	const char *text, *module;
	uint32_t slots, used;
	uint8_t flags;
	const char *place; /* a thread's, instead of slots */
};

/* Node i of the graph is nodes[i - 1]; the edges are in any order. To be freed with heap_graph_free(). */
struct heap_graph made_up_heap(const struct made_up_node *nodes, size_t node_count,
			       const struct made_up_edge *edges, size_t edge_count);

/*
 * A random graph of at most this many nodes and edges, of every kind and hold, with some names that are
 * hostile.
 */
struct heap_graph made_up_random_heap(unsigned int seed, uint32_t nodes_max, uint32_t edges_max);

/*
 * A program that leaks: package.loaded["app"] with a cache of this many entries, that many coroutines
 * parked in the registry, and closures of app.lua:12.
 */
struct heap_graph made_up_leak(uint32_t entries, uint32_t coroutines, uint32_t closures);

/* That of a VM that could not be read. */
struct heap_graph made_up_root_alone(void);

/* An account that fits the graph, of a VM of a process 4242. */
struct heap_account made_up_account(const struct heap_graph *graph);

/* With that account. Takes over the graph, and keeps it. To be cleared. */
static inline struct heap_subject made_up_subject(struct heap_graph graph)
{
	struct heap_account account = made_up_account(&graph);
	struct heap_subject subject;

	assert_int_equal(heap_subject_make(&graph, &account, true, &subject), 0);
	return subject;
}

#endif
