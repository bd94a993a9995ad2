/* SPDX-License-Identifier: MIT */
/*
 * resident: which pages of a process hold anything, from /proc/PID/pagemap.
 *
 * Reading a page that was never touched would make the kernel map one, and
 * there may be gigabytes of those, such as the stacks of threads.
 */
#ifndef LJSPY_RESIDENT_H
#define LJSPY_RESIDENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A descriptor to be closed, or a negative errno. */
int resident_open(pid_t pid);

/*
 * The next run of pages in memory or swap within [*at, end); *at is moved
 * behind it. False if there is none. Where it cannot be known, everything is
 * in memory. Addresses are multiples of the page size.
 */
bool resident_next(int fd, uint64_t *at, uint64_t end, uint64_t *ret_begin, uint64_t *ret_end);

#endif
