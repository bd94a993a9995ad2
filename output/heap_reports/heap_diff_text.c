/* SPDX-License-Identifier: MIT */
#include "output/heap_reports/heap_diff_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "output/heap_reports/heap_amounts.h"
#include "output/heap_reports/heap_compared.h"
#include "output/heap_reports/heap_uncertain.h"
#include "output/heap_views/heap_growth.h"
#include "output/heap_views/heap_words.h"
#include "output/labels/escape.h"
#include "output/sample/amount_text.h"

enum {
	ROWS = 10,
	NAME_COLUMNS = 140,
	SMALLEST_PART = 100000, /* paths that retain a smaller part of all are not compared */
	SUSPECT_PERCENT = 10,   /* an owner of more than that stands out */
	SUSPECT_PART = 1000,    /* a path that grew in every interval counts from this part of all on */
};

static const char elsewhere[] = "elsewhere"; /* coroutines of which it is not known where they stand */

/* The moments that are compared, in the order of time, and everything by its name. */
struct report {
	FILE *out;
	const struct heap_view *view;
	const struct heap_side *sides;
	size_t count;
	const struct heap_compared *compared; /* NULL: all VMs are */
	struct heap_growths paths, modules, kinds, closures, coroutines, held_coroutines, cdata;
};

static unsigned int rows_of(const struct heap_view *view)
{
	return view->rows ? view->rows : ROWS;
}

/*---- Reading ----*/

static bool is_compared(const struct heap_compared *compared, const struct heap_subject *subject)
{
	return !compared || heap_compared_has(compared, subject);
}

/* compared NULL: of all VMs. */
static struct heap_sum sum_of(const struct heap_side *side, const struct heap_compared *compared)
{
	struct heap_sum sum = { 0 };

	for (size_t i = 0; i < side->count; i++) {
		if (!is_compared(compared, &side->subjects[i]))
			continue;
		sum.bytes += side->subjects[i].summary.all.bytes;
		sum.count += heap_summary_objects(&side->subjects[i].summary);
	}
	return sum;
}

static int add_kinds(struct heap_growths *growths, const struct heap_summary *summary, size_t moment)
{
	int error = 0;

	for (size_t i = HEAP_KIND_ROOT + 1; i < HEAP_KIND_COUNT && !error; i++)
		error = heap_growths_add(growths, heap_kind_plural((enum heap_kind)i), moment,
					 &(struct heap_moment){ .held = summary->kinds[i].sum.bytes,
								.sum = summary->kinds[i].sum });
	return error;
}

/* Coroutines that the collector has yet to free pile up nowhere. */
static int add_held(struct heap_growths *growths, const struct heap_group *coroutines, size_t moment)
{
	int error = 0;

	for (const struct heap_group *group = coroutines; group && !error; group = group->hh.next)
		error = heap_growths_add(growths, group->name, moment,
					 &(struct heap_moment){
						 .held = group->retained - group->unheld.bytes,
						 .sum = { .count = group->sum.count - group->unheld.count },
					 });
	return error;
}

static int add_summary(struct report *report, const struct heap_summary *summary, size_t moment)
{
	int error = heap_growths_add_paths(&report->paths, &summary->paths, moment,
					   summary->all.bytes / SMALLEST_PART);

	if (!error)
		error = heap_growths_add_groups(&report->modules, summary->modules, false, moment);
	if (!error)
		error = add_kinds(&report->kinds, summary, moment);
	if (!error)
		error = heap_growths_add_groups(&report->closures, summary->closures, false, moment);
	if (!error)
		error = heap_growths_add_groups(&report->coroutines, summary->coroutines, true, moment);
	if (!error)
		error = add_held(&report->held_coroutines, summary->coroutines, moment);
	return error ? error : heap_growths_add_groups(&report->cdata, summary->cdata, false, moment);
}

static struct heap_growths *growths_of(struct report *report, size_t i)
{
	struct heap_growths *const all[] = { &report->paths,    &report->modules,    &report->kinds,
					     &report->closures, &report->coroutines, &report->held_coroutines,
					     &report->cdata };

	return i < sizeof(all) / sizeof(all[0]) ? all[i] : NULL;
}

