/* SPDX-License-Identifier: MIT */
/*
 * heap_summary: what there is to say of one VM's heap, without its objects.
 *
 * Everything is by bytes: those of the objects themselves, unless it says retained.
 */
#ifndef LJSPY_HEAP_SUMMARY_H
#define LJSPY_HEAP_SUMMARY_H

#include <stdint.h>

#include "output/heap/heap_account.h"
#include "output/heap/heap_graph.h"
#include "output/heap_views/heap_groups.h"
#include "output/heap_views/heap_paths.h"

enum {
	HEAP_LARGEST_MAX = 20,
	HEAP_LONG_STRING = 4096, /* bytes of an object: from here on a string is long */
	HEAP_SPARSE_SLOTS = 16,  /* a table with fewer slots is not called sparse, */
	HEAP_SPARSE_BYTES = 256, /* nor a string.buffer with less room, */
	HEAP_SPARSE_PART = 4,    /* nor one that uses more than a fourth of it */
};

struct heap_kind_sum {
	struct heap_sum sum;
	uint64_t largest; /* bytes */
};

/* A single object. */
struct heap_large {
	uint64_t bytes, retained;
	uint32_t path; /* a node of the paths */
	uint32_t slots, used;
	uint8_t kind;
};

/* What is allocated and not used. */
struct heap_waste {
	struct heap_group *tables; /* sparse ones, by path: sum.bytes is what is empty of them */
	struct heap_sum sparse;    /* all of these: bytes as there */
	struct heap_group
		*room; /* string.buffers of which little is used, in the same way: they were once larger */
	struct heap_sum buffers;
	struct heap_sum long_strings;
	uint64_t finalizers; /* objects that have one */
};

struct heap_summary {
	struct heap_account account; /* its texts are owned */
	struct heap_paths paths;
	struct heap_sum all;
	struct heap_sum unheld; /* of all: what nothing holds, or only weakly */
	struct heap_kind_sum kinds[HEAP_KIND_COUNT];
	/* Are there coroutines told by their function? And by where they stand, as in old files? */
	bool has_functions, has_places;
	/* Groups, sorted. */
	struct heap_group *modules;    /* by what is held in them, "" for what is in none */
	struct heap_group *coroutines; /* by where they stand, with what they retain */
	struct heap_group *closures;   /* functions by their definition */
	struct heap_group *cdata;      /* by C type */
	struct heap_group *own;        /* the VM's own memory */
	struct heap_waste waste;
	struct heap_large largest[HEAP_LARGEST_MAX]; /* in descending order; one for each path */
	unsigned int largest_count;
};

/* Analyse a heap. Copies what it needs. 0 or a negative errno. */
int heap_summary_make(const struct heap_graph *graph, const struct heap_account *account,
		      struct heap_summary *ret_summary);
/* How many objects there are: all but the VM's own memory. */
uint64_t heap_summary_objects(const struct heap_summary *summary);
void heap_summary_clear(struct heap_summary *summary); /* one that is all zero is allowed */

#endif
