/* SPDX-License-Identifier: MIT */
/* Names for what is in a heap. */
#include "unwind/heap/heap_reading.h"

#include <stdio.h>

#include "output/labels/frame_label.h"
#include "unwind/lua/lua_names.h"

enum {
	POINTER = 8,
	CTYPE_DEPTH_MAX = 16,
	CTYPE_TEXT_MAX = HEAP_TEXT_MAX,
	/* lj_ctype.h */
	CTSHIFT_NUM = 28,
	CTMASK_CID = 0xffff,
	CT_NUM = 0,
	CT_STRUCT,
	CT_PTR,
	CT_ARRAY,
	CT_VOID,
	CT_ENUM,
	CT_FUNC,
	CT_TYPEDEF,
	CT_ATTRIB,
};

/* lj_ctype.h */
static const uint32_t CTF_BOOL = 0x08000000, CTF_FP = 0x04000000, CTF_UNSIGNED = 0x00800000,
		      CTF_REF = 0x00800000, CTF_UNION = 0x00800000, CTF_COMPLEX = 0x04000000,
		      CTSIZE_INVALID = 0xffffffff;

static const char *string_bytes(struct heap_reading *reading, uint64_t string, size_t *ret_length)
{
	const struct layout *layout = reading->layout;
	const uint8_t *object = heap_object(reading, string, layout->GCstr_size);
	uint64_t length;

	if (!object || heap_field(object, layout->GChead_gct, 1) != GCT_STRING)
		return NULL;
	length = heap_field(object, layout->GCstr_len, 4);
	if (length > HEAP_TEXT_MAX)
		length = HEAP_TEXT_MAX;
	*ret_length = (size_t)length;
	return length ? (const char *)heap_object(reading, string + (uint64_t)layout->GCstr_size,
						  (int64_t)length)
		      : NULL;
}

uint32_t heap_string_text(struct heap_reading *reading, uint64_t string)
{
	size_t length;
	const char *bytes = string_bytes(reading, string, &length);

	return bytes ? heap_builder_text(reading->builder, bytes, length) : HEAP_TEXT_NONE;
}

/*---- Prototypes ----*/

bool heap_proto(struct heap_reading *reading, uint64_t address, struct proto *ret_proto)
{
	const struct layout *layout = reading->layout;
	const uint8_t *header = heap_object(reading, address, layout->GCproto_size);

	if (!header || !proto_from_header(layout, header, address, ret_proto))
		return false;
	ret_proto->bytes = heap_object(reading, address, (int64_t)ret_proto->size);
	return ret_proto->bytes != NULL;
}

static void load_chunkname(struct heap_reading *reading, const struct proto *proto,
			   char ret_chunkname[static HEAP_TEXT_MAX + 1])
{
	size_t length = 0;
	const char *bytes = string_bytes(
		reading, heap_ref(reading, proto->bytes, reading->layout->GCproto_chunkname), &length);

	if (bytes)
		memcpy(ret_chunkname, bytes, length);
	ret_chunkname[bytes ? length : 0] = '\0';
}

static void load_file(struct heap_reading *reading, const struct proto *proto,
		      char ret_file[static CHUNKNAME_MAX + 16])
{
	char chunkname[HEAP_TEXT_MAX + 1];

	load_chunkname(reading, proto, chunkname);
	lua_chunk_file(chunkname, ret_file);
}

uint32_t heap_proto_file(struct heap_reading *reading, const struct proto *proto)
{
	char file[CHUNKNAME_MAX + 16];

	if (lua_is_builtin(proto))
		return HEAP_TEXT_NONE;
	load_file(reading, proto, file);
	return heap_builder_text(reading->builder, file, strlen(file));
}

/* LuaJIT's own functions in Lua have their name as chunk name, and no lines (lj_bcread.c). */
static uint32_t builtin_text(struct heap_reading *reading, const struct proto *proto)
{
	char name[HEAP_TEXT_MAX + 1], text[FRAME_LABEL_SIZE];
	const struct function function = { .kind = FRAME_BUILTIN, .name = name };

	load_chunkname(reading, proto, name);
	return heap_builder_text(reading->builder, text, frame_label(&function, 0, false, text));
}

