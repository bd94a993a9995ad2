/* SPDX-License-Identifier: MIT */
/* heap_looks: several looks at the heaps of one process, and what grows from one to the next. */
#ifndef LJSPY_HEAP_LOOKS_H
#define LJSPY_HEAP_LOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/findings/evidence.h"
#include "output/heap_views/heap_summary.h"

enum { HEAP_LOOKS_MAX = 3 };

/* Zeroed memory has none. */
struct heap_looks {
	struct heap_look {
		uint64_t time_ns;
		struct heap_summary *vms;
		size_t count;
	} at[HEAP_LOOKS_MAX];
	size_t count;
};

/* Begin a look at this many VMs at most. 0 or -ENOMEM. */
int heap_looks_begin(struct heap_looks *looks, uint64_t time_ns, size_t count);

/*
 * Add a VM's heap to the last look. 0, -ENOMEM, or -ENODATA if something of it was not found, which would
 * seem to grow until the next look. A VM that is missing altogether is left out of all looks.
 */
int heap_looks_add(struct heap_looks *looks, const struct heap_graph *graph,
		   const struct heap_account *account);

/* The last look has failed: drop it. */
void heap_looks_drop(struct heap_looks *looks);
void heap_looks_clear(struct heap_looks *looks);

/*
 * Compare all looks, whose paths tell the same keys apart from then on; replaces what evidence there is.
 * 0 or -ENOMEM.
 */
int heap_looks_compare(struct heap_looks *looks, struct heap_evidence *evidence);

#endif
