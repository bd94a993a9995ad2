/* SPDX-License-Identifier: MIT */
/*
 * stack_cache: stacks that came lately, found by a number.
 *
 * Most samples have a stack that came before. Each place holds one stack, and
 * there are few where that of a number may be: a new stack takes one from
 * another if need be. Memory is bounded by STACK_CACHE_FRAMES; stacks that do
 * not fit are not kept. What is to be remembered of a stack, users keep in an
 * array of STACK_CACHE_PLACES.
 */
#ifndef LJSPY_STACK_CACHE_H
#define LJSPY_STACK_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/sample/frame.h"

enum {
	STACK_CACHE_PLACES = 1 << 15,
	STACK_CACHE_FRAMES = 1 << 19,	/* in all stacks: 12 MiB */
};

struct cached_stack {
	uint64_t number;	/* 0: the place is empty */
	struct frame *frames;	/* leaf first; NULL if there are none */
	size_t frame_count;
};

/* All zero bytes is an empty cache, which has no places yet. */
struct stack_cache {
	struct cached_stack *places;
	size_t frame_count;	/* in all */
};

/* 0 or -ENOMEM. */
int stack_cache_init(struct stack_cache *cache);
/* Empty all places. */
void stack_cache_forget(struct stack_cache *cache);
void stack_cache_clear(struct stack_cache *cache);

/* The place of the stack with this number, which is not 0; if it is nowhere, the place to take for it. */
size_t stack_cache_place(const struct stack_cache *cache, uint64_t number);

/*
 * Give a place to a stack of so many frames, which the caller sets. false
 * if they do not fit: then the place is empty.
 */
bool stack_cache_take(struct stack_cache *cache, size_t place, uint64_t number, size_t frame_count);

#endif
