/* SPDX-License-Identifier: MIT */
#include "unwind/listing/listing.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"

struct listing_line *listing_add(struct listing *listing, enum listing_kind kind, char *text)
{
	size_t length = text ? strlen(text) : 0;
	struct listing_line *lines;

	if (!text) {
		listing->failed = true;
		return NULL;
	}
	if (listing->count == LISTING_LINES_MAX || length > LISTING_BYTES_MAX - listing->bytes) {
		listing->cut = true;
		free(text);
		return NULL;
	}
	lines = array_grow(listing->lines, &listing->size, listing->count + 1, sizeof(*lines));
	if (!lines) {
		listing->failed = true;
		free(text);
		return NULL;
	}
	listing->lines = lines;
	listing->bytes += length;
	lines[listing->count] = (struct listing_line){ .kind = kind, .text = text };
	return &lines[listing->count++];
}

struct listing_line *listing_add_format(struct listing *listing, enum listing_kind kind, const char *format,
					...)
{
	char *text = NULL;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vasprintf(&text, format, arguments);
	va_end(arguments);
	return listing_add(listing, kind, length < 0 ? NULL : text);
}

void listing_clear(struct listing *listing)
{
	for (size_t i = 0; i < listing->count; i++)
		free(listing->lines[i].text);
	free(listing->lines);
	*listing = (struct listing){ 0 };
}

void listing_count(struct listing_line *line, const struct listing_samples *samples, uint64_t begin,
		   uint64_t end)
{
	uint64_t count, cpu_ns;

	if (!samples)
		return;
	samples->at(samples->context, begin, end, &count, &cpu_ns);
	line->samples += count;
	line->cpu_ns += cpu_ns;
}
