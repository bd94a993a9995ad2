/* SPDX-License-Identifier: MIT */
/*
 * heap_growth: the same things in heaps of several moments, side by side.
 *
 * Moments are numbered in order of time; at least two. What has equal names is the same.
 */
#ifndef LJSPY_HEAP_GROWTH_H
#define LJSPY_HEAP_GROWTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/hash.h"
#include "output/heap_views/heap_groups.h"
#include "output/heap_views/heap_paths.h"

/* At one moment. held: retained bytes of a path, else bytes. */
struct heap_moment {
	uint64_t held;
	struct heap_sum sum;
};

struct heap_growth {
	bool in_chain;   /* a path of a chain that a table does not show; see heap_rows.h */
	bool is_of_many; /* because one above that stands for many things is shown */
	bool unheld;     /* a path of what nothing holds: the collector frees it */
	UT_hash_handle hh;
	struct heap_moment *moments;
	char name[]; /* unescaped */
};

struct heap_growths {
	size_t moment_count;
	struct heap_growth *rows; /* the next one is hh.next */
};

/* Add to what there is of this name at a moment. 0 or -ENOMEM. */
int heap_growths_add(struct heap_growths *growths, const char *name, size_t moment,
		     const struct heap_moment *more);
/*
 * The same for all groups, by bytes or by what they retain, and for all paths that retain at least min_bytes
 * or add up: see heap_folds.h.
 */
int heap_growths_add_groups(struct heap_growths *growths, const struct heap_group *groups, bool retained,
			    size_t moment);
int heap_growths_add_paths(struct heap_growths *growths, const struct heap_paths *paths, size_t moment,
			   uint64_t min_bytes);
/* Find out which are in_chain, from the paths of the last moment. */
void heap_growths_find_chains(struct heap_growths *growths, const struct heap_paths *paths);

/* What grew most from the first moment to the last comes first. */
void heap_growths_sort(struct heap_growths *growths);
void heap_growths_clear(struct heap_growths *growths);

/* From the first moment to the last. */
int64_t heap_growth_bytes(const struct heap_growths *growths, const struct heap_growth *growth);
int64_t heap_growth_count(const struct heap_growths *growths, const struct heap_growth *growth);
/* Is there more at each moment than at the one before? */
bool heap_growth_is_steady(const struct heap_growths *growths, const struct heap_growth *growth);

#endif
