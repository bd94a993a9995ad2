/* SPDX-License-Identifier: MIT */
#include "output/labels/frame_label.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "output/sample/utf8.h"

/* With these limits the longest label, two files with a line each, fits in FRAME_LABEL_SIZE. */
enum { NAME_MAX_BYTES = 400, FILE_MAX_BYTES = 400, MODULE_MAX_BYTES = 120 };

#define ELLIPSIS "\u2026"

struct text {
	char *bytes; /* of FRAME_LABEL_SIZE */
	size_t length;
	size_t name_length; /* 0 until begin_place() */
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
	size_t left = FRAME_LABEL_SIZE - text->length;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(text->bytes + text->length, left, format, arguments);
	va_end(arguments);
	if (length > 0)
		text->length += (size_t)length < left ? (size_t)length : left - 1;
}

/* Add at most max bytes from the beginning, cut between characters. */
static void add_head(struct text *text, const char *string, int max)
{
	int length = (int)strnlen(string, (size_t)max + 1);

	if (length <= max) {
		add(text, "%s", string);
		return;
	}
	for (length = max; length > max - 4 && utf8_continues(string[length]);)
		length--;
	add(text, "%.*s" ELLIPSIS, length, string);
}

/* Add at most max bytes from the end, cut between characters. */
static void add_tail(struct text *text, const char *string, size_t max)
{
	size_t length = strlen(string);

	if (length <= max) {
		add(text, "%s", string);
		return;
	}
	string += length - max;
	for (int i = 0; i < 3 && utf8_continues(*string); i++)
		string++;
	add(text, ELLIPSIS "%s", string);
}

/* The name ends here; the function's place follows. */
static void begin_place(struct text *text)
{
	text->name_length = text->length;
	add(text, " ");
}

static void add_file(struct text *text, const char *file)
{
	add_tail(text, frame_label_file(file), FILE_MAX_BYTES);
}

static void add_position(struct text *text, const struct function *function, uint32_t line, bool by_line)
{
	add_file(text, function->file);
	if (by_line && line == 0)
		add(text, ":?");
	else if (by_line)
		add(text, ":%" PRIu32, line);
	else if (function->firstline != 0)
		add(text, ":%" PRIu32, function->firstline);
}

static void add_lua(struct text *text, const struct function *function, uint32_t line, bool by_line)
{
	if (function->name) {
		add_head(text, function->name, NAME_MAX_BYTES);
		if (!function->file)
			return;
	} else {
		add(text, "function <");
		if (function->file)
			add_position(text, function, 0, false);
		else
			add(text, "?");
		add(text, ">");
		if (!function->file || !by_line)
			return;
	}
	begin_place(text);
	add_position(text, function, line, by_line);
}

static void add_native(struct text *text, const struct function *function, uint32_t line, bool by_line)
{
	add_head(text, function->name ? function->name : "?", NAME_MAX_BYTES);
	if (by_line && function->file && line != 0) {
		begin_place(text);
		add_position(text, function, line, by_line);
	} else if (function->module) {
		begin_place(text);
		add(text, "[");
		add_head(text, function->module, MODULE_MAX_BYTES);
		add(text, "]");
	}
}

const char *frame_label_file(const char *file)
{
	return *file == '=' || *file == '@' ? file + 1 : file;
}

size_t frame_label_parts(const struct function *function, uint32_t line, bool by_line,
			 char ret_text[static FRAME_LABEL_SIZE], size_t *ret_name_length)
{
	struct text text = { .bytes = ret_text };
	const char *name = function->name ? function->name : "?";

	ret_text[0] = '\0';
	switch (function->kind) {
	case FRAME_LUA: add_lua(&text, function, line, by_line); break;
	case FRAME_BUILTIN:
		add_head(&text, name, NAME_MAX_BYTES);
		begin_place(&text);
		add(&text, "[builtin]");
		break;
	case FRAME_C_FUNCTION:
	case FRAME_NATIVE: add_native(&text, function, line, by_line); break;
	case FRAME_VM:
		/* A frame without a name stands for any work of the VM itself. */
		if (function->name) {
			add_head(&text, name, NAME_MAX_BYTES);
			begin_place(&text);
		}
		add(&text, "[vm]");
		break;
	case FRAME_VM_WORK:
		add(&text, "[vm: ");
		add_head(&text, name, NAME_MAX_BYTES);
		add(&text, "]");
		break;
	case FRAME_ALLOCATED:
		add(&text, "[alloc: ");
		add_head(&text, name, NAME_MAX_BYTES);
		add(&text, "]");
		break;
	case FRAME_TRACE:
		add_head(&text, name, NAME_MAX_BYTES);
		begin_place(&text);
		if (function->file) {
			add_position(&text, function, 0, false);
			add(&text, " ");
		}
		add(&text, "[jit]");
		break;
	case FRAME_LOST:
		add(&text, "[lost: ");
		add_head(&text, name, NAME_MAX_BYTES);
		add(&text, "]");
		break;
	case FRAME_KIND_COUNT: break;
	}
	*ret_name_length = text.name_length ? text.name_length : text.length;
	return text.length;
}

size_t frame_label(const struct function *function, uint32_t line, bool by_line,
		   char ret_text[static FRAME_LABEL_SIZE])
{
	size_t name_length;

	return frame_label_parts(function, line, by_line, ret_text, &name_length);
}
