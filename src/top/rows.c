/* SPDX-License-Identifier: MIT */
#include "src/top/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"

struct row *rows_append(struct rows *rows)
{
	struct row *grown = array_grow(rows->rows, &rows->size, rows->count + 1, sizeof(*grown));

	if (!grown)
		return NULL;
	rows->rows = grown;
	rows->rows[rows->count] = (struct row){ 0 };
	return &rows->rows[rows->count++];
}

bool rows_show_one(const struct rows_options *options)
{
	return options->list != ROWS_THREADS && (options->pid || options->tid);
}

void rows_clear(struct rows *rows)
{
	free(rows->rows);
	*rows = (struct rows){ 0 };
}

/*---- Trends ----*/

/* Three standard errors: with dozens of rows every second, two would let arrows flicker. */
static const double trend_errors = 3, trend_min = 0.01;

enum trend rows_trend(const struct rows *rows, uint64_t ns, uint64_t late_ns)
{
	double early_whole = (double)(rows->totals.cpu_ns - rows->whole_late_ns);
	double late_whole = (double)rows->whole_late_ns;
	double early_count = (double)(rows->totals.samples - rows->samples_late),
	       late_count = (double)rows->samples_late;
	double share, change, error;

	if (early_whole <= 0 || late_whole <= 0)
		return TREND_NONE;
	share = (double)ns / (double)rows->totals.cpu_ns;
	change = (double)late_ns / late_whole - (double)(ns - late_ns) / early_whole;
	error = sqrt(share * (1 - share) * (1 / early_count + 1 / late_count));
	if (fabs(change) < trend_min || fabs(change) <= trend_errors * error)
		return TREND_NONE;
	return change > 0 ? TREND_UP : TREND_DOWN;
}

/*---- Order ----*/

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_strings(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int compare_names(const struct row *a, const struct row *b)
{
	int order;

	if (!a->function || !b->function) {
		order = compare_strings(a->name, b->name);
		if (!order)
			order = compare_numbers(a->pid, b->pid);
		return order ? order : compare_numbers(a->tid, b->tid);
	}
	order = compare_strings(a->function->name, b->function->name);
	if (!order)
		order = compare_strings(a->function->file, b->function->file);
	if (!order)
		order = compare_numbers(a->function->firstline, b->function->firstline);
	if (!order)
		order = compare_numbers(a->line, b->line);
	return order;
}

/* Rows with equal times stand by their names, so that they do not swap places. */
int rows_compare(const struct row *a, const struct row *b, enum rows_sort sort)
{
	int own = compare_numbers(b->own_ns, a->own_ns);
	int total = compare_numbers(b->total_ns, a->total_ns);
	int order = sort == SORT_OWN && own ? own : sort != SORT_NAME ? total : 0;

	if (!order)
		order = compare_names(a, b);
	return order ? order : total;
}

static int compare_rows(const void *a, const void *b, void *sort)
{
	return rows_compare(a, b, *(enum rows_sort *)sort);
}

void rows_sort(struct row *rows, size_t count, enum rows_sort sort)
{
	if (count)
		qsort_r(rows, count, sizeof(*rows), compare_rows, &sort);
}
