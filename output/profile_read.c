#include "output/profile_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/stack_cache.h"

struct reading {
	struct profile *profile;
	bool weightless;
	struct stack_cache stacks;
	struct profile_sum *sums;	/* of each place: what is not in the profile yet */
};

static struct profile_sum sum_of(const struct reading *reading, const struct sample *sample)
{
	struct profile_sum sum = { .samples = 1 };

	if (!reading->weightless)
		sum.ns = profile_weight_ns(profile_options(reading->profile)->weight, sample);
	sum.state_ns[sample->vm_state] = sum.ns;
	return sum;
}

/* Bring what a place has into the profile. 0 or -ENOMEM. */
static int settle(struct reading *reading, size_t place)
{
	const struct cached_stack *stack = &reading->stacks.places[place];
	struct profile_sum *sum = &reading->sums[place];
	int error;

	if (sum->samples == 0)
		return 0;
	error = profile_add_sum(reading->profile, stack->frames, stack->frame_count, sum);
	*sum = (struct profile_sum){ 0 };
	return error;
}

static int add_sample(void *context, const struct sample *sample)
{
	struct reading *reading = context;
	struct profile_sum sum = sum_of(reading, sample);
	struct cached_stack *stack;
	size_t place;
	int error;

	if (sample->stack == 0)
		return profile_add_sum(reading->profile, sample->frames, sample->frame_count, &sum);
	place = stack_cache_place(&reading->stacks, sample->stack);
	stack = &reading->stacks.places[place];
	if (stack->number == sample->stack) {
		reading->sums[place].ns += sum.ns;
		reading->sums[place].samples++;
		reading->sums[place].state_ns[sample->vm_state] += sum.ns;
		return 0;
	}
	/* The first one of a stack is added at once: children are in the order of their appearance. */
	error = profile_add_sum(reading->profile, sample->frames, sample->frame_count, &sum);
	if (!error)
		error = settle(reading, place);
	if (!error && stack_cache_take(&reading->stacks, place, sample->stack, sample->frame_count) &&
	    sample->frame_count)
		memcpy(stack->frames, sample->frames, sample->frame_count * sizeof(*stack->frames));
	return error;
}

int profile_read(struct profile *profile, struct sample_source *source, bool weightless)
{
	struct reading reading = { .profile = profile, .weightless = weightless };
	int error = stack_cache_init(&reading.stacks);

	reading.sums = calloc(STACK_CACHE_PLACES, sizeof(*reading.sums));
	if (!reading.sums)
		error = -ENOMEM;
	if (!error)
		error = sample_source_each(source, add_sample, &reading);
	for (size_t place = 0; !error && place < STACK_CACHE_PLACES; place++)
		error = settle(&reading, place);
	stack_cache_clear(&reading.stacks);
	free(reading.sums);
	return error;
}
