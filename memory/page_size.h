/* SPDX-License-Identifier: MIT */
/*
 * page_size: how large the kernel's pages are, in bytes.
 *
 * 4 KiB on x86-64; on arm64 the kernel's build chooses 4, 16 or 64 KiB. Code that only copies
 * memory in pieces may take 4 KiB for a page everywhere, since larger ones are multiples of it.
 */
#ifndef LJSPY_PAGE_SIZE_H
#define LJSPY_PAGE_SIZE_H

#include <stdint.h>
#include <unistd.h>

static inline uint64_t page_size(void)
{
	long bytes = sysconf(_SC_PAGESIZE);

	return bytes > 0 ? (uint64_t)bytes : 4096;
}

#endif
