/* SPDX-License-Identifier: MIT */
/*
 * page_runs: which pages of a process are in memory, and which of them it shares.
 *
 * From /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst), as runs of pages
 * in ascending order. Pages that are swapped out are in none. The kernel's page of
 * zeros, which stands for pages that were read but never written, is no memory of the
 * process; it is left out where it can be told.
 */
#ifndef LJSPY_PAGE_RUNS_H
#define LJSPY_PAGE_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PAGE_RUNS_PAGE = 4096 }; /* the smallest page; the kernel's may be a multiple (memory_page_size()) */

struct page_run {
	uint64_t begin, end;
	bool exclusive; /* no other process has these pages */
};

/* All zero: none. */
struct page_runs {
	struct page_run *runs;
	size_t count, room;
};

/* Bytes. */
struct page_sum {
	uint64_t exclusive, shared;
};

void page_runs_clear(struct page_runs *runs);

/* Append a run; it begins at or after the end of the last one. 0 or -ENOMEM. */
int page_runs_add(struct page_runs *runs, uint64_t begin, uint64_t end, bool exclusive);

/*
 * Append what is in memory of [begin, end), by the pagemap. has_shared_pages: other
 * processes have some of these pages. 0, or a negative errno.
 */
int page_runs_read(struct page_runs *runs, int pagemap, uint64_t begin, uint64_t end, bool has_shared_pages);

/* The run that contains the address, or the first one after it; NULL if there is none. */
const struct page_run *page_runs_from(const struct page_runs *runs, uint64_t address);

/* How much of [begin, end) is in memory. */
struct page_sum page_runs_sum(const struct page_runs *runs, uint64_t begin, uint64_t end);

#endif
