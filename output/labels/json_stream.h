/* SPDX-License-Identifier: MIT */
/*
 * json_stream: JSON documents that are too long to be in memory at once.
 *
 * The outline is written as text, every value in it by jansson. Errors
 * are remembered and told at the end.
 */
#ifndef LJSPY_JSON_STREAM_H
#define LJSPY_JSON_STREAM_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

struct json_stream {
	FILE *out;
	int error;	/* -ENOMEM, or 0 */
};

/* Punctuation, names of members and numbers; never text of the target. */
__attribute__((format(printf, 2, 3)))
void json_stream_outline(struct json_stream *stream, const char *format, ...);

/* The same without a format, and a number: for what documents are full of. */
void json_stream_mark(struct json_stream *stream, const char *text);
void json_stream_number(struct json_stream *stream, uint64_t number);

/* A value, on one line. Takes over the reference; NULL means that memory was short. */
void json_stream_value(struct json_stream *stream, json_t *value);

/* Text of the target, as json_value_text() has it. */
void json_stream_text(struct json_stream *stream, const char *text);

/* 0, -ENOMEM or -EIO (the stream's own error is in errno). */
int json_stream_end(const struct json_stream *stream);

#endif
