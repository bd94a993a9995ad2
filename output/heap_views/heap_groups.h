/* SPDX-License-Identifier: MIT */
/*
 * heap_groups: sums of objects by a name.
 */
#ifndef LJSPY_HEAP_GROUPS_H
#define LJSPY_HEAP_GROUPS_H

#include <stdint.h>

#include "memory/hash.h"
#include "output/heap_views/heap_paths.h"

/* The path that most of a group has, and how much of it: bytes of what it holds, or how many it finalizes. */
struct heap_most {
	uint32_t path; /* HEAP_PATHS_ROOT: there is none */
	uint64_t amount;
};

struct heap_group {
	struct heap_sum sum;
	uint64_t retained; /* by them together; 0 if it is not asked */
	struct heap_sum
		unheld;      /* of coroutines: how many nothing holds, and how much of retained is by them */
	uint64_t finalizers; /* how many of them have one */
	uint64_t largest;    /* bytes of the largest */
	uint32_t number;     /* from 1 on, in the order in which the groups were made */
	struct heap_most held, finalizer; /* of groups by C type; see heap_cdata.h */
	UT_hash_handle hh;
	char name[]; /* unescaped */
};

/* Empty groups are NULL. The first is the list's first after sorting; the next one is hh.next. */

/* The group of this name, a new one if there is none. NULL when memory is short. */
struct heap_group *heap_groups_get(struct heap_group **groups, const char *name);
/* By what they retain, then by bytes, then by name. */
void heap_groups_sort(struct heap_group **groups);
void heap_groups_clear(struct heap_group **groups);

#endif
