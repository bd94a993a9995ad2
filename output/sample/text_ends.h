/* SPDX-License-Identifier: MIT */
/*
 * text_ends: how a text or the name of a file ends.
 */
#ifndef LJSPY_TEXT_ENDS_H
#define LJSPY_TEXT_ENDS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Also if the text is nothing but the ending. */
static inline bool text_ends_with(const char *text, const char *ending)
{
	const size_t length = strlen(text), end = strlen(ending);

	return length >= end && strcmp(text + length - end, ending) == 0;
}

/* Does the file have this suffix, without its dot: "svg" or "speedscope.json"? */
static inline bool text_has_suffix(const char *path, const char *suffix)
{
	const size_t length = strlen(path), end = strlen(suffix);

	return text_ends_with(path, suffix) && length > end && path[length - end - 1] == '.';
}

#endif
