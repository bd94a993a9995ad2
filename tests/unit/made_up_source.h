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
	size_t round; /* how many they are */
	size_t count; /* how many to give; after a round they come again, a microsecond later */
	size_t next;
	int end; /* the result after the last one: 0, or an error */
};

static int made_up_next(struct sample_source *source, struct sample *ret_sample)
{
	struct made_up_source *made = (struct made_up_source *)source;

	if (made->next == made->count)
		return made->end;
	*ret_sample = made->samples[made->next % made->round];
	ret_sample->time_ns += made->next++ / made->round * 1000;
	return 1;
}

static int made_up_rewind(struct sample_source *source)
{
	((struct made_up_source *)source)->next = 0;
	return 0;
}

static inline struct made_up_source made_up_source(const struct sample *samples, size_t count)
{
	return (struct made_up_source){
		.source = { made_up_next, made_up_rewind }, .samples = samples, .round = count, .count = count
	};
}

#endif
