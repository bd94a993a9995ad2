/* SPDX-License-Identifier: MIT */
#include "output/heap_views/heap_nesting.h"

#include <errno.h>
#include <stdlib.h>

/*
 * The tree of dominators, of which only the root and the nodes that are in groups are left. By node; 0: none.
 */
struct tree {
	uint32_t *above, *first_below, *next_beside;
};

static int tree_init(struct tree *tree, uint32_t count)
{
	*tree = (struct tree){
		.above = calloc(count, sizeof(*tree->above)),
		.first_below = calloc(count, sizeof(*tree->first_below)),
		.next_beside = calloc(count, sizeof(*tree->next_beside)),
	};
	return tree->above && tree->first_below && tree->next_beside ? 0 : -ENOMEM;
}

static void tree_clear(struct tree *tree)
{
	free(tree->above);
	free(tree->first_below);
	free(tree->next_beside);
}

/* A dominator comes before what it dominates. */
static void grow(struct tree *tree, const struct heap_analysis *analysis, const uint32_t *groups)
{
	for (uint32_t i = 1; i < analysis->reached; i++) {
		uint32_t node = analysis->order[i], dominator = analysis->dominators[node];
		uint32_t above = groups[dominator] ? dominator : tree->above[dominator];

		tree->above[node] = above;
		if (!groups[node])
			continue;
		tree->next_beside[node] = tree->first_below[above];
		tree->first_below[above] = node;
	}
}

/* Walk the tree, with the number of nodes of each group between the root and where the walk is. */
static void walk(struct tree *tree, const uint32_t *groups, uint32_t *entered, bool *nested)
{
	uint32_t at = HEAP_ROOT;

	for (;;) {
		uint32_t below = tree->first_below[at];

		if (below) {
			tree->first_below[at] = tree->next_beside[below];
			nested[below] = entered[groups[below]]++ > 0;
			at = below;
		} else if (at == HEAP_ROOT) {
			return;
		} else {
			entered[groups[at]]--;
			at = tree->above[at];
		}
	}
}

int heap_nesting_find(const struct heap_graph *graph, const struct heap_analysis *analysis,
		      const uint32_t *groups, uint32_t group_count, bool **ret_nested)
{
	uint32_t *entered = calloc((size_t)group_count + 1, sizeof(*entered));
	bool *nested = calloc(graph->node_count, sizeof(*nested));
	struct tree tree;
	int error = tree_init(&tree, graph->node_count);

	if (!entered || !nested)
		error = -ENOMEM;
	if (error) {
		free(nested);
	} else {
		grow(&tree, analysis, groups);
		walk(&tree, groups, entered, nested);
		*ret_nested = nested;
	}
	tree_clear(&tree);
	free(entered);
	return error;
}
