/* SPDX-License-Identifier: MIT */
#include "unwind/lua/lua_names.h"

#include <stdio.h>
#include <string.h>

#include "luajit-layouts/bytecode.h"
#include "unwind/lua/luajit.h"

/* Names of a for loop's hidden variables (lj_parse.h: VARNAMEDEF), by number. */
static const char *const internal_names[] = {
	NULL, "(for index)", "(for limit)", "(for step)", "(for generator)", "(for state)", "(for control)",
};

enum {
	VARIABLES_MAX = 65536,   /* of one prototype; LuaJIT's parser has no room for more (LJ_MAX_VSTACK) */
	SLOT_RESTARTS_MAX = 256, /* moves followed back to a value's origin */
	SHOWN_SOURCE_MAX = 60,   /* characters of source text as a chunk name (LUA_IDSIZE) */
	VARNAME_INTERNAL_MAX = sizeof(internal_names) / sizeof(internal_names[0]) - 1,
};

/*---- Debug info inside a prototype ----*/

static uint64_t field(const struct proto *proto, int32_t offset, unsigned size)
{
	uint64_t value = 0;

	memcpy(&value, proto->bytes + offset, size);
	return value;
}

static uint64_t reference(const struct layout *layout, const struct proto *proto, int32_t offset)
{
	return field(proto, offset, layout_ref_size(layout));
}

/* A NUL-terminated string inside the prototype. False if it does not end there. */
static bool load_string(const struct proto *proto, uint64_t address, const char **ret_string)
{
	uint64_t offset = address - proto->address;

	if (address < proto->address || offset >= proto->size ||
	    !memchr(proto->bytes + offset, 0, proto->size - offset))
		return false;
	*ret_string = (const char *)proto->bytes + offset;
	return true;
}

static bool load_uleb128(const struct proto *proto, uint64_t *address, uint32_t *ret_value)
{
	uint32_t value = 0;

	for (unsigned shift = 0; shift < 32; shift += 7) {
		uint8_t byte;

		if (!proto_load(proto, (*address)++, &byte, 1))
			return false;
		value |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret_value = value;
			return true;
		}
	}
	return false;
}

/* A variable of the debug information; at is behind it. False at its end. */
static bool next_variable(const struct proto *proto, uint64_t *at, struct lua_local *variable)
{
	uint32_t start, length;
	uint8_t first;

	if (!proto_load(proto, *at, &first, 1) || first == 0)
		return false;
	if (first > VARNAME_INTERNAL_MAX) {
		if (!load_string(proto, *at, &variable->name))
			return false;
		*at += strlen(variable->name) + 1;
	} else {
		variable->name = internal_names[first];
		(*at)++;
	}
	if (!load_uleb128(proto, at, &start) || !load_uleb128(proto, at, &length))
		return false;
	variable->begin += start;
	variable->end = variable->begin + length;
	return true;
}

/* Up to max local variables in scope at a position, by slot (debug_varname). Returns how many. */
static size_t find_locals(const struct layout *layout, const struct proto *proto, uint32_t position,
			  struct lua_local *ret_locals, size_t max)
{
	uint64_t at = reference(layout, proto, layout->GCproto_varinfo);
	struct lua_local variable = { .begin = 0 };
	size_t count = 0;

	for (unsigned i = 0; at && i < VARIABLES_MAX && count < max; i++) {
		if (!next_variable(proto, &at, &variable) || variable.begin > position)
			break;
		if (position < variable.end)
			ret_locals[count++] = variable;
	}
	return count;
}

static uint32_t position_of(const struct proto *proto, uint64_t pc)
{
	return (uint32_t)((pc - proto->bc) / BYTECODE_SIZE);
}

static bool find_local(const struct layout *layout, const struct proto *proto, uint32_t position,
		       uint32_t slot, const char **ret_name)
{
	struct lua_local locals[LUA_LOCALS_MAX];

	if (slot >= LUA_LOCALS_MAX || find_locals(layout, proto, position, locals, slot + 1) <= slot)
		return false;
	*ret_name = locals[slot].name;
	return true;
}

