/* SPDX-License-Identifier: MIT */
/*
 * file_identity: telling that modules of several processes are one file.
 *
 * Processes that are looked at together mostly run the same programs. What
 * belongs to a file rather than to a process is worth finding out once; that
 * two mappings are of one file is told by where the file lies, how much of it
 * is mapped, when it was changed, and by how it begins in memory, where the
 * build id is. So neither a number that the file system has given out again
 * nor a file that was overwritten is taken for another.
 */
#ifndef LJSPY_FILE_IDENTITY_H
#define LJSPY_FILE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/errand.h"
#include "memory/memory.h"
#include "unwind/elf/image.h"

enum { FILE_HEAD_BYTES = 1024 };

/* Equal as bytes for the same file, so it has no padding. */
struct file_identity {
	uint64_t device, inode;		/* 0 for the vdso */
	uint64_t extent;		/* bytes from the first mapping to the last */
	uint64_t changed_ns;		/* the file's mtime; 0 if it cannot be seen */
	uint8_t head[FILE_HEAD_BYTES];
};

/* False if the module's beginning cannot be read. errands may be NULL. */
bool file_identity_read(const struct module *module, struct memory *live, struct errands *errands,
			struct file_identity *ret_identity);

#endif
