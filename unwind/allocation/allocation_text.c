/* SPDX-License-Identifier: MIT */
#include "unwind/allocation/allocation_text.h"

#include <inttypes.h>
#include <stdio.h>

#include "luajit-layouts/field.h"
#include "unwind/lua/lua_names.h"
#include "unwind/lua/luajit.h"

enum { FILE_SHOWN_MAX = 200 }; /* bytes */

/* " x.lua:12" of a prototype; nothing if it cannot be read. */
static void add_place(struct memory *memory, const struct allocation *allocation, char *text, size_t size)
{
	const struct layout *layout = &allocation->global->vm->layout;
	uint8_t header[LAYOUT_OBJECT_MAX];
	char name[CHUNKNAME_MAX + 1] = "", file[CHUNKNAME_MAX + 16], *shown = file;
	struct proto proto;
	uint64_t chunk;
	uint32_t length;

	if (!allocation->prototype ||
	    memory_read(memory, allocation->prototype, header, (size_t)layout->GCproto_size) != MEMORY_OK ||
	    !proto_from_header(layout, header, allocation->prototype, &proto) ||
	    !field_reference(memory, layout, allocation->prototype + (uint64_t)layout->GCproto_chunkname,
			     &chunk) ||
	    !memory_u32(memory, chunk + (uint64_t)layout->GCstr_len, &length) || length > CHUNKNAME_MAX ||
	    memory_read(memory, chunk + (uint64_t)layout->GCstr_size, name, length) != MEMORY_OK)
		return;
	if (proto.firstline == FIRSTLINE_BUILTIN) {
		snprintf(text, size, " %.*s", FILE_SHOWN_MAX, name);
		return;
	}
	lua_chunk_file(name, file);
	if (*shown == '@' || *shown == '=')
		shown++;
	snprintf(text, size, " <%.*s:%" PRIu32 ">", FILE_SHOWN_MAX, shown, proto.firstline);
}

void allocation_text(struct memory *memory, struct allocation *allocation,
		     const struct allocation_counters *held, const char *ctype,
		     char ret_text[static ALLOCATION_TEXT_SIZE])
{
	static const char *const words[ALLOCATION_KINDS] = {
		[ALLOCATION_STRING] = "string",
		[ALLOCATION_UPVALUE] = "upvalue",
		[ALLOCATION_THREAD] = "thread",
		[ALLOCATION_PROTO] = "prototype",
		[ALLOCATION_FUNCTION] = "function",
		[ALLOCATION_TRACE] = "trace",
		[ALLOCATION_CDATA] = "cdata",
		[ALLOCATION_TABLE] = "table",
		[ALLOCATION_USERDATA] = "userdata",
		[ALLOCATION_ARRAY] = "growth of a table",
		[ALLOCATION_HASH] = "growth of a table",
		[ALLOCATION_STACK] = "stack of a coroutine",
		[ALLOCATION_STRING_TABLE] = "table of strings",
		[ALLOCATION_OTHER] = "growth of a buffer",
	};
	const bool is_new = allocation_without_old_part(allocation, held);
	char place[ALLOCATION_TEXT_SIZE - 16] = "";

	add_place(memory, allocation, place, sizeof(place));
	if (*ctype)
		snprintf(place, sizeof(place), " %s", ctype);
	snprintf(ret_text, ALLOCATION_TEXT_SIZE, "%s%s", words[is_new ? ALLOCATION_TABLE : allocation->kind],
		 place);
}
