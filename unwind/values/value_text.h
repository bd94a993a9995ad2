/* SPDX-License-Identifier: MIT */
/*
 * value_text: how a value of Lua reads.
 *
 *	nil, true, 0.5, "text\0", "cut"... (12345 bytes)
 *	table: 0x7f0012345678 (3 entries) {[1] = "a", name = "x", ...}
 *	function: 0x7f0012345678 app.lua:12, or string.gsub [builtin]
 *	cdata<int64_t>: 42, cdata<struct point>: 0x7f0012345678
 *	userdata: 0x7f0012345678 (24 bytes), thread: 0x7f0012345678, light userdata
 *
 * A table shows its first entries in the order of pairs(). In strings a backslash
 * stands before quotes, backslashes and zero bytes ("\0"); other bytes are as in the
 * target, for the output to escape.
 */
#ifndef LJSPY_VALUE_TEXT_H
#define LJSPY_VALUE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "luajit-layouts/layout.h"
#include "memory/memory.h"

enum {
	VALUE_TEXT_SIZE = 1024,
	VALUE_STRING_SHOWN = 80, /* bytes of a string */
	VALUE_KEY_SHOWN = 40,    /* of a string in a table */
	VALUE_ENTRIES_SHOWN = 5,
	VALUE_FUNCTION_SIZE = 512,
};

struct value_reader {
	struct memory *memory; /* of the copy: what values lead to */
	struct memory *live;   /* C types, which stay as they are once they are declared */
	const struct layout *layout;
	uint64_t g;
	/* What a builtin or C function is called. False if it is unknown. */
	bool (*name_function)(void *context, uint64_t function, char ret_name[static VALUE_FUNCTION_SIZE]);
	void *context;
};

/*
 * Returns the type, as type() of Lua has it. NULL if the value's object is not in the copy, or no such
 * object.
 */
const char *value_text(const struct value_reader *reader, uint64_t value,
		       char ret_text[static VALUE_TEXT_SIZE]);

#endif
