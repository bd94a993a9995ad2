/* SPDX-License-Identifier: MIT */
/* Names for what is in a heap. */
#include "unwind/heap/heap_reading.h"

#include <stdio.h>

#include "output/labels/frame_label.h"
#include "unwind/lua/lua_names.h"
#include "unwind/values/ctype_text.h"

enum { POINTER = 8 };

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
		function.name = MAIN_CHUNK;
	length = frame_label(&function, pc ? lua_line(reading->layout, proto, pc) : 0, by_line, text);
	return heap_builder_text(reading->builder, text, length);
}

/*---- C types ----*/

static bool get_ctype(void *context, uint32_t id, struct ctype *ret_type)
{
	struct heap_reading *reading = context;
	const uint64_t size = reading->gc64 ? 3 * POINTER : 2 * POINTER;
	const uint8_t *bytes = id < reading->parts.ctype_top
				       ? heap_object(reading, reading->parts.ctypes + id * size,
						     (int64_t)size)
				       : NULL;
	size_t length = 0;
	const char *name;

	if (!bytes)
		return false;
	ret_type->info = (uint32_t)heap_field(bytes, 0, 4);
	ret_type->size = (uint32_t)heap_field(bytes, 4, 4);
	name = string_bytes(reading, heap_ref(reading, bytes, 2 * POINTER - 4 + (reading->gc64 ? 4 : 0)),
			    &length);
	snprintf(ret_type->name, sizeof(ret_type->name), "%.*s", (int)length, name ? name : "");
	return true;
}

uint32_t heap_ctype_text(struct heap_reading *reading, uint64_t cdata, uint32_t id)
{
	const struct ctypes types = { .get = get_ctype, .context = reading };
	const uint64_t header = reading->gc64 ? 2 * POINTER : POINTER;
	const uint8_t *bytes = heap_object(reading, cdata + header, sizeof(uint32_t));
	char text[CTYPE_TEXT_SIZE];

	return ctype_object_text(&types, id, bytes ? (uint32_t)heap_field(bytes, 0, 4) : 0, text)
		       ? heap_builder_text(reading->builder, text, strlen(text))
		       : HEAP_TEXT_NONE;
}
