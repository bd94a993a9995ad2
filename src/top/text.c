/* SPDX-License-Identifier: MIT */
#include "src/top/text.h"

#include <string.h>

#include "output/labels/escape.h"

static const wchar_t ellipsis = L'\u2026';

/* The first character of well-formed UTF-8; moves *text behind it. */
static wchar_t next_character(const char **text)
{
	const unsigned char *at = (const unsigned char *)*text;
	unsigned int length = *at < 0x80 ? 1 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : 4;
	unsigned int code = length == 1 ? *at : *at & (0x7fu >> length);

	for (unsigned int i = 1; i < length; i++)
		code = code << 6 | (at[i] & 0x3fu);
	*text += length;
	return (wchar_t)code;
}

static size_t width_of(wchar_t character)
{
	int width = wcwidth(character);

	return width > 0 ? (size_t)width : 0;
}

static size_t to_wide(const char *text, wchar_t ret_text[static TEXT_SIZE])
{
	char escaped[4 * TEXT_SIZE];
	const char *at = escaped;
	size_t length = 0;

	escape_text(ESCAPE_PLAIN, text, escaped, sizeof(escaped));
	while (*at && length < TEXT_SIZE - 1) {
		wchar_t character = next_character(&at);

		ret_text[length++] = wcwidth(character) < 0 ? L'?' : character;
	}
	ret_text[length] = L'\0';
	return length;
}

/* How many characters, from the beginning or the end of text, fit into that many columns. */
static size_t count_fitting(const wchar_t *text, size_t length, enum text_part part, size_t columns,
			    size_t *ret_columns)
{
	size_t count = 0, taken = 0;

	for (; count < length; count++) {
		size_t width = width_of(part == TEXT_HEAD ? text[count] : text[length - 1 - count]);

		if (taken + width > columns)
			break;
		taken += width;
	}
	*ret_columns = taken;
	return count;
}

size_t text_fit(const char *text, enum text_part part, size_t columns, wchar_t ret_text[static TEXT_SIZE],
		size_t *ret_length)
{
	size_t length = to_wide(text, ret_text), taken;
	size_t count = count_fitting(ret_text, length, part, columns, &taken);
	wchar_t mark = wcwidth(ellipsis) == 1 ? ellipsis : L'~';

	if (count == length || columns == 0) {
		ret_text[count] = L'\0';
		*ret_length = count;
		return taken;
	}
	count = count_fitting(ret_text, length, part, columns - 1, &taken);
	if (part == TEXT_HEAD) {
		ret_text[count] = mark;
	} else {
		wmemmove(ret_text + 1, ret_text + length - count, count);
		ret_text[0] = mark;
	}
	ret_text[count + 1] = L'\0';
	*ret_length = count + 1;
	return taken + 1;
}
