/* SPDX-License-Identifier: MIT */
/* What the thread that was unwound last allocates, in words. */
#include "src/inspect/lua_process_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "luajit-layouts/field.h"
#include "unwind/allocation/allocated.h"
#include "unwind/lua/lua_names.h"
#include "unwind/lua/luajit.h"

enum { FILE_SHOWN_MAX = 200 }; /* bytes */

bool lua_process_allocation(struct lua_process *process, struct allocation *ret_allocation)
{
	const struct allocation_source source = {
		.capture = &process->capture,
		.image = process->image,
		.objects = process->objects,
		.native = process->native,
		.decoder = process->decoder,
	};

	return !process->capture.running && allocation_in_flight(&source, ret_allocation);
}

size_t lua_process_captured_count(const struct lua_process *process)
{
	return process->capture.global_count;
}

const struct global_state *lua_process_captured(const struct lua_process *process, size_t index)
{
	return process->capture.globals[index].global;
}

/*---- Words ----*/

/* " x.lua:12" of a prototype; nothing if it cannot be read. */
static void add_place(struct lua_process *process, const struct allocation *allocation, char *text,
		      size_t size)
{
	const struct layout *layout = &allocation->global->vm->layout;
	uint8_t header[LAYOUT_OBJECT_MAX];
	char name[CHUNKNAME_MAX + 1] = "", file[CHUNKNAME_MAX + 16], *shown = file;
	struct proto proto;
	uint64_t chunk;
	uint32_t length;

	if (!allocation->prototype ||
	    memory_read(process->memory, allocation->prototype, header, (size_t)layout->GCproto_size) !=
		    MEMORY_OK ||
	    !proto_from_header(layout, header, allocation->prototype, &proto) ||
	    !field_reference(process->memory, layout,
			     allocation->prototype + (uint64_t)layout->GCproto_chunkname, &chunk) ||
	    !memory_u32(process->memory, chunk + (uint64_t)layout->GCstr_len, &length) ||
	    length > CHUNKNAME_MAX ||
	    memory_read(process->memory, chunk + (uint64_t)layout->GCstr_size, name, length) != MEMORY_OK)
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

void lua_process_describe_allocation(struct lua_process *process, struct allocation *allocation,
				     const struct allocation_counters *held,
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

	add_place(process, allocation, place, sizeof(place));
	snprintf(ret_text, ALLOCATION_TEXT_SIZE, "%s%s", words[is_new ? ALLOCATION_TABLE : allocation->kind],
		 place);
}
