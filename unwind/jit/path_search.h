/* SPDX-License-Identifier: MIT */
/*
 * path_search: the ways that lead from one of a trace's snapshots to the next.
 *
 * Between two snapshots a trace leads through some bytecodes that nothing
 * names. All ways are tried, those first against which least speaks.
 */
#ifndef LJSPY_PATH_SEARCH_H
#define LJSPY_PATH_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/jit/path_steps.h"

enum { PATH_CANDIDATES_MAX = 32 };

/* A point, or a branch of which one way is known. */
struct path_start {
	struct path_point point;
	bool at_branch;
	uint64_t not_taken;
};

struct path_candidate {
	struct path_way way;
	bool at_branch;		/* ends at the branch whose other side the goal is */
	unsigned cost;
};

/* By rising cost; how many. There is room for PATH_CANDIDATES_MAX. None if there is no goal. */
size_t path_search(const struct path_context *context, const struct path_gap *gap,
		   const struct path_start *start, struct path_candidate *ret_candidates);

#endif
