/* SPDX-License-Identifier: MIT */
/*
 * stack_cache: recent stacks, found by number.
 *
 * Most samples repeat an earlier stack. Each place holds one stack. A number
 * has a few possible slots, each of which names a place; a new stack takes the
 * place of another if all of them are taken.
 * STACK_CACHE_FRAMES bounds the memory; stacks that do not fit are not kept.
 * Users keep their own data on a stack in an array of STACK_CACHE_PLACES. Places
 * are given out from the first on, so few stacks touch few pages of such arrays.
 */
#ifndef LJSPY_STACK_CACHE_H
#define LJSPY_STACK_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/sample/frame.h"

enum {
	STACK_CACHE_PLACES = 1 << 15,
	STACK_CACHE_FRAMES = 1 << 19, /* in all stacks together: 12 MiB */
};

struct cached_stack {
	uint64_t number;      /* 0: the place is empty */
	struct frame *frames; /* leaf first; owned by the cache; NULL if there are none */
	size_t frame_count;
};

/* Zeroed memory is an empty cache without places. */
struct stack_cache {
	struct cached_stack *places;
	size_t place_count; /* given out since all were empty */
	uint16_t *slots;    /* by number: which place, plus one; 0: none yet */
	size_t frame_count; /* in all places */
};

/* Allocate the places. 0 or -ENOMEM. */
int stack_cache_init(struct stack_cache *cache);
/* Empty all places. */
void stack_cache_forget(struct stack_cache *cache);
/* Free all memory. */
void stack_cache_clear(struct stack_cache *cache);

/* The place of the stack with this number (not 0). If the stack is not cached, the place to take for it. */
size_t stack_cache_place(struct stack_cache *cache, uint64_t number);

/*
 * Give a place that stack_cache_place() returned to a new stack. The caller then sets its frame_count frames.
 * False if they do not fit: then the place is empty.
 */
bool stack_cache_take(struct stack_cache *cache, size_t place, uint64_t number, size_t frame_count);

#endif
