/* SPDX-License-Identifier: MIT */
#include "unwind/members/member_loads.h"

#include <string.h>

enum {
	CODE_PIECE = 64, /* the end of the code may not be mapped */
};

bool member_loads_of(struct memory *memory, uint64_t address, struct member_loads *ret_loads)
{
	uint8_t code[MEMBER_CODE_MAX];
	size_t length = 0;

	while (length < sizeof(code) &&
	       memory_read(memory, address + length, code + length, CODE_PIECE) == MEMORY_OK)
		length += CODE_PIECE;
	if (length > 0)
		member_loads_read(code, length, address, ret_loads);
	return length > 0;
}

bool member_loads_have(const struct member_loads *loads, size_t depth, const int32_t *offsets)
{
	for (size_t i = 0; i < loads->count; i++)
		if (loads->loads[i].depth == depth &&
		    memcmp(loads->loads[i].offsets, offsets, depth * sizeof(offsets[0])) == 0)
			return true;
	return false;
}
