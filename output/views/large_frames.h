/* SPDX-License-Identifier: MIT */
/*
 * large_frames: the frames of a profile that are worth showing, or of two that are compared.
 *
 * A viewer may merge frames that differ by line, so a frame's share is that of its function called by the
 * same functions, at whatever lines. Of two profiles the larger share counts: a frame that grew from almost
 * nothing is in both lists, so that neither is taken for nothing.
 */
#ifndef LJSPY_LARGE_FRAMES_H
#define LJSPY_LARGE_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#include "output/views/profile.h"

struct frame_list {
	const struct profile *profile; /* NULL: the list is empty */
	const struct profile_node *
		*nodes;        /* callers before callees: first the root, which is always listed */
	uint64_t *left_out_ns; /* for each of these, the weight of its callees that are not listed */
	size_t count;
	size_t left_out; /* how many nodes are not listed */
};

struct large_frames {
	double share; /* all frames with so much of all weight are listed, and no others */
	struct frame_list list, other;
};

/*
 * List the frames that have a weight, and at least this share of all weight. The share rises until each
 * list has max frames at most. other may be NULL; neither profile is inverted, and both must outlive the
 * lists. 0, or -ENOMEM. Clear the result in the end, in either case.
 */
int large_frames_find(const struct profile *profile, const struct profile *other, double share, size_t max,
		      struct large_frames *ret_large);
void large_frames_clear(struct large_frames *large);

#endif
