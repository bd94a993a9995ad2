/* SPDX-License-Identifier: MIT */
/*
 * block_header: how ljspy's own files begin.
 *
 *	file    = header block*
 *	header  = 5c 2a 4d 18  0c 00 00 00	a skippable frame of 12 bytes
 *	          "LJSPY" kind:byte{3} version:u32	little-endian
 *	block   = zstd frame			with content size and checksum;
 *						its content is records
 *
 * So every such file is a Zstandard file, which `zstd -t` checks and `zstd -d` unpacks.
 *
 * The checksum covers a block's content. Of the compressed bytes some bits have no meaning: to change one
 * changes nothing that is read, and is not noticed. It does not cover the version: where a changed bit could
 * make it that of an older version, a record has to repeat it.
 */
#ifndef LJSPY_BLOCK_HEADER_H
#define LJSPY_BLOCK_HEADER_H

#include <stdint.h>
#include <stdio.h>

enum {
	BLOCK_HEADER_SIZE = 20,
	BLOCK_VERSION_OFFSET = 16, /* and the length of the magic before it */
	BLOCK_BYTES_MAX = 1 << 20, /* of a block's records; writers keep to it, readers refuse more */
};

/* The header up to its version. kind is a string literal of three characters. */
#define BLOCK_MAGIC(kind) "\x5c\x2a\x4d\x18\x0c\0\0\0LJSPY" kind

/*
 * Read the header at the stream's position. *ret_version is from 1 to newest. 0, -EIO (the stream's own
 * error is in errno), -EILSEQ (a file of another kind) or -EPROTONOSUPPORT (a newer version).
 */
int block_header_read(FILE *in, const char magic[static BLOCK_VERSION_OFFSET], uint32_t newest,
		      uint32_t *ret_version);

/* Make the header of a version. */
void block_header_make(const char magic[static BLOCK_VERSION_OFFSET], uint32_t version,
		       char ret_header[static BLOCK_HEADER_SIZE]);

#endif
