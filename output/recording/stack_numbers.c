/* SPDX-License-Identifier: MIT */
#include "output/recording/stack_numbers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "memory/scatter.h"

enum { SLOTS_AT_FIRST = 1 << 10 };

/* The slot that holds the key, or the free one that would. There is always a free slot. */
static size_t find_slot(const struct stack_numbers *numbers, const struct stack_key *key)
{
	uint64_t hash = scatter((uint64_t)key->caller << 32 | key->function);
	size_t slot;

	hash = scatter(hash ^ ((uint64_t)key->certainty << 32 | key->line));
	slot = hash % numbers->slot_count;
	while (numbers->slots[slot] &&
	       memcmp(&numbers->keys[numbers->slots[slot] - 1], key, sizeof(*key)) != 0)
		slot = (slot + 1) % numbers->slot_count;
	return slot;
}

/* Half of the slots at most are taken. */
static int make_slots(struct stack_numbers *numbers)
{
	size_t count = numbers->slot_count ? 2 * numbers->slot_count : SLOTS_AT_FIRST;
	uint32_t *slots;

	if (2 * ((size_t)numbers->count + 1) <= numbers->slot_count)
		return 0;
	slots = calloc(count, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(numbers->slots);
	numbers->slots = slots;
	numbers->slot_count = count;
	for (uint32_t i = 0; i < numbers->count; i++)
		slots[find_slot(numbers, &numbers->keys[i])] = i + 1;
	return 0;
}

uint32_t stack_numbers_find(const struct stack_numbers *numbers, const struct stack_key *key)
{
	return numbers->slot_count ? numbers->slots[find_slot(numbers, key)] : 0;
}

int stack_numbers_add(struct stack_numbers *numbers, const struct stack_key *key)
{
	struct stack_key *keys;
	int error = make_slots(numbers);

	if (error)
		return error;
	keys = array_grow(numbers->keys, &numbers->size, (size_t)numbers->count + 1, sizeof(*keys));
	if (!keys)
		return -ENOMEM;
	numbers->keys = keys;
	keys[numbers->count] = *key;
	numbers->slots[find_slot(numbers, key)] = numbers->count + 1;
	numbers->count++;
	return 0;
}

void stack_numbers_clear(struct stack_numbers *numbers)
{
	free(numbers->keys);
	free(numbers->slots);
	*numbers = (struct stack_numbers){ 0 };
}
