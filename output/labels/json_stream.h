/* SPDX-License-Identifier: MIT */
/*
 * json_stream: write JSON documents that are too long to hold in memory.
 *
 * The caller writes the outline as text; jansson writes the values.
 * json_stream_end() returns any earlier error.
 */
#ifndef LJSPY_JSON_STREAM_H
#define LJSPY_JSON_STREAM_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

struct json_stream {
	FILE *out;
	int error; /* -ENOMEM, or 0 */
};

/* Write punctuation, member names and numbers; never text of the target. */
__attribute__((format(printf, 2, 3))) void json_stream_outline(struct json_stream *stream, const char *format,
							       ...);

/* The same for plain text and for a number, without a format: faster for frequent values. */
void json_stream_mark(struct json_stream *stream, const char *text);
void json_stream_number(struct json_stream *stream, uint64_t number);

/* Write a value on one line. Takes over the reference; NULL means that memory was short. */
void json_stream_value(struct json_stream *stream, json_t *value);

/* Write text of the target, in the form of json_value_text(). */
void json_stream_text(struct json_stream *stream, const char *text);

/* The document's result: 0, -ENOMEM or -EIO (the stream's own error is in errno). */
int json_stream_end(const struct json_stream *stream);

#endif
