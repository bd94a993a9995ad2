/* SPDX-License-Identifier: MIT */
#include "output/views/sum.h"

#include <stdbool.h>
#include <stdlib.h>

struct part {
	struct sum_part given;
	size_t number;      /* among those given */
	uint64_t begin_ns;  /* with shifted time */
	struct sample next; /* the same */
	bool waiting;       /* next has not been read yet */
	bool ended;
};

struct sum {
	struct sample_source source; /* first: the source and the sum are one address */
	struct part *parts;          /* by their beginnings */
	size_t count, first;         /* the parts before first have ended */
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

	while (sum->first < sum->count && sum->parts[sum->first].ended)
		sum->first++;
	for (size_t i = sum->first; i < sum->count; i++) {
		struct part *part = &sum->parts[i];
		int error;

		if (first && first->next.time_ns < part->begin_ns)
			break;
		error = read_next(part);
		if (error)
			return error;
		if (!part->ended && (!first || part->next.time_ns < first->next.time_ns))
			first = part;
	}
	if (!first)
		return 0;
	*ret_sample = first->next;
	if (ret_sample->stack)
		ret_sample->stack = ret_sample->stack * sum->count + first->number;
	first->waiting = true;
	return 1;
}

static int rewind_samples(struct sample_source *source)
{
	struct sum *sum = (struct sum *)source;

	sum->first = 0;
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

static int compare_parts(const void *a, const void *b)
{
	const struct part *one = a, *other = b;

	if (one->begin_ns != other->begin_ns)
		return one->begin_ns < other->begin_ns ? -1 : 1;
	return one->number < other->number ? -1 : one->number > other->number;
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
		sum->parts[i] = (struct part){
			.given = parts[i],
			.number = i,
			.begin_ns = parts[i].begin_ns ? parts[i].begin_ns + parts[i].shift_ns : 0,
			.waiting = true,
		};
	qsort(sum->parts, count, sizeof(*sum->parts), compare_parts);
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