uint32_t heap_proto_text(struct heap_reading *reading, const struct proto *proto, const char *name,
			 uint64_t pc, bool by_line)
{
	char file[CHUNKNAME_MAX + 16], text[FRAME_LABEL_SIZE];
	struct function function = {
		.kind = FRAME_LUA, .name = name, .file = file, .firstline = proto->firstline
	};
	size_t length;

	if (lua_is_builtin(proto))
		return builtin_text(reading, proto);
	load_file(reading, proto, file);
	if (lua_is_main_chunk(proto))
		function.name = "main chunk";
	length = frame_label(&function, pc ? lua_line(reading->layout, proto, pc) : 0, by_line, text);
	return heap_builder_text(reading->builder, text, length);
}

/*---- C types ----*/

/* A declaration is written from the middle: pointers and arrays go around what is there. */
struct ctype_text {
	char text[CTYPE_TEXT_MAX];
};

static const uint8_t *ctype_at(struct heap_reading *reading, uint32_t id)
{
	const uint64_t size = reading->gc64 ? 3 * POINTER : 2 * POINTER;

	return id < reading->parts.ctype_top
		       ? heap_object(reading, reading->parts.ctypes + id * size, (int64_t)size)
		       : NULL;
}

static const char *number_name(uint32_t info, uint32_t size, char buffer[static CTYPE_TEXT_MAX])
{
	if (info & CTF_BOOL)
		return "bool";
	if (info & CTF_FP)
		return size == sizeof(double) ? "double" : size == sizeof(float) ? "float" : "long double";
	snprintf(buffer, CTYPE_TEXT_MAX, "%sint%u_t", info & CTF_UNSIGNED ? "u" : "", size * 8);
	return buffer;
}

/* "struct conn", or its number if it has no name. */
static void named(struct heap_reading *reading, const char *what, const uint8_t *ctype, uint32_t id,
		  char ret_text[static CTYPE_TEXT_MAX])
{
	size_t length = 0;
	const char *name = string_bytes(
		reading, heap_ref(reading, ctype, 2 * POINTER - 4 + (reading->gc64 ? 4 : 0)), &length);

	if (name)
		snprintf(ret_text, CTYPE_TEXT_MAX, "%s %.*s", what, (int)length, name);
	else
		snprintf(ret_text, CTYPE_TEXT_MAX, "%s %u", what, id);
}

uint32_t heap_ctype_text(struct heap_reading *reading, uint32_t id)
{
	char suffix[CTYPE_TEXT_MAX] = "", base[CTYPE_TEXT_MAX], text[2 * CTYPE_TEXT_MAX],
	     part[2 * CTYPE_TEXT_MAX];
	const char *name = NULL;

	for (unsigned int depth = 0; !name && depth < CTYPE_DEPTH_MAX; depth++) {
		const uint8_t *ctype = ctype_at(reading, id), *child;
		uint32_t info, size, child_size;

		if (!ctype)
			return HEAP_TEXT_NONE;
		info = (uint32_t)heap_field(ctype, 0, 4);
		size = (uint32_t)heap_field(ctype, 4, 4);
		child = ctype_at(reading, info & CTMASK_CID);
		child_size = child ? (uint32_t)heap_field(child, 4, 4) : 0;
		part[0] = '\0';
		switch (info >> CTSHIFT_NUM) {
		case CT_NUM: name = number_name(info, size, base); continue;
		case CT_VOID: name = "void"; continue;
		case CT_STRUCT:
			named(reading, info & CTF_UNION ? "union" : "struct", ctype, id, base);
			name = base;
			continue;
		case CT_ENUM:
			named(reading, "enum", ctype, id, base);
			name = base;
			continue;
		case CT_PTR: snprintf(part, sizeof(part), "%s%s", info & CTF_REF ? "&" : "*", suffix); break;
		case CT_FUNC: snprintf(part, sizeof(part), "%s()", suffix); break;
		case CT_ARRAY:
			if (info & CTF_COMPLEX)
				snprintf(part, sizeof(part), "complex%s", suffix);
			else if (size == CTSIZE_INVALID || child_size == 0)
				snprintf(part, sizeof(part), "%s[?]", suffix);
			else
				snprintf(part, sizeof(part), "%s[%u]", suffix, size / child_size);
			break;
		default: snprintf(part, sizeof(part), "%s", suffix); break;
		}
		snprintf(suffix, sizeof(suffix), "%.*s", (int)sizeof(suffix) - 1, part);
		id = info & CTMASK_CID;
	}
	if (!name)
		return HEAP_TEXT_NONE;
	snprintf(text, sizeof(text), "%s%s%s", name, *suffix && *suffix != '[' ? " " : "", suffix);
	return heap_builder_text(reading->builder, text, strlen(text));
}
