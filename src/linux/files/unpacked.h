/* SPDX-License-Identifier: MIT */
/*
 * unpacked: programs in memory that no file holds as they are.
 *
 * Packers such as UPX unpack a program to memory of its own, with its ELF headers at the beginning.
 */
#ifndef LJSPY_UNPACKED_H
#define LJSPY_UNPACKED_H

#include <stddef.h>

#include "memory/memory.h"
#include "src/linux/proc/maps.h"

enum { UNPACKED_MAX = 8 };

/* No path of a file is so. */
#define UNPACKED_NAME "unpacked program"

/*
 * The programs that a process has mapped from no file, all there and with code, so far as there is room: how
 * many. They are files without inode, by that name. *ret_more: how many have no room. memory is the
 * process's.
 */
size_t unpacked_find(const struct maps *maps, struct memory *memory,
		     struct mapped_file ret_files[static UNPACKED_MAX], size_t *ret_more);

#endif
