/* SPDX-License-Identifier: MIT */
#include "output/views/large_frames.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Two profiles with their lines merged, and where a walk is in both. */
struct merged {
	struct profile *profiles[2]; /* the second may be NULL */
	struct place {
		const struct profile_node *nodes[2]; /* NULL where the other profile lacks the frame */
	} * path;                                    /* by depth */
};

static int merge(const struct profile *profile, struct profile **ret_merged)
{
	*ret_merged = profile_new(&(struct profile_options){ .weight = profile_options(profile)->weight });
	return *ret_merged ? profile_add_profile(*ret_merged, profile) : -ENOMEM;
}

/* A nanosecond more than it has: limits are in whole ones, rounded down. */
static double share_of(const struct profile *profile, const struct profile_node *node)
{
	const uint64_t all_ns = profile ? profile_root(profile)->total_ns : 0;

	return node && all_ns ? ((double)node->total_ns + 1) / (double)all_ns : 0;
}

/* The share of a node whose caller is on the path, which the node joins. */
static double follow(const struct merged *merged, const struct profile_node *node)
{
	double share = 0;

	for (size_t i = 0; i < 2; i++) {
		const struct profile *profile = merged->profiles[i];
		const struct profile_node *caller = merged->path[node->depth - 1].nodes[i],
					  *found = caller ? profile_find_child(profile, caller, node) : NULL;

		merged->path[node->depth].nodes[i] = found;
		share = fmax(share, share_of(profile, found));
	}
	return node->total_ns ? share : 0;
}

/* The share of each node, in the order of the tree. NULL when memory is short. */
static double *measure(struct merged *merged, const struct profile *profile)
{
	const struct profile_node *node = profile_root(profile);
	double *shares = calloc(profile_node_count(profile) + 1, sizeof(*shares));
	size_t count = 0;

	merged->path = calloc(profile_depth(profile) + 1, sizeof(*merged->path));
	if (shares && merged->path) {
		for (size_t i = 0; i < 2; i++)
			if (merged->profiles[i])
				merged->path[0].nodes[i] = profile_root(merged->profiles[i]);
		shares[count++] = INFINITY;
		while ((node = profile_node_next(node)))
			shares[count++] = follow(merged, node);
	} else {
		free(shares);
		shares = NULL;
	}
	free(merged->path);
	return shares;
}

static bool is_large(double share, double least)
{
	return share > least;
}

static size_t count_large(const struct profile *profile, const double *shares, double least)
{
	size_t count = 0;

	for (size_t i = 0; profile && i <= profile_node_count(profile); i++)
		count += is_large(shares[i], least);
	return count;
}

/* Where a frame is not listed, nor are its callees: none of them has more of the weight. */
static int fill(const struct profile *profile, const double *shares, double least, struct frame_list *list)
{
	size_t count = count_large(profile, shares, least), *at_depth, i = 0;

	if (!profile)
		return 0;
	list->profile = profile;
	list->left_out = profile_node_count(profile) + 1 - count;
	list->nodes = calloc(count + 1, sizeof(const struct profile_node *));
	list->left_out_ns = calloc(count + 1, sizeof(*list->left_out_ns));
	at_depth = calloc(profile_depth(profile) + 1, sizeof(*at_depth));
	if (!list->nodes || !list->left_out_ns || !at_depth) {
		free(at_depth);
		return -ENOMEM;
	}
	for (const struct profile_node *node = profile_root(profile); node; node = profile_node_next(node)) {
		if (is_large(shares[i++], least)) {
			at_depth[node->depth] = list->count;
			list->nodes[list->count++] = node;
		} else if (list->nodes[at_depth[node->depth - 1]] == node->parent) {
			list->left_out_ns[at_depth[node->depth - 1]] += node->total_ns;
		}
	}
	free(at_depth);
	return 0;
}

int large_frames_find(const struct profile *profile, const struct profile *other, double share, size_t max,
		      struct large_frames *ret_large)
{
	struct merged merged = { .path = NULL };
	double *shares = NULL, *other_shares = NULL;
	int error = merge(profile, &merged.profiles[0]);

	*ret_large = (struct large_frames){ .share = share };
	if (!error && other)
		error = merge(other, &merged.profiles[1]);
	if (!error) {
		shares = measure(&merged, profile);
		other_shares = other ? measure(&merged, other) : NULL;
		error = shares && (other_shares || !other) ? 0 : -ENOMEM;
	}
	if (!error) {
		while (count_large(profile, shares, ret_large->share) > max ||
		       count_large(other, other_shares, ret_large->share) > max)
			ret_large->share *= 2;
		error = fill(profile, shares, ret_large->share, &ret_large->list);
	}
	if (!error)
		error = fill(other, other_shares, ret_large->share, &ret_large->other);
	free(shares);
	free(other_shares);
	profile_free(merged.profiles[0]);
	profile_free(merged.profiles[1]);
	return error;
}

static void clear(struct frame_list *list)
{
	free(list->nodes);
	free(list->left_out_ns);
	*list = (struct frame_list){ .profile = NULL };
}

void large_frames_clear(struct large_frames *large)
{
	clear(&large->list);
	clear(&large->other);
}
