/* SPDX-License-Identifier: MIT */
#include "memory/memory.h"

#include <string.h>
#include <unistd.h>

void memory_read_ranges(struct memory *memory, struct memory_range *ranges, size_t count)
{
	memory->read_ranges(memory, ranges, count);
}

const void *memory_view(struct memory *memory, uint64_t address, size_t length)
{
	return memory->view ? memory->view(memory, address, length) : NULL;
}

/* Inline: lengths that are known where it is used make the copy a single instruction. */
static inline enum memory_status read_bytes(struct memory *memory, uint64_t address, void *copy,
					    size_t length)
{
	const void *bytes = memory_view(memory, address, length);
	struct memory_range range;

	if (bytes) {
		memcpy(copy, bytes, length);
		return MEMORY_OK;
	}
	range = (struct memory_range){ .address = address, .copy = copy, .length = length };
	memory->read_ranges(memory, &range, 1);
	return range.status;
}

enum memory_status memory_read(struct memory *memory, uint64_t address, void *copy, size_t length)
{
	return read_bytes(memory, address, copy, length);
}

bool memory_u8(struct memory *memory, uint64_t address, uint8_t *ret)
{
	uint8_t value;

	if (read_bytes(memory, address, &value, sizeof(value)) != MEMORY_OK)
		return false;
	*ret = value;
	return true;
}

bool memory_u32(struct memory *memory, uint64_t address, uint32_t *ret)
{
	uint32_t value;

	if (read_bytes(memory, address, &value, sizeof(value)) != MEMORY_OK)
		return false;
	*ret = value;
	return true;
}

bool memory_u64(struct memory *memory, uint64_t address, uint64_t *ret)
{
	uint64_t value;

	if (read_bytes(memory, address, &value, sizeof(value)) != MEMORY_OK)
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
