/* SPDX-License-Identifier: MIT */
/*
 * range_bytes: reads of a target's memory, all of which a test has as bytes.
 */
#ifndef LJSPY_RANGE_BYTES_H
#define LJSPY_RANGE_BYTES_H

#include <stdint.h>
#include <string.h>

#include "memory/memory.h"

/* Read from bytes, which lie at an address; what is not among them is not mapped. */
static inline void range_bytes(struct memory_range *ranges, size_t count, uint64_t address, const void *bytes,
			       size_t size)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t offset = ranges[i].address - address;

		ranges[i].status = MEMORY_UNMAPPED;
		if (offset > size || ranges[i].length > size - offset)
			continue;
		memcpy(ranges[i].copy, (const uint8_t *)bytes + offset, ranges[i].length);
		ranges[i].status = MEMORY_OK;
	}
}

#endif
