/* SPDX-License-Identifier: MIT */
/*
 * charts: the last minutes, a line each: CPU time, by state of the VM, and the size of the heap.
 *
 * Makes texts; knows nothing of terminals.
 */
#ifndef LJSPY_TOP_CHARTS_H
#define LJSPY_TOP_CHARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/top/history.h"

enum {
	CHARTS_MAX = VM_STATE_COUNT + 2, /* CPU and heap besides the states */
	CHART_CELLS_MAX = 128,
	CHART_TEXT_SIZE = 32 + 3 * CHART_CELLS_MAX + 1,
	CHART_HEAD_COLUMNS = 20, /* before the line: its name and its latest value */
};

struct chart {
	int state; /* the line is about CPU time in this state; negative: of something else */
	char text[CHART_TEXT_SIZE]; /* UTF-8, or ASCII */
};

/*
 * Make up to count charts of up to columns columns each: CPU first, then what of the states took
 * most, and the heap last. Returns how many there are. *ret_seconds is the time that the lines
 * cover; 0 if nothing is known yet, and then there is no chart.
 */
size_t charts_make(const struct history *history, uint64_t now_ns, size_t count, size_t columns, bool utf8,
		   struct chart ret_charts[static CHARTS_MAX], unsigned int *ret_seconds);

#endif
