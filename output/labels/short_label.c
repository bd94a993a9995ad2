/* SPDX-License-Identifier: MIT */
#include "output/labels/short_label.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define ELLIPSIS "\u2026"

/*
 * TAIL_MIN: characters of a file's name that are worth showing. MIDDLE_MIN: columns of a name cut in the
 * middle.
 */
enum { TAIL_MIN = 4, MIDDLE_MIN = 9 };

static size_t character_length(const char *text)
{
	unsigned char lead = (unsigned char)*text;

	return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/* Of one character. */
static size_t columns_of(const char *text)
{
	return (unsigned char)*text >= 0xe1 && strncmp(text, ELLIPSIS, strlen(ELLIPSIS)) != 0 ? 2 : 1;
}

size_t short_label_fitting(const char *text, size_t columns)
{
	size_t used = 0, i = 0;

	while (text[i]) {
		used += columns_of(text + i);
		if (used > columns)
			break;
		i += character_length(text + i);
	}
	return i;
}

static size_t width(const char *text)
{
	size_t used = 0;

	for (; *text; text += character_length(text))
		used += columns_of(text);
	return used;
}

/* The end of text that fits in columns. */
static const char *fitting_tail(const char *text, size_t columns)
{
	for (size_t left = width(text); left > columns; text += character_length(text))
		left -= columns_of(text);
	return text;
}

/* The end of a path after "…" that fits in columns; NULL if not even some of the file's name does. */
static const char *short_path(const char *path, size_t columns)
{
	const char *file = strrchr(path, '/'), *tail;

	for (const char *slash = *path ? strchr(path + 1, '/') : NULL; slash; slash = strchr(slash + 1, '/'))
		if (width(slash) < columns)
			return slash;
	if (columns < 1 + TAIL_MIN)
		return NULL;
	tail = fitting_tail(file ? file + 1 : path, columns - 1);
	return width(tail) >= TAIL_MIN ? tail : NULL;
}

static size_t write_name_and_tail(char *ret_text, const char *begin, const char *tail)
{
	return (size_t)snprintf(ret_text, LABEL_TEXT_SIZE, "%s" ELLIPSIS "%s", begin, tail);
}

/* The name without its middle, or without its end if there is little room. */
static size_t cut_name(const char *name, size_t columns, char *ret_text)
{
	size_t kept = columns - 1;
	size_t tail = columns >= MIDDLE_MIN ? kept * 2 / 5 : 0;
	size_t head = short_label_fitting(name, kept - tail);

	return (size_t)snprintf(ret_text, LABEL_TEXT_SIZE, "%.*s" ELLIPSIS "%s", (int)head, name,
				fitting_tail(name + head, tail));
}

size_t short_label(const struct label *label, size_t columns, char ret_text[static LABEL_TEXT_SIZE])
{
	static const char unnamed[] = "function <";
	const char *place = label->text + label->place, *tail = NULL;
	char name[LABEL_TEXT_SIZE], begin[LABEL_TEXT_SIZE + 1];
	int length;

	snprintf(name, sizeof(name), "%.*s", (int)label->name_length, label->text);
	length = snprintf(ret_text, LABEL_TEXT_SIZE, "%s%s%s", name, *place ? " " : "", place);
	if (width(ret_text) <= columns)
		return (size_t)length;
	if (*place && width(name) <= columns) {
		snprintf(begin, sizeof(begin), "%s ", name);
		if (*place != '[' && columns > width(begin))
			tail = short_path(place, columns - width(begin));
		return tail ? write_name_and_tail(ret_text, begin, tail)
			    : (size_t)snprintf(ret_text, LABEL_TEXT_SIZE, "%s", name);
	}
	if (strncmp(name, unnamed, strlen(unnamed)) == 0 && columns > strlen(unnamed))
		tail = short_path(name + strlen(unnamed), columns - strlen(unnamed));
	return tail ? write_name_and_tail(ret_text, unnamed, tail) : cut_name(name, columns, ret_text);
}
