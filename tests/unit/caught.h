/* SPDX-License-Identifier: MIT */
/*
 * caught: what is written to a standard stream between caught_begin() and caught_end().
 */
#ifndef LJSPY_CAUGHT_H
#define LJSPY_CAUGHT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

struct caught {
	FILE *stream, *file;
	int saved;
};

static inline void caught_begin(struct caught *caught, FILE *stream)
{
	*caught = (struct caught){ .stream = stream, .file = tmpfile(), .saved = dup(fileno(stream)) };
	assert_non_null(caught->file);
	assert_true(caught->saved >= 0);
	fflush(stream);
	dup2(fileno(caught->file), fileno(stream));
}

/* It is in text from here on, of that size; what is longer is cut. */
static inline void caught_end(struct caught *caught, char *text, size_t size)
{
	fflush(caught->stream);
	dup2(caught->saved, fileno(caught->stream));
	close(caught->saved);
	rewind(caught->file);
	text[fread(text, 1, size - 1, caught->file)] = '\0';
	fclose(caught->file);
}

#endif
