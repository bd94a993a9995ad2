/* SPDX-License-Identifier: MIT */
/*
 * file_identity: shows whether modules of several processes are the same file.
 *
 * Processes that ljspy profiles together mostly run the same programs, so it
 * finds out the facts about a file once. Two mappings are of one file if device
 * and inode, mapped extent, mtime and the first bytes in memory are equal; these
 * bytes include the build id. So neither a reused inode number nor an
 * overwritten file passes for another file.
 */
#ifndef LJSPY_FILE_IDENTITY_H
#define LJSPY_FILE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/memory.h"
#include "unwind/elf/image.h"

enum { FILE_HEAD_BYTES = 1024 };

/* Compared and hashed as bytes, so it has no padding. */
struct file_identity {
	uint64_t device, inode; /* 0 for the vdso */
	uint64_t extent;        /* bytes from the first mapping to the last */
	uint64_t changed_ns;    /* the module's */
	uint8_t head[FILE_HEAD_BYTES];
};

/* False if the module's first bytes cannot be read. */
bool file_identity_read(const struct module *module, struct memory *live, struct file_identity *ret_identity);

#endif
