/* SPDX-License-Identifier: MIT */
#include "output/blocks/block_reader.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "output/blocks/block_header.h"

/* The largest block in the file, and the size of the read buffer. */
enum {
	PACKED_BLOCK_MAX = ZSTD_COMPRESSBOUND(BLOCK_BYTES_MAX) + 64,
	PACKED_SIZE = 2 * PACKED_BLOCK_MAX,
};

int block_reader_init(struct block_reader *reader, FILE *in)
{
	*reader = (struct block_reader){
		.in = in,
		.zstd = ZSTD_createDCtx(),
		.packed = malloc(PACKED_SIZE),
		.raw = malloc(BLOCK_BYTES_MAX),
	};
	block_reader_restart(reader);
	return reader->zstd && reader->packed && reader->raw ? 0 : -ENOMEM;
}

void block_reader_clear(struct block_reader *reader)
{
	ZSTD_freeDCtx(reader->zstd);
	free(reader->packed);
	free(reader->raw);
}

void block_reader_restart(struct block_reader *reader)
{
	reader->packed_at = reader->packed_length = 0;
	reader->block.at = reader->block.end = reader->raw;
}

/* Fill the buffer so that it holds a whole block, or the rest of the file. */
static int fill(struct block_reader *reader)
{
	if (reader->packed_length >= PACKED_BLOCK_MAX || feof(reader->in))
		return 0;
	memmove(reader->packed, reader->packed + reader->packed_at, reader->packed_length);
	reader->packed_at = 0;
	errno = 0;
	reader->packed_length += fread(reader->packed + reader->packed_length, 1,
				       PACKED_SIZE - reader->packed_length, reader->in);
	return ferror(reader->in) ? -EIO : 0;
}

/* Does the file end inside this block? */
static bool is_cut_off(const uint8_t *packed, size_t length)
{
	static const uint8_t magic[] = { 0x28, 0xb5, 0x2f, 0xfd }; /* ZSTD_MAGICNUMBER */

	return length < PACKED_BLOCK_MAX &&
	       memcmp(packed, magic, length < sizeof(magic) ? length : sizeof(magic)) == 0;
}

int block_reader_next(struct block_reader *reader)
{
	int error = fill(reader);
	unsigned long long content;
	const uint8_t *packed;
	size_t length;

	if (error)
		return error;
	packed = reader->packed + reader->packed_at;
	if (reader->packed_length == 0)
		return 0;
	length = ZSTD_findFrameCompressedSize(packed, reader->packed_length);
	if (ZSTD_isError(length))
		return is_cut_off(packed, reader->packed_length) ? 0 : -EBADMSG;
	content = ZSTD_getFrameContentSize(packed, length);
	if (content == 0 || content > BLOCK_BYTES_MAX ||
	    ZSTD_decompressDCtx(reader->zstd, reader->raw, BLOCK_BYTES_MAX, packed, length) != content)
		return -EBADMSG;
	reader->packed_at += length;
	reader->packed_length -= length;
	reader->block.at = reader->raw;
	reader->block.end = reader->raw + content;
	return 1;
}

int block_reader_at_end(struct block_reader *reader)
{
	int error = fill(reader);

	if (error)
		return error;
	return reader->block.at == reader->block.end && reader->packed_length == 0;
}
