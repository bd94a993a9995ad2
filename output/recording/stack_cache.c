/* SPDX-License-Identifier: MIT */
#include "output/recording/stack_cache.h"

#include <errno.h>
#include <stdlib.h>

#include "memory/scatter.h"

enum { NEAR = 8 }; /* possible places of a number */

int stack_cache_init(struct stack_cache *cache)
{
	*cache = (struct stack_cache){ .places = calloc(STACK_CACHE_PLACES, sizeof(*cache->places)) };
	return cache->places ? 0 : -ENOMEM;
}

void stack_cache_forget(struct stack_cache *cache)
{
	for (size_t i = 0; cache->places && i < STACK_CACHE_PLACES; i++) {
		free(cache->places[i].frames);
		cache->places[i] = (struct cached_stack){ 0 };
	}
	cache->frame_count = 0;
}

void stack_cache_clear(struct stack_cache *cache)
{
	stack_cache_forget(cache);
	free(cache->places);
	*cache = (struct stack_cache){ 0 };
}

size_t stack_cache_place(const struct stack_cache *cache, uint64_t number)
{
	size_t first = scatter(number) % STACK_CACHE_PLACES, empty = STACK_CACHE_PLACES;

	for (size_t i = 0; i < NEAR; i++) {
		size_t place = (first + i) % STACK_CACHE_PLACES;

		if (cache->places[place].number == number)
			return place;
		if (empty == STACK_CACHE_PLACES && cache->places[place].number == 0)
			empty = place;
	}
	return empty < STACK_CACHE_PLACES ? empty : first;
}

bool stack_cache_take(struct stack_cache *cache, size_t place, uint64_t number, size_t frame_count)
{
	struct cached_stack *stack = &cache->places[place];

	free(stack->frames);
	cache->frame_count -= stack->frame_count;
	*stack = (struct cached_stack){ 0 };
	if (frame_count > STACK_CACHE_FRAMES - cache->frame_count)
		return false;
	if (frame_count) {
		stack->frames = malloc(frame_count * sizeof(*stack->frames));
		if (!stack->frames)
			return false;
	}
	stack->number = number;
	stack->frame_count = frame_count;
	cache->frame_count += frame_count;
	return true;
}
