/* SPDX-License-Identifier: MIT */
/* block_packer: fill a block of ljspy's own files with records, and pack it. */
#ifndef LJSPY_BLOCK_PACKER_H
#define LJSPY_BLOCK_PACKER_H

#include <stddef.h>

#include <zstd.h>

#include "output/blocks/record_bytes.h"

struct block_packer {
	struct record_sink block;
	char *packed; /* the last block that was packed */
	size_t packed_size;
	ZSTD_CCtx *zstd;
};

/* A block with room for size bytes, packed at a level of Zstandard's. 0 or -ENOMEM. Clear it in any case. */
int block_packer_init(struct block_packer *packer, size_t size, int level);
void block_packer_clear(struct block_packer *packer);

/* Pack the block, which is empty afterwards. The length of packed; 0 when memory is short. */
size_t block_packer_pack(struct block_packer *packer);

#endif
