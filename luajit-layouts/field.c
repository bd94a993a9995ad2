/* SPDX-License-Identifier: MIT */
#include "luajit-layouts/field.h"

bool field_read(struct memory *memory, uint64_t address, unsigned size, uint64_t *ret)
{
	uint64_t value = 0;

	/* LuaJIT's x86-64 and arm64 are little-endian, as is every host of ljspy. */
	if (memory_read(memory, address, &value, size) != MEMORY_OK)
		return false;
	*ret = value;
	return true;
}

bool field_reference(struct memory *memory, const struct layout *layout, uint64_t address, uint64_t *ret)
{
	return field_read(memory, address, layout_ref_size(layout), ret);
}

bool field_gct(struct memory *memory, const struct layout *layout, uint64_t address, uint8_t *ret)
{
	return memory_u8(memory, address + (uint64_t)layout->GChead_gct, ret);
}
