/* SPDX-License-Identifier: MIT */
#include "output/labels/json_stream.h"

#include <errno.h>

#include "output/labels/json_values.h"

void json_stream_outline(struct json_stream *stream, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(stream->out, format, arguments);
	va_end(arguments);
}

void json_stream_mark(struct json_stream *stream, const char *text)
{
	fputs_unlocked(text, stream->out);
}

void json_stream_number(struct json_stream *stream, uint64_t number)
{
	char digits[20];
	size_t at = sizeof(digits);

	do
		digits[--at] = (char)('0' + number % 10);
	while (number /= 10);
	fwrite_unlocked(digits + at, 1, sizeof(digits) - at, stream->out);
}

void json_stream_value(struct json_stream *stream, json_t *value)
{
	/* json_dumpf() fails without memory, or when writing fails, which ferror() shows. */
	if (!value ||
	    (json_dumpf(value, stream->out, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15)) < 0 &&
	     !ferror(stream->out)))
		stream->error = -ENOMEM;
	json_decref(value);
}

void json_stream_text(struct json_stream *stream, const char *text)
{
	json_stream_value(stream, json_value_text(text));
}

int json_stream_end(const struct json_stream *stream)
{
	return stream->error ? stream->error : ferror(stream->out) ? -EIO : 0;
}
