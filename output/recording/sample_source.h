/* SPDX-License-Identifier: MIT */
/*
 * sample_source: samples in time order, as often as they are wanted.
 *
 * A recording is one, and so is a filter in front of another source. Formats
 * read samples from here and need not know where they come from.
 */
#ifndef LJSPY_SAMPLE_SOURCE_H
#define LJSPY_SAMPLE_SOURCE_H

#include "output/sample/sample.h"

struct sample_source {
	/*
	 * 1 and the next sample, 0 after the last one, or a negative errno.
	 * Frames live until the next call; functions and strings as long as
	 * the source.
	 */
	int (*next)(struct sample_source *source, struct sample *ret_sample);
	/* Begin again with the first sample. 0 or a negative errno. */
	int (*rewind)(struct sample_source *source);
};

/* 0 to go on, or a negative errno. */
typedef int sample_take(void *context, const struct sample *sample);

/* All samples, from the first on. 0, or a negative errno: the source's or what take returned. */
int sample_source_each(struct sample_source *source, sample_take *take, void *context);

#endif
