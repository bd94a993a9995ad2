/* SPDX-License-Identifier: MIT */
/*
 * profile_read: all samples of a source merged into one tree.
 *
 * The samples of a stack that comes again and again are added to the tree
 * together: finding its nodes is what takes time.
 */
#ifndef LJSPY_PROFILE_READ_H
#define LJSPY_PROFILE_READ_H

#include "output/recording/sample_source.h"
#include "output/views/profile.h"

/*
 * Add all samples of a source to a profile, weighing nothing if that is said:
 * so two profiles can have the same nodes in the same order. 0, -ENOMEM or
 * what the source had; then a part of them was added.
 */
int profile_read(struct profile *profile, struct sample_source *source, bool weightless);

/* 0 to go on, or a negative errno. Leaf is where the sample's stack ends, a node that lives as long as the profile. */
typedef int profile_read_take(void *context, const struct sample *sample, const struct profile_node *leaf);

/* The same with weights, and take is told of each sample. */
int profile_read_each(struct profile *profile, struct sample_source *source, profile_read_take *take,
		      void *context);

#endif