static int add_side(struct report *report, size_t moment)
{
	const struct heap_side *side = &report->sides[moment];
	int error = 0;

	for (size_t i = 0; i < side->count && !error; i++)
		if (is_compared(report->compared, &side->subjects[i]))
			error = add_summary(report, &side->subjects[i].summary, moment);
	return error;
}

static void find_chains(struct report *report)
{
	const struct heap_side *last = &report->sides[report->count - 1];

	for (size_t i = 0; i < last->count; i++)
		if (is_compared(report->compared, &last->subjects[i]))
			heap_growths_find_chains(&report->paths, &last->subjects[i].summary.paths);
}

/* Its first members are set. report_clear() it in any case. */
static int report_fill(struct report *report)
{
	struct heap_growths *growths;
	int error = 0;

	for (size_t i = 0; (growths = growths_of(report, i)); i++)
		growths->moment_count = report->count;
	for (size_t moment = 0; moment < report->count && !error; moment++)
		error = add_side(report, moment);
	if (error)
		return error;
	find_chains(report);
	for (size_t i = 0; (growths = growths_of(report, i)); i++)
		heap_growths_sort(growths);
	return 0;
}

static void report_clear(struct report *report)
{
	struct heap_growths *growths;

	for (size_t i = 0; (growths = growths_of(report, i)); i++)
		heap_growths_clear(growths);
}

/*---- Tables ----*/

static void write_row(const struct report *report, const struct heap_growths *growths,
		      const struct heap_growth *growth, const char *nameless)
{
	char change[AMOUNT_SIZE], before[AMOUNT_SIZE], after[AMOUNT_SIZE];

	fprintf(report->out, "  %10s  %10s  %10s  %+10" PRId64 "  ",
		heap_amount_change(heap_growth_bytes(growths, growth), change),
		amount_bytes(growth->moments[0].held, before),
		amount_bytes(growth->moments[growths->moment_count - 1].held, after),
		heap_growth_count(growths, growth));
	heap_name_write(report->out, *growth->name ? growth->name : nameless, NAME_COLUMNS);
	fputc('\n', report->out);
}

static void write_head(const struct report *report, const char *title)
{
	fprintf(report->out, "\n%s\n      change      before       after     objects\n", title);
}

/* What changed most: up from the beginning of the rows, or down from their end. */
static void write_changes(const struct report *report, const char *title, const struct heap_growths *growths,
			  const char *nameless)
{
	unsigned int shown = 0;

	for (const struct heap_growth *growth = growths->rows; growth && shown < rows_of(report->view);
	     growth = growth->hh.next) {
		if (growth->in_chain || heap_growth_bytes(growths, growth) <= 0)
			continue;
		if (shown++ == 0)
			write_head(report, title);
		write_row(report, growths, growth, nameless);
	}
}

static void write_shrunk(const struct report *report)
{
	const struct heap_growths *paths = &report->paths;
	const struct heap_growth *last = paths->rows;
	unsigned int shown = 0;

	while (last && last->hh.next)
		last = last->hh.next;
	for (const struct heap_growth *growth = last; growth && shown < (rows_of(report->view) + 1) / 2;
	     growth = growth->hh.prev) {
		if (heap_growth_bytes(paths, growth) >= 0)
			break;
		if (shown++ == 0)
			write_head(report, "Shrank, by path");
		write_row(report, paths, growth, "");
	}
}

static void write_kinds_and_modules(const struct report *report)
{
	write_changes(report, "Grew, by module", &report->modules, "in no module");
	write_changes(report, "Grew, by type", &report->kinds, "");
	write_changes(report, "Grew, closures by their function", &report->closures,
		      "functions that are not known");
	write_changes(report, "Grew, coroutines by where they stand, with what they keep alive",
		      &report->coroutines, elsewhere);
	write_changes(report, "Grew, cdata by C type", &report->cdata, "of a type that is not known");
}

/*---- Two heaps ----*/

static void write_time(FILE *out, const struct heap_side *side)
{
	time_t time = side->count ? (time_t)side->subjects[0].summary.account.time : 0;
	struct tm utc;
	char text[64];

	if (time > 0 && gmtime_r(&time, &utc) &&
	    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &utc) > 0)
		fprintf(out, "%s  ", text);
}