bool lua_local_name(const struct layout *layout, const struct proto *proto, uint64_t pc, uint32_t slot,
		    const char **ret_name)
{
	return proto_contains_pc(proto, pc) &&
	       find_local(layout, proto, position_of(proto, pc), slot, ret_name);
}

size_t lua_locals(const struct layout *layout, const struct proto *proto, uint64_t pc,
		  struct lua_local ret_locals[static LUA_LOCALS_MAX])
{
	return proto_contains_pc(proto, pc)
		       ? find_locals(layout, proto, position_of(proto, pc), ret_locals, LUA_LOCALS_MAX)
		       : 0;
}

bool lua_has_locals(const struct layout *layout, const struct proto *proto)
{
	return reference(layout, proto, layout->GCproto_varinfo) != 0;
}

bool lua_upvalue_name(const struct layout *layout, const struct proto *proto, uint32_t index,
		      const char **ret_name)
{
	uint64_t at = reference(layout, proto, layout->GCproto_uvinfo);
	const char *name;

	if (at == 0 || index >= field(proto, layout->GCproto_sizeuv, 1))
		return false;
	do {
		if (!load_string(proto, at, &name))
			return false;
		at += strlen(name) + 1;
	} while (index-- > 0);
	*ret_name = name;
	return true;
}

/* A string constant by proto_kgc's negative index: collectable constants lie below k. */
static bool load_constant(struct memory *memory, const struct layout *layout, const struct proto *proto,
			  uint32_t index, char ret_name[static LUA_NAME_SIZE])
{
	unsigned ref = layout_ref_size(layout);
	uint64_t at = reference(layout, proto, layout->GCproto_k) - (uint64_t)(index + 1) * ref;
	uint64_t string = 0;
	char name[LUA_NAME_SIZE];
	uint32_t length;
	uint8_t gct;

	if (index >= field(proto, layout->GCproto_sizekgc, 4) || !proto_load(proto, at, &string, ref))
		return false;
	if (!memory_u8(memory, string + (uint64_t)layout->GChead_gct, &gct) || gct != GCT_STRING ||
	    !memory_u32(memory, string + (uint64_t)layout->GCstr_len, &length) || length == 0)
		return false;
	if (length >= LUA_NAME_SIZE)
		length = LUA_NAME_SIZE - 1;
	if (memory_read(memory, string + (uint64_t)layout->GCstr_size, name, length) != MEMORY_OK)
		return false;
	name[length] = '\0';
	memcpy(ret_name, name, length + 1);
	return true;
}

static bool copy_name(const char *name, char ret_name[static LUA_NAME_SIZE])
{
	snprintf(ret_name, LUA_NAME_SIZE, "%s", name);
	return true;
}

/* The name of a value by the instruction that loaded it into the slot. */
static bool name_by_origin(struct memory *memory, const struct layout *layout, const struct proto *proto,
			   uint32_t instruction, char ret_name[static LUA_NAME_SIZE])
{
	const char *name;
	enum bytecode_op op = bytecode_op(layout, (uint8_t)instruction);

	if (op == BC_GGET)
		return load_constant(memory, layout, proto, bytecode_d(instruction), ret_name);
	if (op == BC_TGETS)
		return load_constant(memory, layout, proto, bytecode_c(instruction), ret_name);
	return op == BC_UGET && lua_upvalue_name(layout, proto, bytecode_d(instruction), &name) &&
	       copy_name(name, ret_name);
}

