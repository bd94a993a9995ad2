/* SPDX-License-Identifier: MIT */
#include "output/views/comparison.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "output/labels/escape.h"
#include "output/labels/frame_label.h"
#include "output/sample/amount_text.h"
#include "output/views/tally.h"

enum { NEEDED_TIMES_MAX = 10000 }; /* a change that needs a longer recording is none */

/* A share of all time on both sides, 0 to 1. */
struct change {
	double before, after;
	double error;     /* one standard error of the difference */
	double p;         /* chance of such a difference by noise, before correction */
	bool significant; /* after correction */
};

struct comparison_row {
	struct tally_key key;
	struct change own, total;
};

/* Both sides' tallies, and the rows that compare them. Free with comparison_clear(). */
struct comparison {
	struct tally before, after;
	struct comparison_row *rows;
	size_t count;
	double min_share;
};

static const struct tally_weight nothing;

/*---- The test ----*/

static double square(double value)
{
	return value * value;
}

/*
 * The error of a difference if nothing has changed: both are parts of one recording then, and what one of
 * them has not met may be as heavy there as in the other. The mean weight is the unit, as rates may differ.
 */
static double pooled_error(const struct tally *before, const struct tally_weight *weight_before,
			   const struct tally *after, const struct tally_weight *weight_after)
{
	const double count_before = (double)before->samples, count_after = (double)after->samples;
	const double unit_before = (double)before->all_ns / count_before;
	const double unit_after = (double)after->all_ns / count_after, all = count_before + count_after;
	const double share = ((double)weight_before->ns / unit_before +
			      (double)weight_after->ns / unit_after) /
			     all;
	const double squares = weight_before->sample_squares / square(unit_before) +
			       weight_after->sample_squares / square(unit_after);
	const double all_squares = before->sample_squares / square(unit_before) +
				   after->sample_squares / square(unit_after);

	return tally_error_of(share, squares / square(all), all_squares / square(all)) *
	       sqrt(all / count_before + all / count_after);
}

static struct change compare(const struct tally *before, const struct tally_weight *weight_before,
			     const struct tally *after, const struct tally_weight *weight_after)
{
	struct change change = {
		.before = tally_share(before, weight_before->ns),
		.after = tally_share(after, weight_after->ns),
		.p = 1,
	};

	if (before->all_ns == 0 || after->all_ns == 0)
		return change;
	change.error = fmax(
		pooled_error(before, weight_before, after, weight_after),
		hypot(tally_steady_error(before, weight_before), tally_steady_error(after, weight_after)));
	if (change.error > 0)
		change.p = erfc(fabs(change.after - change.before) / change.error / M_SQRT2);
	return change;
}

/* The number of standard errors that noise exceeds with the chance p, both ways: by bisection. */
static double errors_of_p(double p)
{
	double low = 0, high = 40;

	for (int i = 0; i < 60; i++) {
		double middle = (low + high) / 2;

		if (erfc(middle / M_SQRT2) > p)
			low = middle;
		else
			high = middle;
	}
	return high;
}

static int compare_p(const void *a, const void *b)
{
	double left = (*(struct change *const *)a)->p, right = (*(struct change *const *)b)->p;

	return left < right ? -1 : left > right;
}

/*
 * Holm's correction: in ascending order of p, the i-th of m (from 0) passes if
 * it is at most level / (m - i). The first that fails ends the test. 0 or -ENOMEM.
 */
static int correct(struct comparison_row *rows, size_t count)
{
	struct change **changes = calloc(2 * count + 1, sizeof(struct change *));

	if (!changes)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		changes[2 * i] = &rows[i].own;
		changes[2 * i + 1] = &rows[i].total;
	}
	qsort(changes, 2 * count, sizeof(struct change *), compare_p);
	for (size_t i = 0; i < 2 * count; i++) {
		if (changes[i]->p > COMPARISON_LEVEL / (double)(2 * count - i))
			break;
		changes[i]->significant = true;
	}
	free(changes);
	return 0;
}

/*---- Rows ----*/

static struct comparison_row make_row(const struct tally_key *key, const struct tally *before,
				      const struct tally_row *row_before, const struct tally *after,
				      const struct tally_row *row_after)
{
	return (struct comparison_row){
		.key = *key,
		.own = compare(before, row_before ? &row_before->own : &nothing, after,
			       row_after ? &row_after->own : &nothing),
		.total = compare(before, row_before ? &row_before->total : &nothing, after,
				 row_after ? &row_after->total : &nothing),
	};
}

