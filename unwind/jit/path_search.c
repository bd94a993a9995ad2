/* SPDX-License-Identifier: MIT */
#include "unwind/jit/path_search.h"

enum {
	COST_MAX = 6,
	VISITS_SHARE = 2, /* one search may use this part of the visits that are left */
};

struct search {
	const struct path_context *context;
	const struct path_gap *gap;
	unsigned visits, visits_max;
	unsigned budget; /* the cost of the candidates to find */
	struct path_way way;
	struct path_candidate *candidates;
	size_t candidate_count;
};

static bool is_goal(const struct search *search, const struct path_point *point, bool *ret_at_branch)
{
	const struct path_goal *goal = &search->gap->goal;
	uint64_t pcs[2];

	if (!goal->any_frame &&
	    !path_frames_are_same(search->context->frames, point->frame, goal->point.frame))
		return false;
	if (point->pc == goal->point.pc) {
		*ret_at_branch = false;
		return true;
	}
	if (goal->any_frame || !path_branch(search->context, point, pcs) ||
	    (pcs[0] != goal->point.pc && pcs[1] != goal->point.pc))
		return false;
	*ret_at_branch = true;
	return true;
}

static bool was_here(const struct search *search, const struct path_point *point)
{
	const struct path_way *way = &search->way;

	for (uint32_t i = 0; i < way->count; i++)
		if (way->points[i].pc == point->pc &&
		    path_frames_are_same(search->context->frames, way->points[i].frame, point->frame))
			return true;
	return false;
}

/* The number of unused checks of Lua functions, without those of builtins. */
static unsigned unused_checks(const struct search *search)
{
	unsigned count = 0;

	for (uint32_t i = search->way.checks; i < search->gap->end_check; i++)
		count += search->context->calls->checks[i].callee != NULL;
	return count;
}

static void keep_way(struct search *search, const struct path_point *goal, bool at_branch)
{
	struct path_candidate *found = &search->candidates[search->candidate_count++];

	found->way = search->way;
	found->at_branch = at_branch;
	found->cost = search->budget;
	if (at_branch || search->gap->goal.is_end)
		found->way.points[found->way.count++] = *goal;
}

/* PATH_LENGTH_MAX bounds the depth. NOLINTNEXTLINE(misc-no-recursion) */
static void go_on(struct search *search, const struct path_point *point, unsigned budget, bool is_first)
{
	const uint32_t checks = search->way.checks;
	struct path_steps steps;
	bool at_branch;

	if (search->visits == search->visits_max || search->candidate_count == PATH_CANDIDATES_MAX ||
	    search->way.count == PATH_LENGTH_MAX)
		return;
	search->visits++;
	if (!is_first && is_goal(search, point, &at_branch)) {
		/* A smaller budget has already found the cheaper ways. */
		if (budget == unused_checks(search) * COST_UNUSED_CHECK)
			keep_way(search, point, at_branch);
		return;
	}
	if (was_here(search, point))
		return;
	search->way.points[search->way.count++] = *point;
	path_steps_find(search->context, search->gap, &search->way, &steps);
	for (size_t i = 0; i < steps.count; i++) {
		if (steps.step[i].cost > budget)
			continue;
		if (steps.step[i].checks)
			search->way.checks = steps.step[i].checks;
		go_on(search, &steps.step[i].point, budget - steps.step[i].cost, false);
		search->way.checks = checks;
	}
	search->way.count--;
}

/* Go on from a branch, along each target that the trace may have taken. */
static void leave_branch(struct search *search, const struct path_start *start, const uint64_t pcs[static 2])
{
	search->way.points[search->way.count++] = start->point;
	for (unsigned i = 0; i < 2; i++)
		if (pcs[i] != start->not_taken || pcs[0] == pcs[1]) {
			struct path_point next = { .frame = start->point.frame, .pc = pcs[i] };

			go_on(search, &next, search->budget, false);
		}
}

size_t path_search(const struct path_context *context, const struct path_gap *gap,
		   const struct path_start *start, struct path_candidate *ret_candidates)
{
	struct search search = {
		.context = context,
		.gap = gap,
		.visits_max = *context->visits_left / VISITS_SHARE,
		.candidates = ret_candidates,
	};
	size_t known = 0; /* candidates of the costs of which all ways were tried */
	bool from_branch, at_branch;
	uint64_t pcs[2];

	if (!gap->goal.exists)
		return 0;
	from_branch = start->at_branch && path_branch(context, &start->point, pcs);
	/* The next snapshot may belong to a branch at this very point. */
	if (!from_branch && is_goal(&search, &start->point, &at_branch) && at_branch) {
		keep_way(&search, &start->point, true);
		return search.candidate_count;
	}
	for (; search.budget <= COST_MAX && search.candidate_count < PATH_CANDIDATES_MAX &&
	       search.visits < search.visits_max;
	     search.budget++) {
		search.way.count = 0;
		search.way.checks = gap->first_check;
		if (from_branch)
			leave_branch(&search, start, pcs);
		else
			go_on(&search, &start->point, search.budget, true);
		if (search.visits < search.visits_max)
			known = search.candidate_count;
	}
	*context->visits_left -= search.visits;
	return known;
}
