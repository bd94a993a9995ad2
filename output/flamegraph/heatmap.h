/* SPDX-License-Identifier: MIT */
/*
 * heatmap: the times of the samples of a flame graph.
 *
 * With it, the picture has a map of time above the frames: seconds from left
 * to right, fractions of a second from the bottom up. The frames show the time
 * range that the user selects there.
 *
 * The data is a <metadata id="heat">. Its first line is the time of the map:
 *
 *	since_us until_us
 *
 * One line for each sample follows, in time order:
 *
 *	delta_us frame state weight_ns
 *
 * Times count from the beginning of the session. delta_us is the time since
 * the previous sample; for the first, since 0. frame is an index in the flame
 * graph's list of frames; after a "-", the sample ends in a callee of that
 * frame which is too small to be listed. state is a letter (look.h).
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
 * Read a source to its end, and add its samples to profile, which must outlive
 * the heat map and get no other samples. The heat map takes 24 bytes a sample.
 * 0, -ENOMEM or the source's error.
 */
int heatmap_read(struct sample_source *source, struct profile *profile, const struct session *session,
		 const struct time_span *span, struct heatmap **ret_heatmap);
void heatmap_free(struct heatmap *heatmap);

/* Write the data. listed are the frames in the order of the file, the root first. 0 or -ENOMEM. */
int heatmap_write(FILE *out, const struct heatmap *heatmap, const struct profile_node *const *listed,
		  size_t listed_count);

#endif
