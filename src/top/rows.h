/* SPDX-License-Identifier: MIT */
/*
 * rows: the list that the live view makes of the collected samples.
 *
 * Times are CPU time. A row's own time is that of the samples whose leaf it is; its
 * total is that of all samples that contain it, each counted once.
 */
#ifndef LJSPY_TOP_ROWS_H
#define LJSPY_TOP_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "output/sample/sample.h"
#include "output/bills/gc_bill.h"
#include "src/top/filter.h"

enum rows_list { ROWS_FUNCTIONS, ROWS_TREE, ROWS_THREADS, ROWS_LIST_COUNT };

enum rows_sort { SORT_OWN, SORT_TOTAL, SORT_NAME, SORT_COUNT };

enum { ROW_NAME_SIZE = 64 };

struct row {
	const struct function *function; /* NULL: a process or a thread */
	uint32_t line;
	uint64_t own_ns, total_ns;
	uint64_t own_late_ns, total_late_ns; /* of these since middle_ns; 0 in a tree */
	bool compiled;                       /* more than half of its time is in traces */

	/* Of a tree. */
	uint32_t depth;
	uint64_t path; /* identifies the row while ljspy runs */
	bool has_children, is_folded;

	/* Of threads; tid is 0 for a process as a whole. */
	pid_t pid, tid;
	char name[ROW_NAME_SIZE]; /* untrusted */
};

/* Paths of rows whose children are not shown. */
struct folded_paths;

struct rows_options {
	enum rows_list list;
	enum rows_sort sort;
	bool by_line;
	uint64_t since_ns;  /* only samples since then (CLOCK_MONOTONIC) */
	uint64_t middle_ns; /* trends compare what is before with what is after */
	pid_t pid, tid;     /* only that process or thread; 0: any */
	const struct filter *filter;
	const struct folded_paths *folded;
};

/* Is one process or thread shown alone? The list of threads shows all of them, whichever was chosen in it. */
bool rows_show_one(const struct rows_options *options);

/* Of all samples since since_ns, filtered or not, of the process or thread that is shown alone, if one is. */
struct totals {
	uint64_t samples;
	uint64_t cpu_ns;  /* 100 % of a share */
	uint64_t lost_ns; /* of samples with an unknown part */
	uint64_t by_state[VM_STATE_COUNT];
	struct gc_bill gc;
	size_t process_count, thread_count; /* of those that used CPU time, shown or not */
};

struct rows {
	struct row *rows; /* owned */
	size_t count, size;
	struct totals totals;
	uint64_t whole_late_ns, samples_late; /* of these since middle_ns */
};

/* Append a row, all zero; rows owns it. NULL when memory is short. */
struct row *rows_append(struct rows *rows);

void rows_clear(struct rows *rows);

/* Compare as for qsort(), and sort. SORT_OWN and SORT_TOTAL put the largest first. */
int rows_compare(const struct row *a, const struct row *b, enum rows_sort sort);
void rows_sort(struct row *rows, size_t count, enum rows_sort sort);

/* How a share has changed since the middle of the period. */
enum trend { TREND_NONE, TREND_UP, TREND_DOWN };

/*
 * The trend of a row's time, own_ns with own_late_ns or total_ns with total_late_ns. TREND_NONE
 * if noise may explain the change, or if it is less than a percent of all.
 */
enum trend rows_trend(const struct rows *rows, uint64_t ns, uint64_t late_ns);

/* NULL when memory is short. */
struct folded_paths *folded_paths_new(void);
void folded_paths_free(struct folded_paths *folded);
void folded_paths_set(struct folded_paths *folded, uint64_t path, bool is_folded);

#endif
