/* SPDX-License-Identifier: MIT */
/*
 * heap_subject: what reports show of heaps, and how.
 */
#ifndef LJSPY_HEAP_SUBJECT_H
#define LJSPY_HEAP_SUBJECT_H

#include <stdbool.h>
#include <stddef.h>

#include "output/heap/heap_account.h"
#include "output/heap/heap_graph.h"
#include "output/heap_views/heap_summary.h"

/* One VM's heap. Zero it, then heap_subject_make(). */
struct heap_subject {
	struct heap_graph graph; /* has no nodes once it is dropped */
	struct heap_summary summary;
};

/* What the stacks of a picture weigh. */
enum heap_measure {
	HEAP_BY_OWN,      /* bytes, along the paths */
	HEAP_BY_RETAINED, /* bytes, below what alone holds them */
	HEAP_BY_COUNT,    /* objects, along the paths */
	HEAP_MEASURE_COUNT
};

/* What is the outermost frame of a stack? */
enum heap_grouping {
	HEAP_GROUP_NONE, /* the root of the path */
	HEAP_GROUP_MODULE,
	HEAP_GROUP_TYPE,
	HEAP_GROUP_COROUTINE, /* the innermost coroutine on the path; other paths are left out */
	HEAP_GROUPING_COUNT
};

/* How to show it. A format ignores what does not apply to it. All zero is a good view. */
struct heap_view {
	enum heap_measure measure;
	enum heap_grouping group;
	bool inverted;            /* what is held at the root, with its holders on top */
	double min_percent;       /* leave out smaller shares of a picture */
	bool strings;             /* the contents of strings, in formats for objects */
	unsigned int rows;        /* of each table of a text; 0: a good number */
	const char *command_line; /* of ljspy; NULL if unknown */
};

/* The VMs of one moment: one side of a comparison, or one of a series. */
struct heap_side {
	const char *name; /* of the file; NULL if it has none */
	const struct heap_subject *subjects;
	size_t count;
};

/*
 * "retained", "own", "count"; "module", "type", "coroutine". False, with nothing written, for another word.
 */
bool heap_measure_by_name(const char *name, enum heap_measure *ret_measure);
bool heap_grouping_by_name(const char *name, enum heap_grouping *ret_group);

/*
 * Take over a graph and analyse it. keep_graph: keep it for a format that needs it; else it is freed. On
 * failure, too, the graph is freed. 0 or a negative errno.
 */
int heap_subject_make(struct heap_graph *graph, const struct heap_account *account, bool keep_graph,
		      struct heap_subject *ret_subject);
void heap_subject_clear(struct heap_subject *subject);

/* Which paths read otherwise on one side than on another? */
struct heap_unlike {
	bool coroutines; /* one tells them by where they stand, as old files do, another by their function */
	bool functions_in_c; /* one tells them by name, another, as old files do, not at all */
};

struct heap_unlike heap_sides_unlike(const struct heap_side *sides, size_t count);

#endif
