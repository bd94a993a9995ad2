/* SPDX-License-Identifier: MIT */
/*
 * escape: text of the target made safe for where it is written.
 *
 * In every style the result is valid UTF-8 on one line, and what a reader
 * could not see or be misled by is spelled out: control characters as \n, \t
 * or \x1b, bytes that are not UTF-8 as \xff, and characters that break lines
 * or reorder text (bidirectional overrides) as \u202e.
 */
#ifndef LJSPY_ESCAPE_H
#define LJSPY_ESCAPE_H

#include <stddef.h>
#include <stdio.h>

enum escape_style {
	ESCAPE_PLAIN,	/* a terminal, or a string to hand to a JSON library */
	ESCAPE_XML,	/* also & < > " ': for character data and attributes */
	ESCAPE_FOLDED,	/* also ; which separates frames, written as a colon */
};

/*
 * Escape text into buffer, ended by NUL. What does not fit is cut between
 * characters and replaced by "…". size is at least ESCAPE_SIZE_MIN. Returns
 * the length without the NUL.
 */
size_t escape_text(enum escape_style style, const char *text, char *buffer, size_t size);

/* Escape all of text to a stream, whose error flag tells of failures. */
void escape_write(enum escape_style style, const char *text, FILE *out);

enum { ESCAPE_SIZE_MIN = 16 };

#endif
