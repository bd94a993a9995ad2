/* SPDX-License-Identifier: MIT */
/*
 * present_memory: a process's memory without the pages that it does not have now.
 *
 * Reading another page would make the kernel map it, and the process larger.
 */
#ifndef LJSPY_PRESENT_MEMORY_H
#define LJSPY_PRESENT_MEMORY_H

#include "memory/memory.h"
#include "src/linux/pages/page_runs.h"

struct present_memory {
	struct memory memory; /* reads of absent pages fail with MEMORY_NOT_CAPTURED */
	struct memory *live;
	const struct page_runs *runs;
};

/* live and runs must outlive it. */
struct present_memory present_memory(struct memory *live, const struct page_runs *runs);

#endif