static const struct tally_row *find_row(const struct tally *tally, const struct tally_key *key)
{
	const struct tally_row *row;

	HASH_FIND(hh, tally->rows, key, sizeof(*key), row);
	return row;
}

static double size_of_change(const struct change *change)
{
	return fabs(change->after - change->before);
}

/* The larger change, own or total; if only one of them is significant, that one. */
static double size_of(const struct comparison_row *row)
{
	double own = size_of_change(&row->own);
	double total = size_of_change(&row->total);

	if (row->own.significant != row->total.significant)
		return row->own.significant ? own : total;
	return own > total ? own : total;
}

static bool is_sure(const struct comparison_row *row)
{
	return row->own.significant || row->total.significant;
}

static int compare_rows(const void *a, const void *b)
{
	const struct comparison_row *left = a, *right = b;

	if (is_sure(left) != is_sure(right))
		return is_sure(left) ? -1 : 1;
	return size_of(left) > size_of(right) ? -1 : size_of(left) < size_of(right);
}

/*
 * Sort the functions of two tallies by size of change, significant changes
 * first. 0 or -ENOMEM; the caller frees the rows.
 */
static int compare_functions(const struct tally *before, const struct tally *after, double min_share,
			     struct comparison_row **ret_rows, size_t *ret_count)
{
	size_t size = HASH_COUNT(before->rows) + HASH_COUNT(after->rows) + 1, count = 0;
	struct comparison_row *rows = calloc(size, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	for (const struct tally_row *row = before->rows; row; row = row->hh.next)
		rows[count++] = make_row(&row->key, before, row, after, find_row(after, &row->key));
	for (const struct tally_row *row = after->rows; row; row = row->hh.next)
		if (!find_row(before, &row->key))
			rows[count++] = make_row(&row->key, before, NULL, after, row);
	size = count;
	count = 0;
	for (size_t i = 0; i < size; i++)
		if (rows[i].total.before >= min_share || rows[i].total.after >= min_share)
			rows[count++] = rows[i];
	if (correct(rows, count)) {
		free(rows);
		return -ENOMEM;
	}
	qsort(rows, count, sizeof(*rows), compare_rows);
	*ret_rows = rows;
	*ret_count = count;
	return 0;
}

/*---- The table ----*/

static uint64_t per_second(uint64_t weight, double seconds)
{
	return (uint64_t)((double)weight / seconds + 0.5);
}

static void write_side(FILE *out, const char *what, const struct side *side, const struct tally *tally,
		       enum weight_kind weight)
{
	const struct session *session = side->session;
	char amount[AMOUNT_SIZE];

