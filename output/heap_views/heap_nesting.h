/* SPDX-License-Identifier: MIT */
/*
 * heap_nesting: objects that others of their group hold alone.
 *
 * What an object retains is a part of what its dominator retains. A sum over a group may add it only if none
 * of the object's dominators is in the group, too.
 */
#ifndef LJSPY_HEAP_NESTING_H
#define LJSPY_HEAP_NESTING_H

#include <stdbool.h>
#include <stdint.h>

#include "output/heap/heap_analysis.h"
#include "output/heap/heap_graph.h"

/*
 * Find out which nodes are dominated by another node of their group. groups has the group of each of the
 * graph's nodes, group_count at most; 0: it is in none. *ret_nested is an array by node, which the caller
 * frees. Takes time linear in nodes, and no native stack. 0 or -ENOMEM.
 */
int heap_nesting_find(const struct heap_graph *graph, const struct heap_analysis *analysis,
		      const uint32_t *groups, uint32_t group_count, bool **ret_nested);

#endif
