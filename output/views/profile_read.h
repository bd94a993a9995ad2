/* SPDX-License-Identifier: MIT */
/*
 * profile_read: merge all samples of a source into one tree.
 *
 * Samples of a repeated stack are added together, because finding the nodes of
 * a stack takes most of the time.
 */
#ifndef LJSPY_PROFILE_READ_H
#define LJSPY_PROFILE_READ_H

#include "output/recording/sample_source.h"
#include "output/views/profile.h"

/*
 * Add all samples of a source to a profile. If weightless, they weigh 0: this
 * gives two profiles the same nodes in the same order. 0, -ENOMEM or the
 * source's error: then only a part was added.
 */
int profile_read(struct profile *profile, struct sample_source *source, bool weightless);

/* leaf, where the sample's stack ends, lives as long as the profile. 0 to continue, or a negative errno. */
typedef int profile_read_take(void *context, const struct sample *sample, const struct profile_node *leaf);

/* The same with weights. Calls take for each sample. */
int profile_read_each(struct profile *profile, struct sample_source *source, profile_read_take *take,
		      void *context);

#endif
