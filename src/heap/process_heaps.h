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
	int error;            /* of heap_capture(); then its account says that it is missing */
	uint64_t too_long_ns; /* with -EFBIG: how long it would be held */
};

/* Zeroed memory has none. */
struct process_heaps {
	struct vm_heap *at;
	size_t count;
};

/*
 * Read them. hold is NULL for a core file; name may be NULL. 0 if at least one heap is there; `.error` marks
 * those that are missing. Else the first error. Small ones are read first. Once tries that ended with -EBUSY
 * have taken too long, the process is not held for those that are left: they are there if they do not change.
 * Clear them in any case.
 */
int process_heaps_read(struct lua_process *process, struct hold *hold, pid_t pid, const char *name,
		       const struct heap_capture_options *options, struct process_heaps *heaps);

/* How many could not be read. */
size_t process_heaps_missing(const struct process_heaps *heaps);

/* Of those with this error the one that would be held longest; NULL if there is none. */
const struct vm_heap *process_heaps_missing_by(const struct process_heaps *heaps, int error);

void process_heaps_clear(struct process_heaps *heaps);

#endif
