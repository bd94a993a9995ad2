/* SPDX-License-Identifier: MIT */
#include "output/heap_views/text_pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "memory/scatter.h"

enum { SLOTS_AT_FIRST = 1 << 10 };

static size_t hash_of(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * 0x100000001b3;
	return scatter(hash);
}

/* Where a text is, or a free slot. */
static uint32_t *find_slot(const struct text_pool *pool, const char *text)
{
	size_t at = hash_of(text) & (pool->slot_count - 1);

	while (pool->slots[at] && strcmp(pool->bytes + pool->slots[at], text) != 0)
		at = (at + 1) & (pool->slot_count - 1);
	return &pool->slots[at];
}

static int make_slots(struct text_pool *pool)
{
	struct text_pool larger = *pool;

	larger.slot_count = pool->slot_count ? 2 * pool->slot_count : SLOTS_AT_FIRST;
	larger.slots = calloc(larger.slot_count, sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < pool->slot_count; i++)
		if (pool->slots[i])
			*find_slot(&larger, pool->bytes + pool->slots[i]) = pool->slots[i];
	free(pool->slots);
	*pool = larger;
	return 0;
}

static int append(struct text_pool *pool, const char *text)
{
	size_t length = strlen(text) + 1;

	if (length > UINT32_MAX - pool->length)
		return -EOVERFLOW;
	if (pool->length + length > pool->size) {
		char *bytes = array_grow(pool->bytes, &pool->size, pool->length + length, 1);

		if (!bytes)
			return -ENOMEM;
		pool->bytes = bytes;
	}
	memcpy(pool->bytes + pool->length, text, length);
	pool->length += length;
	return 0;
}

int text_pool_init(struct text_pool *pool)
{
	int error;

	*pool = (struct text_pool){ 0 };
	error = append(pool, "");
	if (!error)
		error = make_slots(pool);
	if (error)
		text_pool_clear(pool);
	return error;
}

void text_pool_clear(struct text_pool *pool)
{
	free(pool->bytes);
	free(pool->slots);
	*pool = (struct text_pool){ 0 };
}

int text_pool_add(struct text_pool *pool, const char *text, uint32_t *ret_number)
{
	uint32_t number = 0, *slot;
	int error = 0;

	if (!*text) {
		*ret_number = 0;
		return 0;
	}
	if (pool->used + 1 > pool->slot_count / 2)
		error = make_slots(pool);
	if (error)
		return error;
	slot = find_slot(pool, text);
	if (!*slot) {
		number = (uint32_t)pool->length;
		error = append(pool, text);
		if (error)
			return error;
		*slot = number;
		pool->used++;
	}
	*ret_number = *slot;
	return 0;
}

char *text_pool_take(struct text_pool *pool, uint32_t *ret_length)
{
	char *bytes = pool->bytes;

	*ret_length = (uint32_t)pool->length;
	pool->bytes = NULL;
	text_pool_clear(pool);
	return bytes;
}
