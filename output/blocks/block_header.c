/* SPDX-License-Identifier: MIT */
#include "output/blocks/block_header.h"

#include <errno.h>
#include <string.h>

enum { VERSION_BYTES = BLOCK_HEADER_SIZE - BLOCK_VERSION_OFFSET };

int block_header_read(FILE *in, const char magic[static BLOCK_VERSION_OFFSET], uint32_t newest,
		      uint32_t *ret_version)
{
	unsigned char header[BLOCK_HEADER_SIZE];
	uint32_t version = 0;

	errno = 0;
	if (fread(header, 1, sizeof(header), in) != sizeof(header))
		return ferror(in) ? -EIO : -EILSEQ;
	if (memcmp(header, magic, BLOCK_VERSION_OFFSET) != 0)
		return -EILSEQ;
	for (unsigned int i = 0; i < VERSION_BYTES; i++)
		version |= (uint32_t)header[BLOCK_VERSION_OFFSET + i] << 8 * i;
	if (version == 0)
		return -EILSEQ;
	if (version > newest)
		return -EPROTONOSUPPORT;
	*ret_version = version;
	return 0;
}

void block_header_make(const char magic[static BLOCK_VERSION_OFFSET], uint32_t version,
		       char ret_header[static BLOCK_HEADER_SIZE])
{
	memcpy(ret_header, magic, BLOCK_VERSION_OFFSET);
	for (unsigned int i = 0; i < VERSION_BYTES; i++)
		ret_header[BLOCK_VERSION_OFFSET + i] = (char)(version >> 8 * i);
}
