/* SPDX-License-Identifier: MIT */
#include "unwind/details/detail_parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "luajit-layouts/field.h"
#include "unwind/lua/luajit.h"
#include "unwind/lua/value_capture.h"

static const char cut_mark[] = "...";

void details_add(struct details *details, size_t merged_index, const char *format, ...)
{
	struct detail *detail = &details->list[details->count];
	va_list arguments;

	if (details->count == DETAILS_MAX)
		return;
	detail->merged_index = merged_index;
	va_start(arguments, format);
	vsnprintf(detail->text, sizeof(detail->text), format, arguments);
	va_end(arguments);
	details->count++;
}

size_t details_outwards(const struct merged_stack *stack, size_t index)
{
	do
		index++;
	while (index < stack->count && stack->frames[index].kind != MERGED_LUA &&
	       stack->frames[index].kind != MERGED_C_FUNCTION);
	return index;
}

bool details_slot(const struct merged_frame *frame, unsigned slot, uint64_t *ret_value)
{
	return frame->thread && frame->base && !frame->compiled &&
	       lua_thread_slot(frame->thread, frame->base + (uint64_t)slot * SLOT_SIZE, ret_value);
}

bool details_bytes(struct memory *memory, uint64_t address, uint32_t length,
		   char ret_text[static DETAIL_STRING_BYTES])
{
	char bytes[VALUE_STRING_BYTES];
	const char *mark;
	uint32_t shown = length < sizeof(bytes) ? length : (uint32_t)sizeof(bytes), i;
	size_t at = 0, room = DETAIL_STRING_BYTES - sizeof(cut_mark);

	if (memory_read(memory, address, bytes, shown) != MEMORY_OK)
		return false;
	for (i = 0; i < shown && at + 2 <= room; i++) {
		if (bytes[i]) {
			ret_text[at++] = bytes[i];
		} else {
			ret_text[at++] = '\\';
			ret_text[at++] = '0';
		}
	}
	mark = i < length ? cut_mark : "";
	memcpy(ret_text + at, mark, strlen(mark) + 1);
	return true;
}

bool details_slot_string(const struct detail_source *source, const struct merged_frame *frame, unsigned slot,
			 char ret_text[static DETAIL_STRING_BYTES])
{
	struct memory *memory = snapshot_memory(source->capture->snapshot);
	const struct layout *layout = &frame->global->vm->layout;
	uint64_t value, string;
	uint32_t length;
	uint8_t gct;

	if (!details_slot(frame, slot, &value) || tvalue_tag(layout->gc64, value) != TAG_STR)
		return false;
	string = tvalue_object(layout->gc64, value);
	return field_gct(memory, layout, string, &gct) && gct == GCT_STRING &&
	       memory_u32(memory, string + (uint64_t)layout->GCstr_len, &length) &&
	       details_bytes(memory, string + (uint64_t)layout->GCstr_size, length, ret_text);
}
