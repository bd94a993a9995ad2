/* SPDX-License-Identifier: MIT */
#include "output/labels/gzip.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define ZLIB_CONST
#include <zlib.h>

enum {
	CHUNK_SIZE = 65536,
	WINDOW_BITS_GZIP = 15 + 16, /* the largest window, and a gzip header: zlib.h, deflateInit2 */
	MEMORY_LEVEL = 8,
};

struct gzip {
	ProtobufCBuffer buffer; /* first: protobuf-c passes its address to append() */
	FILE *out;
	z_stream stream;
	unsigned char chunk[CHUNK_SIZE];
};

/* If writing fails, the stream's error flag remembers it. */
static void compress_input(struct gzip *gzip, int flush)
{
	do {
		gzip->stream.next_out = gzip->chunk;
		gzip->stream.avail_out = CHUNK_SIZE;
		deflate(&gzip->stream, flush);
		fwrite(gzip->chunk, 1, CHUNK_SIZE - gzip->stream.avail_out, gzip->out);
	} while (gzip->stream.avail_out == 0);
}

static void append(ProtobufCBuffer *buffer, size_t length, const uint8_t *data)
{
	struct gzip *gzip = (struct gzip *)buffer;

	while (length > 0) {
		uInt part = length < CHUNK_SIZE ? (uInt)length : CHUNK_SIZE;

		gzip->stream.next_in = data;
		gzip->stream.avail_in = part;
		compress_input(gzip, Z_NO_FLUSH);
		data += part;
		length -= part;
	}
}

struct gzip *gzip_new(FILE *out)
{
	struct gzip *gzip = calloc(1, sizeof(*gzip));

	if (!gzip)
		return NULL;
	gzip->buffer.append = append;
	gzip->out = out;
	if (deflateInit2(&gzip->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_BITS_GZIP, MEMORY_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK) {
		free(gzip);
		return NULL;
	}
	return gzip;
}

int gzip_write_message(struct gzip *gzip, const ProtobufCMessage *message)
{
	protobuf_c_message_pack_to_buffer(message, &gzip->buffer);
	return ferror(gzip->out) ? -EIO : 0;
}

int gzip_end(struct gzip *gzip)
{
	int error;

	if (!gzip)
		return 0;
	gzip->stream.avail_in = 0;
	compress_input(gzip, Z_FINISH);
	error = ferror(gzip->out) ? -EIO : 0;
	deflateEnd(&gzip->stream);
	free(gzip);
	return error;
}
