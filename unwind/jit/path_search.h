/* SPDX-License-Identifier: MIT */
/*
 * path_search: find the paths from one of a trace's snapshots to the next.
 *
 * Nothing records the bytecodes that a trace runs through between two snapshots.
 * The search tries all paths, cheapest first, as long as visits are left: their number can grow as a power of
 * that of the branches. A cost of which not all ways were tried has no candidates.
 */
#ifndef LJSPY_PATH_SEARCH_H
#define LJSPY_PATH_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/jit/path_steps.h"

enum { PATH_CANDIDATES_MAX = 32 };

/* The start of a search: a point, or a branch with one known target. */
struct path_start {
	struct path_point point;
	bool at_branch;
	uint64_t not_taken;
};

struct path_candidate {
	struct path_way way;
	bool at_branch; /* ends at a branch; the goal is its other target */
	unsigned cost;
};

/*
 * Search for paths, by rising cost. ret_candidates has room for PATH_CANDIDATES_MAX.
 * Return how many there are, 0 if the gap has no goal.
 */
size_t path_search(const struct path_context *context, const struct path_gap *gap,
		   const struct path_start *start, struct path_candidate *ret_candidates);

#endif
