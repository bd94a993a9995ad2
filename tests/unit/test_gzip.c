/* SPDX-License-Identifier: MIT */
/* Messages in a gzip stream, of any length. Their bytes are made up. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "output/labels/gzip.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
#include "tests/unit/failing_allocation.h"

INSTEAD_OF(protobuf_c_message_pack_to_buffer);

enum {
	CHUNK = 65536, /* of what is compressed at once */
	BYTES_MAX = 4 * CHUNK,
	GZIP_WINDOW = 15 + 16,
};

/* What the next message is as bytes, and in how many pieces it comes. */
static uint8_t noise[BYTES_MAX];
static const uint8_t *message;
static size_t message_length, piece_length;

size_t __wrap_protobuf_c_message_pack_to_buffer(const ProtobufCMessage *of, ProtobufCBuffer *buffer)
{
	assert_null(of);
	for (size_t at = 0; at < message_length; at += piece_length) {
		const size_t left = message_length - at;

		buffer->append(buffer, left < piece_length ? left : piece_length, message + at);
	}
	return message_length;
}

/* Bytes that do not compress. */
static int make_noise(void **state)
{
	uint32_t random = 1;

	(void)state;
	for (size_t i = 0; i < BYTES_MAX; i++) {
		random = random * 1664525 + 1013904223;
		noise[i] = (uint8_t)(random >> 24);
	}
	return 0;
}

static void write_bytes(struct gzip *gzip, const uint8_t *bytes, size_t length, size_t pieces)
{
	message = bytes;
	message_length = length;
	piece_length = length / pieces + 1;
	assert_int_equal(gzip_write_message(gzip, NULL), 0);
}

/* The stream is whole, and holds these bytes. */
static void assert_holds(const char *packed, size_t packed_length, const uint8_t *bytes, size_t length)
{
	static uint8_t found[BYTES_MAX + 1];
	z_stream stream = { .next_in = (Bytef *)(uintptr_t)packed,
			    .avail_in = (uInt)packed_length,
			    .next_out = found,
			    .avail_out = sizeof(found) };

	assert_int_equal(inflateInit2(&stream, GZIP_WINDOW), Z_OK);
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	assert_int_equal(stream.avail_in, 0);
	assert_int_equal(stream.total_out, length);
	assert_memory_equal(found, bytes, length);
	inflateEnd(&stream);
}

static void messages_of_any_length_come_out_again(void **state)
{
	static const size_t lengths[] = { 0, 1, 2, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, BYTES_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		for (size_t pieces = 1; pieces <= 3; pieces++) {
			char *packed = NULL;
			size_t packed_length = 0;
			FILE *out = open_memstream(&packed, &packed_length);
			struct gzip *gzip = gzip_new(out);

			assert_non_null(gzip);
			write_bytes(gzip, noise, lengths[i], pieces);
			assert_int_equal(gzip_end(gzip), 0);
			assert_int_equal(fclose(out), 0);
			assert_holds(packed, packed_length, noise, lengths[i]);
			free(packed);
		}
	}
}

static void messages_come_one_behind_the_other_in_one_stream(void **state)
{
	static const size_t ends[] = { 10, 20, CHUNK + 20, CHUNK + 20, 3 * CHUNK };
	char *packed = NULL;
	size_t packed_length = 0, at = 0;
	FILE *out = open_memstream(&packed, &packed_length);
	struct gzip *gzip = gzip_new(out);

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		write_bytes(gzip, noise + at, ends[i] - at, 1);
		at = ends[i];
	}
	assert_int_equal(gzip_end(gzip), 0);
	/* The stream is the caller's, who may go on with it. */
	assert_int_equal(putc('!', out), '!');
	assert_int_equal(fclose(out), 0);
	assert_int_equal(packed[packed_length - 1], '!');
	assert_holds(packed, packed_length - 1, noise, at);
	free(packed);
}

/* What was written up to 32 KiB before need not be written again. */
static void what_repeats_itself_takes_no_room(void **state)
{
	enum { PERIOD = 30000 };
	static uint8_t bytes[4 * PERIOD];
	char *packed = NULL;
	size_t packed_length = 0;
	FILE *out = open_memstream(&packed, &packed_length);
	struct gzip *gzip = gzip_new(out);

	(void)state;
	for (size_t i = 0; i < 4; i++)
		memcpy(bytes + i * PERIOD, noise, PERIOD);
	write_bytes(gzip, bytes, sizeof(bytes), 1);
	assert_int_equal(gzip_end(gzip), 0);
	assert_int_equal(fclose(out), 0);
	assert_in_range(packed_length, PERIOD, PERIOD + PERIOD / 10);
	assert_holds(packed, packed_length, bytes, sizeof(bytes));
	free(packed);
}

static void what_cannot_be_written_is_told(void **state)
{
	FILE *out = fopen("/dev/full", "w");
	struct gzip *gzip;

	(void)state;
	assert_non_null(out);
	setvbuf(out, NULL, _IONBF, 0);
	gzip = gzip_new(out);
	message = noise;
	message_length = piece_length = 2 * CHUNK;
	assert_int_equal(gzip_write_message(gzip, NULL), -EIO);
	assert_int_equal(gzip_end(gzip), -EIO);
	/* Also if only the rest cannot. */
	clearerr(out);
	gzip = gzip_new(out);
	assert_int_equal(gzip_end(gzip), -EIO);
	fclose(out);
}

static void where_memory_is_short_there_is_no_stream(void **state)
{
	(void)state;
	allocation_fails_after(0);
	assert_null(gzip_new(stdout));
	assert_true(allocation_failed());
	assert_int_equal(gzip_end(NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_of_any_length_come_out_again),
		cmocka_unit_test(messages_come_one_behind_the_other_in_one_stream),
		cmocka_unit_test(what_repeats_itself_takes_no_room),
		cmocka_unit_test(what_cannot_be_written_is_told),
		cmocka_unit_test(where_memory_is_short_there_is_no_stream),
	};

	return cmocka_run_group_tests(tests, make_noise, NULL);
}
