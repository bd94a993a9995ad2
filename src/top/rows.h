/* SPDX-License-Identifier: MIT */
/*
 * rows: what the live view shows of the samples at hand.
 *
 * Times are CPU time. A row's own time is that of samples whose leaf it is,
 * its total that of samples it is in, counted once however often it is there.
 */
#ifndef LJSPY_TOP_ROWS_H
#define LJSPY_TOP_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "output/recording/sample_source.h"
#include "output/sample/sample.h"
#include "src/top/filter.h"

enum rows_list {
	ROWS_FUNCTIONS,
	ROWS_TREE,
	ROWS_THREADS,
	ROWS_LIST_COUNT
};

enum rows_sort {
	SORT_OWN,
	SORT_TOTAL,
	SORT_NAME,
	SORT_COUNT
};

enum { ROW_NAME_SIZE = 64 };

struct row {
	const struct function *function;	/* NULL: a process or a thread */
	uint32_t line;
	uint64_t own_ns, total_ns;
	bool compiled;			/* mostly machine code of traces */

	/* Of a tree. */
	uint32_t depth;
	uint64_t path;			/* tells the row from all others, for as long as ljspy runs */
	bool has_children, is_folded;

	/* Of threads; tid is 0 for a process as a whole. */
	pid_t pid, tid;
	char name[ROW_NAME_SIZE];	/* untrusted */
};

/* Paths of rows whose children are not shown. */
struct folded_paths;

struct rows_options {
	enum rows_list list;
	enum rows_sort sort;
	bool by_line;
	uint64_t since_ns;		/* only samples from then on (CLOCK_MONOTONIC) */
	pid_t pid, tid;			/* only of that process or thread; 0: any */
	const struct filter *filter;
	const struct folded_paths *folded;
};

/* All samples of the time, filtered or not. */
struct totals {
	uint64_t samples;
	uint64_t cpu_ns;
	uint64_t lost_ns;		/* of samples with an unknown part */
	uint64_t by_state[VM_STATE_COUNT];
	size_t process_count, thread_count;	/* that have run */
};

struct rows {
	struct row *rows;		/* owned */
	size_t count, size;
	uint64_t whole_ns;		/* what shares are of: samples of the chosen process or thread */
	struct totals totals;
};

/*
 * Replace what rows holds. In a tree, stacks without a frame that passes the
 * filter are left out. 0, or a negative errno and there are fewer rows.
 */
int rows_fill(struct rows *rows, struct sample_source *source, const struct rows_options *options);
void rows_clear(struct rows *rows);

/* NULL when memory is short. */
struct folded_paths *folded_paths_new(void);
void folded_paths_free(struct folded_paths *folded);
void folded_paths_set(struct folded_paths *folded, uint64_t path, bool is_folded);

#endif
