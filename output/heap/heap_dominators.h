/* SPDX-License-Identifier: MIT */
/*
 * heap_dominators: the dominators of a graph's nodes, by Lengauer and Tarjan ("A fast algorithm for
 * finding dominators in a flowgraph", 1979), in its simple form.
 */
#ifndef LJSPY_HEAP_DOMINATORS_H
#define LJSPY_HEAP_DOMINATORS_H

#include <stdint.h>

#include "output/heap/heap_graph.h"

/*
 * Write each reached node's dominator to dominators, and what it retains to retained; see
 * heap_analysis.h. Both have room for all nodes; reached is the number of nodes that strong edges
 * lead to from the root, itself included. 0 or -ENOMEM.
 */
int heap_dominators_find(const struct heap_graph *graph, uint32_t reached, uint32_t *ret_dominators,
			 uint64_t *ret_retained);

#endif
