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
};

/* Zeroed memory has none. */
struct process_heaps {
	struct vm_heap *at;
	size_t count;
};

/*
 * Read them. hold is NULL for a core file; name may be NULL. 0 or the error of heap_capture(): the last
 * heap is then the one that failed. Clear them in any case.
 */
int process_heaps_read(struct lua_process *process, struct hold *hold, pid_t pid, const char *name,
		       const struct heap_capture_options *options, struct process_heaps *heaps);
void process_heaps_clear(struct process_heaps *heaps);

#endif
