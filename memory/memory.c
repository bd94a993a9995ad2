/* SPDX-License-Identifier: MIT */
#include "memory/memory.h"

#include <unistd.h>

void memory_read_ranges(struct memory *memory, struct memory_range *ranges, size_t count)
{
	memory->read_ranges(memory, ranges, count);
}

enum memory_status memory_read(struct memory *memory, uint64_t address, void *copy, size_t length)
{
	struct memory_range range = { .address = address, .copy = copy, .length = length };

	memory->read_ranges(memory, &range, 1);
	return range.status;
}

bool memory_u8(struct memory *memory, uint64_t address, uint8_t *ret)
{
	uint8_t value;

	if (memory_read(memory, address, &value, sizeof(value)) != MEMORY_OK)
		return false;
	*ret = value;
	return true;
}

bool memory_u32(struct memory *memory, uint64_t address, uint32_t *ret)
{
	uint32_t value;

	if (memory_read(memory, address, &value, sizeof(value)) != MEMORY_OK)
		return false;
	*ret = value;
	return true;
}

bool memory_u64(struct memory *memory, uint64_t address, uint64_t *ret)
{
	uint64_t value;

	if (memory_read(memory, address, &value, sizeof(value)) != MEMORY_OK)
		return false;
	*ret = value;
	return true;
}

uint64_t memory_page_size(void)
{
	enum { SMALLEST = 4096 };
	long bytes = sysconf(_SC_PAGESIZE);

	return bytes > 0 ? (uint64_t)bytes : SMALLEST;
}
