/* SPDX-License-Identifier: MIT */
#include "output/recording/stack_cache.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "memory/scatter.h"

enum {
	NEAR = 8, /* possible slots of a number */
	SLOTS = STACK_CACHE_PLACES,
};

static_assert(STACK_CACHE_PLACES <= UINT16_MAX, "a slot holds the number of any place");

int stack_cache_init(struct stack_cache *cache)
{
	*cache = (struct stack_cache){
		.places = calloc(STACK_CACHE_PLACES, sizeof(*cache->places)),
		.slots = calloc(SLOTS, sizeof(*cache->slots)),
	};
	return cache->places && cache->slots ? 0 : -ENOMEM;
}

void stack_cache_forget(struct stack_cache *cache)
{
	for (size_t i = 0; i < cache->place_count; i++) {
		free(cache->places[i].frames);
		cache->places[i] = (struct cached_stack){ 0 };
	}
	if (cache->place_count)
		memset(cache->slots, 0, SLOTS * sizeof(*cache->slots));
	cache->place_count = 0;
	cache->frame_count = 0;
}

void stack_cache_clear(struct stack_cache *cache)
{
	stack_cache_forget(cache);
	free(cache->places);
	free(cache->slots);
	*cache = (struct stack_cache){ 0 };
}

/* The place of a slot, which keeps it. There are as many places as slots. */
static size_t place_of(struct stack_cache *cache, size_t slot)
{
	if (!cache->slots[slot])
		cache->slots[slot] = (uint16_t)++cache->place_count;
	return cache->slots[slot] - 1u;
}

size_t stack_cache_place(struct stack_cache *cache, uint64_t number)
{
	size_t first = scatter(number) % SLOTS, empty = SLOTS;

	for (size_t i = 0; i < NEAR; i++) {
		size_t slot = (first + i) % SLOTS, place = cache->slots[slot];

		if (place && cache->places[place - 1].number == number)
			return place - 1;
		if (empty == SLOTS && (!place || cache->places[place - 1].number == 0))
			empty = slot;
	}
	return place_of(cache, empty < SLOTS ? empty : first);
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
