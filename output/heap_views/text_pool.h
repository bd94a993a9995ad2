/* SPDX-License-Identifier: MIT */
/*
 * text_pool: texts one after the other in one piece of memory, each once.
 *
 * A text's number is where it begins; "" has 0.
 */
#ifndef LJSPY_TEXT_POOL_H
#define LJSPY_TEXT_POOL_H

#include <stddef.h>
#include <stdint.h>

struct text_pool {
	char *bytes;
	size_t length, size;
	uint32_t *slots; /* an open hash table of numbers, 0 where a slot is free */
	size_t slot_count, used;
};

/* 0 or -ENOMEM. */
int text_pool_init(struct text_pool *pool);
void text_pool_clear(struct text_pool *pool); /* one that is all zero is allowed */

/* 0, -ENOMEM, or -EOVERFLOW when all texts would have 4 GiB or more. */
int text_pool_add(struct text_pool *pool, const char *text, uint32_t *ret_number);

/* Hand over the bytes, to be freed with free(); the pool is then all zero. */
char *text_pool_take(struct text_pool *pool, uint32_t *ret_length);

#endif
