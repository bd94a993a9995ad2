/* SPDX-License-Identifier: MIT */
/*
 * stack_numbers: the numbers under which a recording has defined its stacks.
 *
 * A gateway has some thousand stacks, each of tens of frames, and a recording must know all of
 * them. So an entry takes 16 bytes, and 8 to find it.
 */
#ifndef LJSPY_STACK_NUMBERS_H
#define LJSPY_STACK_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

/* A frame and the number of its caller's stack; 0: it has no caller. */
struct stack_key {
	uint32_t caller;
	uint32_t function;
	uint32_t line;
	uint32_t certainty;
};

/* Zeroed memory is an empty table. */
struct stack_numbers {
	struct stack_key *keys; /* that of number 1 first */
	size_t size;            /* of keys, in entries */
	uint32_t count;
	uint32_t *slots; /* numbers by the hash of their key; 0: free */
	size_t slot_count;
};

/* The number of a stack; 0 if it has none. */
uint32_t stack_numbers_find(const struct stack_numbers *numbers, const struct stack_key *key);
/* Number a stack that has no number: count is its number. 0 or -ENOMEM. */
int stack_numbers_add(struct stack_numbers *numbers, const struct stack_key *key);
/* Free all memory: the table is empty. */
void stack_numbers_clear(struct stack_numbers *numbers);

#endif