static void write_side(FILE *out, const char *what, const struct heap_side *side, size_t most_processes)
{
	struct heap_sum sum = sum_of(side, NULL);
	char bytes[AMOUNT_SIZE], count[AMOUNT_SIZE];

	fprintf(out, "%-7s ", what);
	write_time(out, side);
	fprintf(out, "%10s in %s  ", amount_bytes(sum.bytes, bytes), heap_amount_objects(sum.count, count));
	if (side->name)
		escape_write(ESCAPE_PLAIN, side->name, out);
	putc('\n', out);
	heap_side_uncertain_write(out, side, most_processes);
}

static void write_other_words(const struct report *report)
{
	const struct heap_unlike unlike = heap_sides_unlike(report->sides, report->count);

	if (unlike.coroutines)
		fprintf(report->out, "%s\n", HEAP_OTHER_COROUTINES);
	if (unlike.functions_in_c)
		fprintf(report->out, "%s\n", HEAP_OTHER_C_FUNCTIONS);
}

static void write_difference(const struct report *report)
{
	struct heap_sum before = sum_of(&report->sides[0], report->compared);
	struct heap_sum after = sum_of(&report->sides[report->count - 1], report->compared);
	int64_t objects = (int64_t)(after.count - before.count);
	char change[AMOUNT_SIZE];

	fprintf(report->out, "change  %s, %+" PRId64 " object%s\n",
		heap_amount_change((int64_t)(after.bytes - before.bytes), change), objects,
		objects == 1 || objects == -1 ? "" : "s");
}

int heap_diff_text_write(FILE *out, const struct heap_side *before, const struct heap_side *after,
			 const struct heap_view *view)
{
	const struct heap_side sides[] = { *before, *after };
	const size_t most_processes = heap_sides_most_processes(sides, 2);
	struct report report = { .out = out, .view = view, .sides = sides, .count = 2 };
	int error = report_fill(&report);

	if (!error) {
		write_side(out, "before", before, most_processes);
		write_side(out, "after", after, most_processes);
		write_other_words(&report);
		write_difference(&report);
		write_changes(&report, "Grew, by path", &report.paths, "");
		write_kinds_and_modules(&report);
		write_shrunk(&report);
	}
	report_clear(&report);
	return error ? error : ferror(out) ? -EIO : 0;
}

/*---- A series ----*/

static void write_totals(FILE *out, const struct heap_side *sides, size_t count, size_t unread)
{
	const size_t most_processes = heap_sides_most_processes(sides, count);
	uint64_t last = 0;

	fputs("Totals over time\n", out);
	for (size_t i = 0; i < count; i++) {
		struct heap_sum sum = sum_of(&sides[i], NULL);
		char bytes[AMOUNT_SIZE], objects[AMOUNT_SIZE], change[AMOUNT_SIZE] = "";

		if (i > 0)
			heap_amount_change((int64_t)(sum.bytes - last), change);
		fputs("  ", out);
		write_time(out, &sides[i]);
		fprintf(out, "%10s  %10s in %s\n", change, amount_bytes(sum.bytes, bytes),
			heap_amount_objects(sum.count, objects));
		heap_side_uncertain_write(out, &sides[i], most_processes);
		last = sum.bytes;
	}
	if (unread > 0)
		fprintf(out, "%zu moment%s could not be read.\n", unread, unread == 1 ? "" : "s");
}

/* Is it worth a place among the suspects? What nothing holds is garbage, whatever it grows to. */
static bool is_suspect(const struct heap_growths *growths, const struct heap_growth *growth, uint64_t all)
{
	return !growth->in_chain && !growth->unheld && heap_growth_is_steady(growths, growth) &&
	       heap_growth_bytes(growths, growth) >= (int64_t)(all / SUSPECT_PART);
}

/* The first process of nginx; NULL if there is none. */
static const struct heap_account *nginx_of(const struct heap_side *side)
{
	for (size_t i = 0; i < side->count; i++) {
		const struct heap_account *account = &side->subjects[i].summary.account;

		if (account->process && strcmp(account->process, "nginx") == 0)
			return account;
	}
	return NULL;
}

/*
 * What nginx's workers share is in zones, which a look at Lua heaps does not see: say where to look on. They
 * all have the same ones.
 */
