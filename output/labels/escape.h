/* SPDX-License-Identifier: MIT */
/*
 * escape: make text of the target safe for output.
 *
 * In every style the result is valid UTF-8 on one line. Characters that are
 * invisible or misleading are escaped: control characters as \n, \t or \x1b,
 * bytes that are not UTF-8 as \xff, and characters that break lines or reorder
 * text (bidirectional overrides) as \u202e.
 */
#ifndef LJSPY_ESCAPE_H
#define LJSPY_ESCAPE_H

#include <stddef.h>
#include <stdio.h>

enum escape_style {
	ESCAPE_PLAIN,  /* for a terminal or a JSON library */
	ESCAPE_XML,    /* also & < > " ': for character data and attributes */
	ESCAPE_FOLDED, /* also ; because it separates frames: it becomes a colon */
};

/*
 * Escape text into buffer, with a NUL at the end. Text that does not fit is
 * cut between characters and ends in "…". size is at least ESCAPE_SIZE_MIN.
 * Returns the length without the NUL.
 */
size_t escape_text(enum escape_style style, const char *text, char *buffer, size_t size);

/* Escape all of text to a stream. On failure, the stream's error flag is set. */
void escape_write(enum escape_style style, const char *text, FILE *out);

enum { ESCAPE_SIZE_MIN = 16 };

#endif
