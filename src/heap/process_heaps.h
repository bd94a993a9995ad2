/* SPDX-License-Identifier: MIT */
/* process_heaps: the heaps of all VMs of a process, or of a core file. */
#ifndef LJSPY_PROCESS_HEAPS_H
#define LJSPY_PROCESS_HEAPS_H

#include <stddef.h>
#include <sys/types.h>

#include "output/heap/heap_account.h"
#include "output/heap/heap_graph.h"
#include "src/heap/heap_capture.h"

/* Of one VM. */
struct vm_heap {
	struct heap_graph graph;
	struct heap_account account;
	int error; /* of heap_capture(); then the graph has the root alone, and all of gc_total is missing */
	uint64_t too_long_ns; /* with -EFBIG: how long it would be held */
};

/* Zeroed memory has none. */
struct process_heaps {
	struct vm_heap *at;
	size_t count;
};

/*
 * Read them. hold is NULL for a core file; name may be NULL. 0 if all are there, or some, and what the others are like is
 * told; else the first error. After one -EBUSY no more are tried: all VMs have the same threads. Clear them in any case.
 */
int process_heaps_read(struct lua_process *process, struct hold *hold, pid_t pid, const char *name,
		       const struct heap_capture_options *options, struct process_heaps *heaps);

/* The first heap that could not be read; NULL if all could. */
const struct vm_heap *process_heaps_missing(const struct process_heaps *heaps);
void process_heaps_clear(struct process_heaps *heaps);

#endif
