/* SPDX-License-Identifier: MIT */
/*
 * record_bytes: numbers and texts in the records of ljspy's files.
 *
 *	uint = LEB128, at most 64 bits
 *	sint = uint, zigzag: 0, -1, 1, -2 are 0, 1, 2, 3
 *	text = length:uint byte{length}		no byte is NUL
 */
#ifndef LJSPY_RECORD_BYTES_H
#define LJSPY_RECORD_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* What is left to read of a block. Each function is false, and the block damaged, if that is too little. */
struct record_source {
	const uint8_t *at, *end;
};

static inline bool record_take_byte(struct record_source *source, uint8_t *ret_byte)
{
	if (source->at == source->end)
		return false;
	*ret_byte = *source->at++;
	return true;
}

static inline bool record_take_uint(struct record_source *source, uint64_t *ret_value)
{
	uint64_t value = 0;
	uint8_t byte;

	for (unsigned int shift = 0; shift < 64 && record_take_byte(source, &byte); shift += 7) {
		if (shift == 63 && byte > 1)
			return false;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret_value = value;
			return true;
		}
	}
	return false;
}

/* A number up to a maximum, which fits into 32 bits. */
static inline bool record_take_number(struct record_source *source, uint64_t maximum, uint32_t *ret_value)
{
	uint64_t value;

	if (!record_take_uint(source, &value) || value > maximum)
		return false;
	*ret_value = (uint32_t)value;
	return true;
}

static inline bool record_take_sint(struct record_source *source, uint64_t *ret_value)
{
	uint64_t value;

	if (!record_take_uint(source, &value))
		return false;
	*ret_value = value >> 1 ^ (value & 1 ? UINT64_MAX : 0);
	return true;
}

/* A text of at most that many bytes, borrowed from the block and without a NUL. */
static inline bool record_take_text(struct record_source *source, size_t most, const char **ret_text,
				    size_t *ret_length)
{
	uint64_t length;

	if (!record_take_uint(source, &length) || length > most ||
	    length > (uint64_t)(source->end - source->at) || memchr(source->at, '\0', length))
		return false;
	*ret_text = (const char *)source->at;
	*ret_length = length;
	source->at += length;
	return true;
}

/* A block that is being filled. The caller sees to it that there is room. */
struct record_sink {
	char *bytes;
	size_t length;
};

static inline void record_put_byte(struct record_sink *sink, unsigned int byte)
{
	sink->bytes[sink->length++] = (char)byte;
}

static inline void record_put_uint(struct record_sink *sink, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		record_put_byte(sink, (unsigned int)(value & 0x7f) | 0x80);
	record_put_byte(sink, (unsigned int)value);
}

static inline void record_put_sint(struct record_sink *sink, int64_t value)
{
	record_put_uint(sink, (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0));
}

/* A text, cut at that many bytes. Returns its written length. */
static inline size_t record_put_text(struct record_sink *sink, size_t most, const char *text)
{
	size_t length = strnlen(text, most);

	record_put_uint(sink, length);
	memcpy(sink->bytes + sink->length, text, length);
	sink->length += length;
	return length;
}

#endif
