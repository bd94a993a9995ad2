/* SPDX-License-Identifier: MIT */
#include "output/source/source_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t count_lines(const char *bytes, size_t length)
{
	const char *end = bytes + length;
	size_t count = 0;

	for (const char *at = bytes; at < end; count++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));

		at = newline ? newline + 1 : end;
	}
	return count;
}

/* End a line without the carriage return of files from elsewhere. */
static void end_line(const char *begin, char *end)
{
	if (end > begin && end[-1] == '\r')
		end--;
	*end = '\0';
}

int source_text_split(char *bytes, size_t length, struct source_text *ret_text)
{
	struct source_text text = { .bytes = bytes };
	const size_t count = count_lines(bytes, length);
	int error = memchr(bytes, '\0', length) ? -EILSEQ : count > SOURCE_LINES_MAX ? -EFBIG : 0;

	if (!error) {
		text.lines = calloc(count + 1, sizeof(const char *));
		error = text.lines ? 0 : -ENOMEM;
	}
	if (error) {
		free(bytes);
		return error;
	}
	for (char *at = bytes; text.line_count < count; text.line_count++) {
		char *end = strchr(at, '\n');

		if (!end)
			end = bytes + length;
		text.lines[text.line_count] = at;
		end_line(at, end);
		at = end + 1;
	}
	*ret_text = text;
	return 0;
}

void source_text_clear(struct source_text *text)
{
	free(text->bytes);
	free(text->lines);
	*text = (struct source_text){ 0 };
}
