/* SPDX-License-Identifier: MIT */
/*
 * resident: which pages of a process have content, from /proc/PID/pagemap.
 *
 * Reading a page that was never touched makes the kernel map one, and there may be
 * gigabytes of those, such as in stacks of threads.
 *
 * Kernels with CONFIG_MEM_SOFT_DIRTY also mark in it what was written since all marks
 * were cleared (Documentation/admin-guide/mm/soft-dirty.rst).
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

/* As resident_next(), for pages that are no file's: where one is mapped, the process has changed its copy. */
bool resident_next_private(int fd, uint64_t *at, uint64_t end, uint64_t *ret_begin, uint64_t *ret_end);

/* Does this kernel mark pages that are written? It is tried on a page of ljspy's own. */
bool resident_has_marks(void);

/*
 * Clear the marks of all pages. The process then takes a minor fault when it first writes
 * to a page. False if that is not allowed: it needs the process's user, as its files in
 * /proc do.
 */
bool resident_clear_marks(pid_t pid);

/*
 * As resident_next(), for pages that may read otherwise than when the marks were cleared:
 * marked ones, and those without content. Writes by other processes to memory that they
 * share leave no marks.
 */
bool resident_next_written(int fd, uint64_t *at, uint64_t end, uint64_t *ret_begin, uint64_t *ret_end);

#endif
