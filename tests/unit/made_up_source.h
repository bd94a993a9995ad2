/* SPDX-License-Identifier: MIT */
/*
 * made_up_source: a source of samples that a test lists.
 */
#ifndef LJSPY_MADE_UP_SOURCE_H
#define LJSPY_MADE_UP_SOURCE_H

#include "output/recording/sample_source.h"

struct made_up_source {
	struct sample_source source; /* first: what is read */
	const struct sample *samples;
	size_t count, next;
};

static int made_up_next(struct sample_source *source, struct sample *ret_sample)
{
	struct made_up_source *made = (struct made_up_source *)source;

	if (made->next == made->count)
		return 0;
	*ret_sample = made->samples[made->next++];
	return 1;
}

static int made_up_rewind(struct sample_source *source)
{
	((struct made_up_source *)source)->next = 0;
	return 0;
}

static inline struct made_up_source made_up_source(const struct sample *samples, size_t count)
{
	return (struct made_up_source){ .source = { made_up_next, made_up_rewind },
					.samples = samples,
					.count = count };
}

#endif