static void write_where_else(const struct report *report)
{
	const struct heap_account *nginx = nginx_of(&report->sides[report->count - 1]);

	if (!nginx)
		return;
	fputs("Shared dictionaries (ngx.shared) are in no Lua heap: `ljspy shdict", report->out);
	if (nginx->pid)
		fprintf(report->out, " -p %d", (int)nginx->pid);
	fputs("` shows how full they are; run it twice to see which of them grows.\n", report->out);
}

/* False if there is none. */
static bool write_steady(const struct report *report, const char *title, const struct heap_growths *growths,
			 const char *nameless)
{
	uint64_t all = sum_of(&report->sides[report->count - 1], report->compared).bytes;
	unsigned int shown = 0;

	for (const struct heap_growth *growth = growths->rows; growth && shown < rows_of(report->view);
	     growth = growth->hh.next) {
		if (!is_suspect(growths, growth, all))
			continue;
		if (shown++ == 0)
			write_head(report, title);
		write_row(report, growths, growth, nameless);
	}
	return shown > 0;
}

/* Coroutines that pile up at one place may share a path with others that go elsewhere. */
static bool write_all_steady(const struct report *report)
{
	bool any = write_steady(report, "Grew in every interval", &report->paths, "");

	if (!any)
		fputs("\nNo path grew in every interval.\n", report->out);
	any |= write_steady(
		report, "Grew in every interval, coroutines by where they stand, with what they keep alive",
		&report->held_coroutines, elsewhere);
	return any;
}

/* False if there is none. */
static bool write_owners(const struct report *report)
{
	const struct heap_growths *paths = &report->paths;
	uint64_t all = sum_of(&report->sides[report->count - 1], report->compared).bytes;
	unsigned int shown = 0;

	for (const struct heap_growth *growth = paths->rows; growth && shown < rows_of(report->view);
	     growth = growth->hh.next) {
		const struct heap_moment *last = &growth->moments[report->count - 1];

		/* A single object: its path stands for one, and not for many that have one owner each. */
		if (growth->in_chain || growth->unheld || last->sum.count != 1 ||
		    heap_growth_bytes(paths, growth) < (int64_t)(all / SUSPECT_PART) ||
		    heap_percent(last->held, all) < SUSPECT_PERCENT)
			continue;
		if (shown++ == 0)
			write_head(report, "Grew, and holds more than a tenth of all in the end");
		write_row(report, paths, growth, "");
	}
	return shown > 0;
}

/* What was not found at one moment seems to grow at the next: suspects need two moments that have all. */
static void write_suspects(const struct report *report, size_t count, size_t whole)
{
	bool any;

	if (whole < 2) {
		fputs("\nThere are no suspects: too much was not found to say what grew.\n", report->out);
		return;
	}
	if (whole < count)
		fprintf(report->out, "\nCompared are the %zu of %zu moments of which all was found.\n", whole,
			count);
	any = write_all_steady(report);
	any |= write_owners(report);
	if (!any)
		write_where_else(report);
}

static int write_series(FILE *out, const struct heap_side *sides, size_t count, size_t unread,
			const struct heap_view *view, const struct heap_compared *compared)
{
	const size_t whole = compared->count;
	struct report report = {
		.out = out,
		.view = view,
		.sides = whole >= 2 ? compared->sides : sides,
		.count = whole >= 2 ? whole : count,
		.compared = compared,
	};
	int error = report_fill(&report);

	if (!error) {
		write_totals(out, sides, count, unread);
		heap_compared_write(out, compared, count, rows_of(view));
		write_other_words(&report);
		write_difference(&report);
		write_suspects(&report, count, whole);
		write_kinds_and_modules(&report);
	}
	report_clear(&report);
	return error ? error : ferror(out) ? -EIO : 0;
}

int heap_series_write(FILE *out, const struct heap_side *sides, size_t count, size_t unread,
		      const struct heap_view *view)
{
	struct heap_compared compared;
	int error;

	if (count < 2)
		return -EINVAL;
	error = heap_compared_find(sides, count, &compared);
	if (!error)
		error = write_series(out, sides, count, unread, view, &compared);
	heap_compared_clear(&compared);
	return error;
}
