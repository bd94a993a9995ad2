/* SPDX-License-Identifier: MIT */
#include "output/blocks/block_packer.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

static bool set_parameters(ZSTD_CCtx *zstd, int level)
{
	return !ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, level)) &&
	       !ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1));
}

int block_packer_init(struct block_packer *packer, size_t size, int level)
{
	*packer = (struct block_packer){
		.block = { .bytes = malloc(size) },
		.packed_size = ZSTD_compressBound(size),
		.zstd = ZSTD_createCCtx(),
	};
	packer->packed = malloc(packer->packed_size);
	if (!packer->block.bytes || !packer->packed || !packer->zstd)
		return -ENOMEM;
	return set_parameters(packer->zstd, level) ? 0 : -ENOMEM;
}

void block_packer_clear(struct block_packer *packer)
{
	ZSTD_freeCCtx(packer->zstd);
	free(packer->block.bytes);
	free(packer->packed);
}

size_t block_packer_pack(struct block_packer *packer)
{
	size_t length = ZSTD_compress2(packer->zstd, packer->packed, packer->packed_size, packer->block.bytes,
				       packer->block.length);

	packer->block.length = 0;
	return ZSTD_isError(length) ? 0 : length;
}
