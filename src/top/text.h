/* SPDX-License-Identifier: MIT */
/*
 * text: a line of text cut to columns of a terminal.
 */
#ifndef LJSPY_TOP_TEXT_H
#define LJSPY_TOP_TEXT_H

#include <stddef.h>
#include <wchar.h>

enum text_part {
	TEXT_HEAD,	/* what is too long loses its end */
	TEXT_TAIL,	/* ... its beginning: a path */
};

enum { TEXT_SIZE = 1024 };	/* characters of a line that are looked at */

/*
 * Make the text, UTF-8 with whatever bytes in between, safe for a terminal and
 * cut it to so many columns. What the locale (LC_CTYPE) cannot show becomes
 * "?". Returns the columns taken; *ret_length is the number of characters,
 * without the NUL.
 */
size_t text_fit(const char *text, enum text_part part, size_t columns,
		wchar_t ret_text[static TEXT_SIZE], size_t *ret_length);

#endif
