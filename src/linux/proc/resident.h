/* SPDX-License-Identifier: MIT */
/*
 * resident: which pages of a process have content, from /proc/PID/pagemap.
 *
 * Reading a page that was never touched makes the kernel map one, and there may be
 * gigabytes of those, such as in stacks of threads.
 */
#ifndef LJSPY_RESIDENT_H
#define LJSPY_RESIDENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Open the pagemap: a descriptor to be closed, or a negative errno. */
int resident_open(pid_t pid);

/*
 * Find the next run of pages in memory or swap within [*at, end), and move *at behind
 * it. False if there is none. Pages whose entry cannot be read count as in memory.
 * Addresses are multiples of the page size.
 */
bool resident_next(int fd, uint64_t *at, uint64_t end, uint64_t *ret_begin, uint64_t *ret_end);

#endif
