/* SPDX-License-Identifier: MIT */
/*
 * made_up_words: a target's memory of pointers and numbers, some words from BASE on.
 */
#ifndef LJSPY_MADE_UP_WORDS_H
#define LJSPY_MADE_UP_WORDS_H

#include <stdint.h>

#include "memory/memory.h"
#include "tests/unit/range_bytes.h"

enum { WORDS = 512, WORD = 8, BASE = 0x10000 };

struct made_up {
	struct memory memory; /* first: what is read, by read_ranges */
	uint64_t words[WORDS];
};

static void read_ranges(struct memory *memory, struct memory_range *ranges, size_t count)
{
	const struct made_up *made_up = (const void *)memory;

	range_bytes(ranges, count, BASE, made_up->words, sizeof(made_up->words));
}

static inline uint64_t at(size_t word)
{
	return BASE + word * WORD;
}

#endif
