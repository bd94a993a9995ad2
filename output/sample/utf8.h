/* SPDX-License-Identifier: MIT */
/*
 * utf8: characters of well-formed UTF-8 (RFC 3629), as bytes.
 */
#ifndef LJSPY_UTF8_H
#define LJSPY_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Is it a byte of a character, but not its first one? */
static inline bool utf8_continues(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

/* How many characters begin in the first so many bytes. */
static inline size_t utf8_count(const char *text, size_t length)
{
	size_t count = 0;

	for (size_t i = 0; i < length; i++)
		count += !utf8_continues(text[i]);
	return count;
}

/* The text without its first so many characters; its end if it has no more. */
static inline const char *utf8_skip(const char *text, size_t count)
{
	for (; *text && (count > 0 || utf8_continues(*text)); text++)
		count -= !utf8_continues(*text);
	return text;
}

#endif
