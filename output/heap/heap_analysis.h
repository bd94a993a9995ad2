/* SPDX-License-Identifier: MIT */
/*
 * heap_analysis: who holds each object of a heap, and what would go with it.
 *
 * Each object reached from the root has one holder: the node before it on its best path. The best
 * path has the lowest sum of prices (see heap_analysis.c): few edges, by names of the source rather
 * than by internals of the VM. Weak edges are not followed.
 *
 * An object's dominator is the last node before it that all paths from the root lead through, and
 * what it retains is itself and all that it dominates: what could be freed if nothing held it.
 *
 * Takes time linear in nodes and edges, but for a factor that grows with their logarithm at most,
 * and no native stack.
 */
#ifndef LJSPY_HEAP_ANALYSIS_H
#define LJSPY_HEAP_ANALYSIS_H

#include <stdint.h>

#include "output/heap/heap_graph.h"

/* One of each for a node of the graph. A node that is not reached has no holder and no dominator. */
struct heap_analysis {
	uint32_t *edges;      /* by which its holder holds it; HEAP_NO_EDGE for the root and if not reached */
	uint32_t *holders;    /* HEAP_NO_NODE as above */
	uint32_t *dominators; /* HEAP_NO_NODE as above */
	uint64_t *retained;   /* bytes, of the node itself too; its own if not reached */
	/* The reached nodes, each after its holder and its dominator; the root is the first. */
	uint32_t *order;
	uint32_t reached;
};

/* 0 or -ENOMEM. */
int heap_analysis_make(const struct heap_graph *graph, struct heap_analysis *ret_analysis);
void heap_analysis_clear(struct heap_analysis *analysis); /* one that is all zero is allowed */

static inline bool heap_is_reached(const struct heap_analysis *analysis, uint32_t node)
{
	return node == HEAP_ROOT || analysis->holders[node] != HEAP_NO_NODE;
}

#endif