/* The name of the slot's value before the instruction at pc (lj_debug_slotname). */
static bool name_slot(struct memory *memory, const struct layout *layout, const struct proto *proto,
		      uint64_t pc, uint32_t slot, char ret_name[static LUA_NAME_SIZE])
{
	for (unsigned restart = 0; restart < SLOT_RESTARTS_MAX; restart++) {
		uint32_t position = position_of(proto, pc);
		const char *name;
		bool moved = false;

		if (find_local(layout, proto, position, slot, &name))
			return copy_name(name, ret_name);
		while (!moved && (pc -= BYTECODE_SIZE) > proto->bc) {
			uint32_t instruction;
			enum bytecode_mode mode;

			if (!proto_instruction(proto, pc, &instruction))
				return false;
			mode = bytecode_mode_a(layout, (uint8_t)instruction);
			if (mode == BCMbase && slot >= bytecode_a(instruction) &&
			    (bytecode_op(layout, (uint8_t)instruction) != BC_KNIL ||
			     slot <= bytecode_d(instruction)))
				return false;
			if (mode != BCMdst || bytecode_a(instruction) != slot)
				continue;
			if (bytecode_op(layout, (uint8_t)instruction) != BC_MOV)
				return name_by_origin(memory, layout, proto, instruction, ret_name);
			slot = bytecode_d(instruction);
			moved = true;
		}
		if (!moved)
			return false;
	}
	return false;
}

bool lua_call_name(struct memory *memory, const struct layout *layout, const struct proto *caller,
		   uint64_t pc, char ret_name[static LUA_NAME_SIZE])
{
	uint32_t instruction, slot;
	enum bytecode_mm mm;

	if (!proto_instruction(caller, pc, &instruction))
		return false;
	mm = bytecode_mm(layout, (uint8_t)instruction);
	if (mm == MM_none)
		return false;
	if (mm != MM_call) {
		snprintf(ret_name, LUA_NAME_SIZE, "__%s", bytecode_mm_name(mm));
		return true;
	}
	slot = bytecode_a(instruction);
	if (bytecode_op(layout, (uint8_t)instruction) == BC_ITERC ||
	    bytecode_op(layout, (uint8_t)instruction) == BC_ITERN) {
		if (slot < 3)
			return false;
		slot -= 3;
	}
	return name_slot(memory, layout, caller, pc, slot, ret_name);
}

/*---- Lines and chunk names ----*/

uint32_t lua_line(const struct layout *layout, const struct proto *proto, uint64_t pc)
{
	uint64_t lineinfo = reference(layout, proto, layout->GCproto_lineinfo);
	uint64_t position = (pc - proto->bc) / BYTECODE_SIZE;
	unsigned size = proto->numline < 256 ? 1 : proto->numline < 65536 ? 2 : 4;
	uint32_t delta = 0;

	if (pc == 0 || !proto_contains_pc(proto, pc) || lineinfo == 0)
		return 0;
	if (position == 0)
		return proto->firstline;
	if (!proto_load(proto, lineinfo + (position - 1) * size, &delta, size))
		return 0;
	return proto->firstline + delta;
}

bool lua_is_main_chunk(const struct proto *proto)
{
	return proto->firstline == 0 && proto->numline != 0 && (proto->flags & PROTO_VARARG);
}

bool lua_is_builtin(const struct proto *proto)
{
	return proto->firstline == FIRSTLINE_BUILTIN;
}

/* The length up to the first control character. */
static size_t printable_length(const char *text)
{
	size_t length = 0;

	while ((unsigned char)text[length] >= ' ' && text[length] != 0x7f)
		length++;
	return length;
}

void lua_chunk_file(const char *chunkname, char ret_file[static CHUNKNAME_MAX + 16])
{
	size_t length = printable_length(chunkname);

	if (*chunkname == '@' || *chunkname == '=') {
		snprintf(ret_file, CHUNKNAME_MAX, "%s", chunkname);
	} else if (chunkname[0] == '\x1b') {
		snprintf(ret_file, CHUNKNAME_MAX, "=?");
	} else {
		bool cut = chunkname[length] != '\0' || length > SHOWN_SOURCE_MAX;

		if (length > SHOWN_SOURCE_MAX)
			length = SHOWN_SOURCE_MAX;
		snprintf(ret_file, CHUNKNAME_MAX, "=[string \"%.*s%s\"]", (int)length, chunkname,
			 cut ? "..." : "");
	}
}
