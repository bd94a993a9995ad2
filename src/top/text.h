/* SPDX-License-Identifier: MIT */
/*
 * text: cut a line of text to columns of a terminal.
 */
#ifndef LJSPY_TOP_TEXT_H
#define LJSPY_TOP_TEXT_H

#include <stddef.h>
#include <wchar.h>

enum text_part {
	TEXT_HEAD, /* keep the beginning */
	TEXT_TAIL, /* keep the end: for a path */
};

enum { TEXT_SIZE = 1024 }; /* characters, with the NUL; the rest of a line is ignored */

/*
 * Make text safe for a terminal and cut it to columns. text is UTF-8, but may contain
 * any bytes. What the locale (LC_CTYPE) cannot show becomes "?". Returns the columns
 * taken; *ret_length is the number of characters, without the NUL.
 */
size_t text_fit(const char *text, enum text_part part, size_t columns, wchar_t ret_text[static TEXT_SIZE],
		size_t *ret_length);

#endif
