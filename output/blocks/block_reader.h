/* SPDX-License-Identifier: MIT */
/* block_reader: read and unpack the blocks of ljspy's own files, one by one. */
#ifndef LJSPY_BLOCK_READER_H
#define LJSPY_BLOCK_READER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <zstd.h>

#include "output/blocks/record_bytes.h"

struct block_reader {
	FILE *in;
	ZSTD_DCtx *zstd;
	uint8_t *packed, *raw;
	size_t packed_at, packed_length; /* bytes of the file that are read and not yet used */
	struct record_source block;      /* the rest of it, in raw */
};

/* The stream is borrowed. 0 or -ENOMEM. Clear the reader in any case. */
int block_reader_init(struct block_reader *reader, FILE *in);
void block_reader_clear(struct block_reader *reader);

/* The stream is at a block now: forget what was read before. */
void block_reader_restart(struct block_reader *reader);

/*
 * Unpack the next block. 1; 0 if the file ends before it, or within it; -EBADMSG if the file is damaged;
 * -EIO (the stream's own error is in errno).
 */
int block_reader_next(struct block_reader *reader);

/* Does nothing follow what was read of the block? 1; 0 if something does; -EIO, as above. */
int block_reader_at_end(struct block_reader *reader);

#endif
