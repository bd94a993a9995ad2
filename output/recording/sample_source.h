/* SPDX-License-Identifier: MIT */
/*
 * sample_source: samples in time order, readable any number of times.
 *
 * A recording is a source, and so is a filter in front of another source.
 * Formats read samples from a source without knowing which it is.
 */
#ifndef LJSPY_SAMPLE_SOURCE_H
#define LJSPY_SAMPLE_SOURCE_H

#include "output/sample/sample.h"

struct sample_source {
	/*
	 * 1 and the next sample, 0 after the last, or a negative errno.
	 * Frames live until the next call; functions and strings live as long
	 * as the source.
	 */
	int (*next)(struct sample_source *source, struct sample *ret_sample);
	/* Restart at the first sample. 0 or a negative errno. */
	int (*rewind)(struct sample_source *source);
};

/* 0 to continue, or a negative errno. */
typedef int sample_take(void *context, const struct sample *sample);

/* Pass all samples to take, from the first on. 0, or a negative errno of the source or of take. */
int sample_source_each(struct sample_source *source, sample_take *take, void *context);

#endif
