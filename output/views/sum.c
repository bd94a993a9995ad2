/* SPDX-License-Identifier: MIT */
#include "output/views/sum.h"

#include <stdbool.h>
#include <stdlib.h>

struct part {
	struct sum_part given;
	struct sample next; /* with shifted time */
	bool waiting;       /* next has not been read yet */
	bool ended;
};

struct sum {
	struct sample_source source; /* first: the source and the sum are one address */
	struct part *parts;
	size_t count;
};

/* Read the next sample of a part, if it is waiting. 0 or a negative errno. */
static int read_next(struct part *part)
{
	int result;

	if (!part->waiting || part->ended)
		return 0;
	result = part->given.source->next(part->given.source, &part->next);
	if (result < 0)
		return result;
	part->waiting = false;
	part->ended = result == 0;
	part->next.time_ns += part->given.shift_ns;
	return 0;
}

/* Read on only in the source of the last sample returned: a source's frames live until its next call. */
static int next_sample(struct sample_source *source, struct sample *ret_sample)
{
	struct sum *sum = (struct sum *)source;
	struct part *first = NULL;

	for (size_t i = 0; i < sum->count; i++) {
		struct part *part = &sum->parts[i];
		int error = read_next(part);

		if (error)
			return error;
		if (!part->ended && (!first || part->next.time_ns < first->next.time_ns))
			first = part;
	}
	if (!first)
		return 0;
	*ret_sample = first->next;
	if (ret_sample->stack)
		ret_sample->stack = ret_sample->stack * sum->count + (size_t)(first - sum->parts);
	first->waiting = true;
	return 1;
}

static int rewind_samples(struct sample_source *source)
{
	struct sum *sum = (struct sum *)source;

	for (size_t i = 0; i < sum->count; i++) {
		struct part *part = &sum->parts[i];
		int error = part->given.source->rewind(part->given.source);

		if (error)
			return error;
		part->waiting = true;
		part->ended = false;
	}
	return 0;
}

struct sum *sum_new(const struct sum_part *parts, size_t count)
{
	struct sum *sum = calloc(1, sizeof(*sum));

	if (!sum)
		return NULL;
	sum->source.next = next_sample;
	sum->source.rewind = rewind_samples;
	sum->count = count;
	sum->parts = calloc(count, sizeof(*sum->parts));
	if (!sum->parts) {
		free(sum);
		return NULL;
	}
	for (size_t i = 0; i < count; i++)
		sum->parts[i] = (struct part){ .given = parts[i], .waiting = true };
	return sum;
}

void sum_free(struct sum *sum)
{
	if (!sum)
		return;
	free(sum->parts);
	free(sum);
}

struct sample_source *sum_samples(struct sum *sum)
{
	return &sum->source;
}