	fprintf(out, "%s", what);
	escape_write(ESCAPE_PLAIN, side->name, out);
	fprintf(out, ": %" PRIu64 " samples, %s", tally->samples,
		amount_alone(weight, tally->all_ns, amount));
	if (session->duration_ns) {
		const double seconds = (double)session->duration_ns / 1e9;

		fprintf(out, " in %.1f s", seconds);
		if (weight_is_time(weight))
			fprintf(out, " (%.1f %%)",
				100 * (double)tally->all_ns / (double)session->duration_ns);
		else
			fprintf(out, " (%s/s)",
				amount_alone(weight, per_second(tally->all_ns, seconds), amount));
	}
	fputc('\n', out);
}

static void write_change(FILE *out, const struct change *change)
{
	fprintf(out, "%6.2f  %6.2f  %+7.2f \u00b1 %5.2f %c  ", 100 * change->before, 100 * change->after,
		100 * (change->after - change->before), 100 * change->error, change->significant ? '*' : ' ');
}

static void write_rows(FILE *out, const struct comparison_row *rows, size_t count, const struct view *view)
{
	const char *unit = weights[view->weight].unit;
	char label[FRAME_LABEL_SIZE];

	fprintf(out,
		"own, %% of all %-19s total, %% of all %s\n"
		"before   after    change           before   after    change           function\n",
		unit, unit);
	for (size_t i = 0; i < count; i++) {
		write_change(out, &rows[i].own);
		write_change(out, &rows[i].total);
		frame_label(rows[i].key.function, (uint32_t)rows[i].key.line, view->by_line, label);
		escape_write(ESCAPE_PLAIN, label, out);
		fputc('\n', out);
	}
}

static void write_table(FILE *out, const struct comparison *comparison, const struct view *view)
{
	const struct comparison_row *rows = comparison->rows;
	size_t count = comparison->count, sure = 0;

	while (sure < count && is_sure(&rows[sure]))
		sure++;
	if (sure) {
		fprintf(out,
			"\nChanged (* is no noise: the chance that any of them is one is %g %% at most)\n\n",
			100 * COMPARISON_LEVEL);
		write_rows(out, rows, sure, view);
	} else {
		fputs("\nNothing has changed by more than noise may explain.\n", out);
	}
	if (sure < count) {
		fputs("\nNot known to have changed\n\n", out);
		write_rows(out, rows + sure, count - sure, view);
	}
	fprintf(out,
		"\n\u00b1 is the standard error of a change. Functions with less than %g %% of the total\n"
		"in both are left out.\n",
		100 * comparison->min_share);
}

/* The largest change that is not known to be one; NULL if there is none. */
static const struct change *largest_unsure(const struct comparison *comparison)
{
	const struct change *largest = NULL;

	for (size_t i = 0; i < comparison->count; i++) {
		const struct change *changes[] = { &comparison->rows[i].own, &comparison->rows[i].total };

		if (is_sure(&comparison->rows[i]))
			continue;
		for (size_t j = 0; j < sizeof(changes) / sizeof(changes[0]); j++)
			if (changes[j]->error > 0 &&
			    (!largest || size_of_change(changes[j]) > size_of_change(largest)))
				largest = changes[j];
	}
	return largest;
}

/*
 * How long to record for the largest change that is not sure to show, if it is real: errors shrink
 * with the square root of the time. Its p has to be as small as that of the first of all tests.
 */
static void write_needed(FILE *out, const struct comparison *comparison, const struct session *before,
			 const struct session *after)
{
	const uint64_t shorter_ns = before->duration_ns < after->duration_ns ? before->duration_ns
									     : after->duration_ns;
	const struct change *change = largest_unsure(comparison);
	double needed_errors, times;

	if (!change || shorter_ns == 0)
		return;
	needed_errors = errors_of_p(COMPARISON_LEVEL / (2 * (double)comparison->count));
	times = square(needed_errors * change->error / size_of_change(change));
	if (times <= 1 || times > NEEDED_TIMES_MAX)
		return;
	fprintf(out, "A change of %.2f, the largest of these, would show in recordings of %.0f s each.\n",
		100 * size_of_change(change), ceil(times * (double)shorter_ns / 1e9));
}

static int comparison_fill(struct comparison *comparison, const struct side *before, const struct side *after,
			   const struct view *view)
{
	int error = tally_read(before->source, before->figures->samples, view, false, &comparison->before);

	comparison->min_share = (view->min_percent > 0 ? view->min_percent : COMPARISON_MIN_PERCENT) / 100;
	if (!error)
		error = tally_read(after->source, after->figures->samples, view, false, &comparison->after);
	return error ? error
		     : compare_functions(&comparison->before, &comparison->after, comparison->min_share,
					 &comparison->rows, &comparison->count);
}

static void comparison_clear(struct comparison *comparison)
{
	free(comparison->rows);
	tally_clear(&comparison->before);
	tally_clear(&comparison->after);
}

int comparison_changed(const struct side *before, const struct side *after, const struct view *view,
		       struct changed *changed)
{
	struct comparison comparison = { 0 };
	int error = comparison_fill(&comparison, before, after, view);

	for (size_t i = 0; i < comparison.count && !error; i++)
		if (is_sure(&comparison.rows[i]))
			error = changed_add(changed, comparison.rows[i].key.function);
	comparison_clear(&comparison);
	return error;
}

int comparison_write(FILE *out, const struct side *before, const struct side *after, const struct view *view)
{
	struct comparison comparison = { 0 };
	int error = comparison_fill(&comparison, before, after, view);

	if (!error) {
		write_side(out, "before  ", before, &comparison.before, view->weight);
		write_side(out, "after   ", after, &comparison.after, view->weight);
		write_table(out, &comparison, view);
		write_needed(out, &comparison, before->session, after->session);
	}
	comparison_clear(&comparison);
	return error ? error : ferror(out) ? -EIO : 0;
}
