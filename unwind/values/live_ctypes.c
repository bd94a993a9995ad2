/* SPDX-License-Identifier: MIT */
#include "unwind/values/live_ctypes.h"

#include <string.h>

#include "luajit-layouts/field.h"
#include "unwind/lua/luajit.h"

enum {
	POINTER = 8,
	LJ_GC_CDATA_VAR = 0x80, /* lj_obj.h: of variable length, or aligned to more than a pointer */
};

/* GCcdataVar, before the object (lj_obj.h). */
struct cdata_var {
	uint16_t offset, extra;
	uint32_t len;
};

/* The beginning of CTState (lj_ctype.h). */
struct ctype_state {
	uint64_t tab;
	uint32_t top, sizetab;
	uint64_t L, g;
};

bool live_ctypes_load(struct live_ctypes *types)
{
	const struct layout *layout = types->layout;
	struct ctype_state state;
	uint64_t address;

	if (layout->g_ctype_state == LAYOUT_ABSENT ||
	    !field_reference(types->memory, layout, types->g + (uint64_t)layout->g_ctype_state, &address) ||
	    memory_read(types->memory, address, &state, sizeof(state)) != MEMORY_OK || state.g != types->g)
		return false;
	types->table = state.tab;
	types->count = state.top;
	return true;
}

bool live_ctypes_stay(const struct live_ctypes *types)
{
	struct live_ctypes now = *types;

	return live_ctypes_load(&now) && now.table == types->table;
}

bool live_ctypes_get(void *context, uint32_t id, struct ctype *ret_type)
{
	const struct live_ctypes *types = context;
	const struct layout *layout = types->layout;
	uint8_t bytes[3 * POINTER], gct;
	const size_t size = layout->gc64 ? 3 * POINTER : 2 * POINTER, ref = layout_ref_size(layout);
	uint64_t name;
	uint32_t length;

	if (id >= types->count ||
	    memory_read(types->memory, types->table + id * size, bytes, size) != MEMORY_OK)
		return false;
	*ret_type = (struct ctype){ .info = (uint32_t)load_bytes(bytes, 0, 4),
				    .size = (uint32_t)load_bytes(bytes, 4, 4) };
	name = load_bytes(bytes, (int32_t)(size - ref), (unsigned)ref);
	if (name && field_gct(types->memory, layout, name, &gct) && gct == GCT_STRING &&
	    memory_u32(types->memory, name + (uint64_t)layout->GCstr_len, &length)) {
		length = length < CTYPE_NAME_SIZE ? length : CTYPE_NAME_SIZE - 1;
		if (memory_read(types->memory, name + (uint64_t)layout->GCstr_size, ret_type->name, length) !=
		    MEMORY_OK)
			length = 0;
		ret_type->name[length] = '\0';
	}
	return true;
}

uint64_t live_ctypes_object_bytes(struct live_ctypes *types, uint64_t address, uint32_t id)
{
	const struct layout *layout = types->layout;
	const struct ctypes all = { .get = live_ctypes_get, .context = types };
	const uint64_t header = layout->gc64 ? 2 * POINTER : POINTER; /* with the type's number */
	struct cdata_var var;
	struct ctype type;
	uint8_t marked;

	if (memory_read(types->memory, address + (uint64_t)layout->GChead_marked, &marked, sizeof(marked)) !=
	    MEMORY_OK)
		return 0;
	if (marked & LJ_GC_CDATA_VAR)
		return memory_read(types->memory, address - sizeof(var), &var, sizeof(var)) == MEMORY_OK
			       ? (uint64_t)var.len + var.extra
			       : 0;
	return ctype_raw(&all, id, &type) && ctype_kind(&type) <= CT_ENUM ? header + type.size : 0;
}

bool live_ctypes_text(struct memory *memory, const struct layout *layout, uint64_t g, uint32_t id,
		      char ret_text[static CTYPE_TEXT_SIZE])
{
	struct live_ctypes live = { .memory = memory, .layout = layout, .g = g };
	const struct ctypes types = { .get = live_ctypes_get, .context = &live };
	char text[CTYPE_TEXT_SIZE];

	if (!live_ctypes_load(&live) || !ctype_text(&types, id, text) || !live_ctypes_stay(&live))
		return false;
	memcpy(ret_text, text, sizeof(text));
	return true;
}
