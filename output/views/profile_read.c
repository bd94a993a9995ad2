/* SPDX-License-Identifier: MIT */
#include "output/views/profile_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/recording/stack_cache.h"

struct reading {
	struct profile *profile;
	bool weightless;
	profile_read_take *take; /* NULL for profile_read() */
	void *context;
	struct stack_cache stacks;
	struct pile {
		struct profile_sum sum; /* not yet in the profile */
		const struct profile_node *leaf;
	} * piles; /* one for each place of the cache */
};

static struct profile_sum sum_of(const struct reading *reading, const struct sample *sample)
{
	struct profile_sum sum = { .samples = 1 };

	if (!reading->weightless)
		sum.ns = weight_of(profile_options(reading->profile)->weight, sample);
	sum.state_ns[sample->vm_state] = sum.ns;
	return sum;
}

/* Add the pile of a place to the profile. 0 or -ENOMEM. */
static int count_node(struct reading *reading, size_t place)
{
	const struct cached_stack *stack = &reading->stacks.places[place];
	struct pile *pile = &reading->piles[place];
	int error;

	if (pile->sum.samples == 0)
		return 0;
	error = profile_add_sum(reading->profile, stack->frames, stack->frame_count, &pile->sum, &pile->leaf);
	pile->sum = (struct profile_sum){ 0 };
	return error;
}

static int add_to_profile(struct reading *reading, const struct sample *sample,
			  const struct profile_node **ret_leaf)
{
	struct profile_sum sum = sum_of(reading, sample);
	struct cached_stack *stack;
	struct pile *pile;
	size_t place;
	int error;

	if (sample->stack == 0)
		return profile_add_sum(reading->profile, sample->frames, sample->frame_count, &sum, ret_leaf);
	place = stack_cache_place(&reading->stacks, sample->stack);
	stack = &reading->stacks.places[place];
	pile = &reading->piles[place];
	if (stack->number == sample->stack) {
		pile->sum.ns += sum.ns;
		pile->sum.samples++;
		pile->sum.state_ns[sample->vm_state] += sum.ns;
		*ret_leaf = pile->leaf;
		return 0;
	}
	/* Add the first sample of a stack at once, because children are in the order of appearance. */
	error = profile_add_sum(reading->profile, sample->frames, sample->frame_count, &sum, ret_leaf);
	if (!error)
		error = count_node(reading, place);
	if (error)
		return error;
	pile->leaf = *ret_leaf;
	if (stack_cache_take(&reading->stacks, place, sample->stack, sample->frame_count) &&
	    sample->frame_count)
		memcpy(stack->frames, sample->frames, sample->frame_count * sizeof(*stack->frames));
	return 0;
}

static int add_sample(void *context, const struct sample *sample)
{
	struct reading *reading = context;
	const struct profile_node *leaf;
	int error = add_to_profile(reading, sample, &leaf);

	return !error && reading->take ? reading->take(reading->context, sample, leaf) : error;
}

static int read_all(struct reading *reading, struct sample_source *source)
{
	int error = stack_cache_init(&reading->stacks);

	reading->piles = calloc(STACK_CACHE_PLACES, sizeof(*reading->piles));
	if (!reading->piles)
		error = -ENOMEM;
	if (!error)
		error = sample_source_each(source, add_sample, reading);
	for (size_t place = 0; !error && place < reading->stacks.place_count; place++)
		error = count_node(reading, place);
	stack_cache_clear(&reading->stacks);
	free(reading->piles);
	return error;
}

int profile_read(struct profile *profile, struct sample_source *source, bool weightless)
{
	return read_all(&(struct reading){ .profile = profile, .weightless = weightless }, source);
}

int profile_read_each(struct profile *profile, struct sample_source *source, profile_read_take *take,
		      void *context)
{
	return read_all(&(struct reading){ .profile = profile, .take = take, .context = context }, source);
}
