/* SPDX-License-Identifier: MIT */
/*
 * made_up_memory: a page or two of a target's memory, which a test writes byte by byte.
 */
#ifndef LJSPY_MADE_UP_MEMORY_H
#define LJSPY_MADE_UP_MEMORY_H

#include <stdint.h>
#include <string.h>

#include "memory/memory.h"
#include "tests/unit/range_bytes.h"

enum { MADE_UP_AT = 0x10000, MADE_UP_BYTES = 0x4000 };

static struct made_up_memory {
	struct memory memory; /* first: what is read */
	uint8_t bytes[MADE_UP_BYTES];
} made_up_memory;

static void made_up_read(struct memory *memory, struct memory_range *ranges, size_t count)
{
	const struct made_up_memory *made = (const struct made_up_memory *)memory;

	range_bytes(ranges, count, MADE_UP_AT, made->bytes, MADE_UP_BYTES);
}

static inline struct memory *made_up_memory_begin(void)
{
	made_up_memory = (struct made_up_memory){ .memory = { .read_ranges = made_up_read } };
	return &made_up_memory.memory;
}

static inline void put_bytes(uint64_t address, const void *bytes, size_t size)
{
	memcpy(made_up_memory.bytes + (address - MADE_UP_AT), bytes, size);
}

static inline void put(uint64_t address, uint64_t value, size_t size)
{
	put_bytes(address, &value, size);
}

#endif
