/* SPDX-License-Identifier: MIT */
/*
 * source_text: the lines of a source file.
 *
 * Whoever shows lines asks a source_reader for them, which knows where files are. Files
 * are the target's word: their bytes are untrusted, and text that is none is refused.
 */
#ifndef LJSPY_SOURCE_TEXT_H
#define LJSPY_SOURCE_TEXT_H

#include <stddef.h>

enum {
	SOURCE_BYTES_MAX = 2 << 20, /* of a file */
	SOURCE_LINES_MAX = 1 << 16, /* of a file */
	SOURCE_NOTE_SIZE = 160,
};

struct source_text {
	char *bytes;        /* owned */
	const char **lines; /* without their ends; owned; NULL without text */
	size_t line_count;
	char note[SOURCE_NOTE_SIZE]; /* what to know of the lines, or why there are none; "": nothing */
};

struct source_reader {
	/*
	 * Read the file of a function (struct function). Without text it gets a note. 0 or
	 * -ENOMEM; free the text with source_text_clear().
	 */
	int (*read)(struct source_reader *reader, const char *file, struct source_text *ret_text);
};

/*
 * Split a text into its lines, and take over its bytes, of which there is one more, a NUL.
 * 0; -EILSEQ if it is no text, -EFBIG if it has too many lines, or -ENOMEM: then the bytes
 * are freed.
 */
int source_text_split(char *bytes, size_t length, struct source_text *ret_text);
void source_text_clear(struct source_text *text);

#endif
