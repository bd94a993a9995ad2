/* SPDX-License-Identifier: MIT */
/*
 * heatmap: when the samples of a flame graph were taken.
 *
 * With it, the picture has a map of time above the frames: seconds from left
 * to right, fractions of a second from the bottom up. What is chosen there is
 * what the frames then show.
 *
 * The data is a <metadata id="heat">. Its first line is
 *
 *	since_us until_us
 *
 * the time that the map is of. Then there is one line a sample, in time order:
 *
 *	delta_us frame state weight_ns
 *
 * delta_us is the time since the sample before (since 0 for the first); all
 * times begin with the session. frame is an index in the flame graph's list
 * of frames; with a "-" before it, the sample ends in a frame on this one that
 * was too small to be listed. The state is a letter (look.h).
 */
#ifndef LJSPY_HEATMAP_H
#define LJSPY_HEATMAP_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "output/recording/sample_source.h"
#include "output/sample/session.h"
#include "output/views/profile.h"
#include "output/views/view.h"

struct heatmap;

/*
 * Read a source to its end, into a profile as well, which must outlive the
 * heat map and get no other samples. It takes 24 bytes a sample. 0, -ENOMEM
 * or what the source had.
 */
int heatmap_read(struct sample_source *source, struct profile *profile, const struct session *session,
		 const struct time_span *span, struct heatmap **ret_heatmap);
void heatmap_free(struct heatmap *heatmap);

/* With the listed frames in the order of the file, the root first. 0 or -ENOMEM. */
int heatmap_write(FILE *out, const struct heatmap *heatmap, const struct profile_node *const *listed,
		  size_t listed_count);

#endif
