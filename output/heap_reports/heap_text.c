/* SPDX-License-Identifier: MIT */
#include "output/heap_reports/heap_text.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "output/heap/heap_method.h"
#include "output/heap_reports/heap_amounts.h"
#include "output/heap_reports/heap_uncertain.h"
#include "output/heap_views/heap_rows.h"
#include "output/heap_views/heap_words.h"
#include "output/sample/amount_text.h"

enum {
	ROWS = 10,          /* of a table, unless the view says otherwise; */
	PATH_ROWS = 15,     /* of that of paths */
	NAME_COLUMNS = 140, /* of a name at a line's end */
};

static unsigned int rows_of(const struct heap_view *view)
{
	return view->rows ? view->rows : ROWS;
}

static void end_name(FILE *out, const char *name)
{
	heap_name_write(out, name, NAME_COLUMNS);
	putc('\n', out);
}

/*---- The whole ----*/

static void write_total(FILE *out, const struct heap_summary *summary)
{
	const struct heap_account *account = &summary->account;
	char total[AMOUNT_SIZE], objects[AMOUNT_SIZE], sum[AMOUNT_SIZE];

	heap_place_write(out, account);
	fprintf(out, "\n  %s in %s; gc.total %s bytes, ", amount_bytes(account->sum, total),
		heap_amount_objects(heap_summary_objects(summary), objects),
		amount_number(account->gc_total, sum));
	heap_not_found_write(out, account);
	putc('\n', out);
}

/*---- Tables ----*/

static void write_kinds(FILE *out, const struct heap_summary *summary)
{
	char bytes[AMOUNT_SIZE], count[AMOUNT_SIZE], mean[AMOUNT_SIZE], most[AMOUNT_SIZE];

	fprintf(out, "\nBy type            bytes            count       mean    largest\n");
	for (size_t i = HEAP_KIND_ROOT + 1; i < HEAP_KIND_COUNT; i++) {
		const struct heap_kind_sum *kind = &summary->kinds[i];

		if (kind->sum.count == 0)
			continue;
		fprintf(out, "  %-10s  %10s %5.1f %%  %11s  %9s  %9s\n", heap_kind_plural((enum heap_kind)i),
			amount_bytes(kind->sum.bytes, bytes),
			heap_percent(kind->sum.bytes, summary->all.bytes),
			amount_number(kind->sum.count, count),
			amount_bytes(kind->sum.bytes / kind->sum.count, mean),
			amount_bytes(kind->largest, most));
	}
}

static void write_own(FILE *out, const struct heap_summary *summary)
{
	char bytes[AMOUNT_SIZE];

	if (!summary->own)
		return;
	fputs("\nThe VM's own\n", out);
	for (const struct heap_group *group = summary->own; group; group = group->hh.next) {
		fprintf(out, "  %10s %5.1f %%  ", amount_bytes(group->sum.bytes, bytes),
			heap_percent(group->sum.bytes, summary->all.bytes));
		end_name(out, group->name);
	}
}

/* Who holds most of a group, and what finalizes most of it. */
static void write_origin(FILE *out, const struct heap_group *group, const struct heap_paths *paths)
{
	uint32_t finalizer = paths->nodes[group->finalizer.path].what;
	char place[HEAP_PATH_SIZE];

	if (group->held.path != HEAP_PATHS_ROOT) {
		fputs(" in ", out);
		heap_name_write(out, heap_path_place(paths, group->held.path, place), NAME_COLUMNS);
	}
	if (group->finalizer.path != HEAP_PATHS_ROOT && finalizer) {
		fputs(", finalizer ", out);
		heap_name_write(out, heap_paths_text(paths, finalizer), NAME_COLUMNS);
	}
}

/* A table of groups by bytes. nameless stands for an empty name. */
static void write_groups(FILE *out, const char *title, const struct heap_group *groups, const char *nameless,
			 const struct heap_summary *summary, const struct heap_view *view)
{
	char bytes[AMOUNT_SIZE], count[AMOUNT_SIZE];
	unsigned int shown = 0;

	if (groups)
		fprintf(out, "\n%s\n", title);
	for (const struct heap_group *group = groups; group && shown < rows_of(view);
	     group = group->hh.next, shown++) {
		fprintf(out, "  %10s %5.1f %%  %11s  ", amount_bytes(group->sum.bytes, bytes),
			heap_percent(group->sum.bytes, summary->all.bytes),
			amount_number(group->sum.count, count));
		if (group->finalizers)
			fprintf(out, "(%s with a finalizer) ", amount_number(group->finalizers, count));
		heap_name_write(out, *group->name ? group->name : nameless, NAME_COLUMNS);
		write_origin(out, group, &summary->paths);
		putc('\n', out);
	}
}

static void write_paths(FILE *out, const struct heap_group *rows, const struct heap_summary *summary,
			const struct heap_view *view)
{
	char retained[AMOUNT_SIZE], own[AMOUNT_SIZE], count[AMOUNT_SIZE];
	unsigned int shown = 0, most = view->rows ? view->rows : PATH_ROWS;

	fputs("\nHeaviest paths: what would go with them, their own, how many\n", out);
	for (const struct heap_group *row = rows; row && shown < most; row = row->hh.next, shown++) {
		fprintf(out, "  %10s %5.1f %%  %10s  %11s  ", amount_bytes(row->retained, retained),
			heap_percent(row->retained, summary->all.bytes), amount_bytes(row->sum.bytes, own),
			amount_number(row->sum.count, count));
		end_name(out, row->name);
	}
}

static void write_largest(FILE *out, const struct heap_summary *summary, const struct heap_view *view)
{
	char bytes[AMOUNT_SIZE], path[HEAP_PATH_SIZE];

	fputs("\nLargest objects\n", out);
	for (unsigned int i = 0; i < summary->largest_count && i < rows_of(view); i++) {
		const struct heap_large *large = &summary->largest[i];

		fprintf(out, "  %10s  %-8s  ", amount_bytes(large->bytes, bytes),
			heap_kind_name((enum heap_kind)large->kind));
		if (large->slots)
			fprintf(out, "(%.0f %% used) ", heap_percent(large->used, large->slots));
		end_name(out, heap_path_text(&summary->paths, large->path, path));
	}
}

static void write_coroutines(FILE *out, const struct heap_summary *summary, const struct heap_view *view)
{
	char retained[AMOUNT_SIZE], count[AMOUNT_SIZE];
	unsigned int shown = 0;

	if (!summary->coroutines)
		return;
	fputs("\nCoroutines by where they stand, with what they keep alive\n", out);
	for (const struct heap_group *group = summary->coroutines; group && shown < rows_of(view);
	     group = group->hh.next, shown++) {
		fprintf(out, "  %10s %5.1f %%  %11s  ", amount_bytes(group->retained, retained),
			heap_percent(group->retained, summary->all.bytes),
			amount_number(group->sum.count, count));
		end_name(out, *group->name ? group->name : "elsewhere");
	}
}

static void write_waste(FILE *out, const struct heap_summary *summary, const struct heap_view *view)
{
	const struct heap_waste *waste = &summary->waste;
	const struct heap_kind_sum *strings = &summary->kinds[HEAP_KIND_STRING];
	char bytes[AMOUNT_SIZE], count[AMOUNT_SIZE];

	fprintf(out, "\nWaste\n  %10s  %11s  empty slots of tables that use a fourth of them at most\n",
		amount_bytes(waste->sparse.bytes, bytes), amount_number(waste->sparse.count, count));
	fprintf(out, "  %10s  %11s  room of string.buffers that use a fourth of theirs at most\n",
		amount_bytes(waste->buffers.bytes, bytes), amount_number(waste->buffers.count, count));
	fprintf(out, "  %10s  %11s  strings of %d bytes or more, of all strings %.1f %%\n",
		amount_bytes(waste->long_strings.bytes, bytes),
		amount_number(waste->long_strings.count, count), HEAP_LONG_STRING,
		heap_percent(waste->long_strings.bytes, strings->sum.bytes));
	fprintf(out, "  %10s  %11s  objects with a finalizer\n", "", amount_number(waste->finalizers, count));
	fputs("  No two strings are equal: LuaJIT has each content once.\n", out);
	write_groups(out, "Empty slots of tables by path", waste->tables, "", summary, view);
	write_groups(out, "Unused room of string.buffers by path", waste->room, "", summary, view);
}

/*---- The collector ----*/

static void write_figure(FILE *out, const char *name, const struct heap_figure *figure, bool percent)
{
	char number[AMOUNT_SIZE];

	if (figure->known)
		fprintf(out, ", %s %s%s", name, amount_number(figure->value, number), percent ? " %" : "");
}

static void write_collector(FILE *out, const struct heap_summary *summary)
{
	const struct heap_account *account = &summary->account;
	char bytes[AMOUNT_SIZE], count[AMOUNT_SIZE];

	fprintf(out, "\nCollector: %s", account->gc_state ? account->gc_state : "?");
	write_figure(out, "threshold", &account->threshold, false);
	write_figure(out, "estimate", &account->estimate, false);
	write_figure(out, "pause", &account->pause, true);
	write_figure(out, "step", &account->stepmul, true);
	putc('\n', out);
	if (account->threshold.known && account->threshold.value > account->gc_total)
		fprintf(out, "  %s may be allocated before its next step\n",
			amount_bytes(account->threshold.value - account->gc_total, bytes));
	else if (account->threshold.known)
		fputs("  its next step is due\n", out);
	if (account->dead_known)
		fprintf(out, "  %s in %s %s dead and not swept yet\n",
			amount_bytes(account->dead_bytes, bytes),
			heap_amount_objects(account->dead_objects, count),
			account->dead_objects == 1 ? "is" : "are");
	else
		fputs("  what is dead is not known of this build\n", out);
}

static void write_held(FILE *out, const struct heap_account *account)
{
	fprintf(out, "Read %s", heap_method_text(account->method));
	if (account->attempts > 1)
		fprintf(out, ", in %u attempts (%s)", account->attempts,
			account->retry_reason ? account->retry_reason : "it had changed");
	fputc('\n', out);
	if (account->holds)
		fprintf(out, "Held %" PRIu64 " time%s, for %" PRIu64 " us at most, %" PRIu64 " us in all\n",
			account->holds, account->holds == 1 ? "" : "s",
			(account->longest_hold_ns + 999) / 1000, (account->held_ns + 999) / 1000);
}

static int write_subject(FILE *out, const struct heap_summary *summary, const struct heap_view *view)
{
	struct heap_group *rows;
	int error;

	if (heap_account_is_missing(&summary->account)) {
		heap_place_write(out, &summary->account);
		fputs("\n  ", out);
		heap_not_found_write(out, &summary->account);
		putc('\n', out);
		return 0;
	}
	write_total(out, summary);
	heap_uncertain_write(out, &summary->account.uncertain);
	error = heap_rows_make(&summary->paths, summary->all.bytes / 1000, false, &rows);
	if (error)
		return error;
	write_paths(out, rows, summary, view);
	write_kinds(out, summary);
	write_groups(out, "Modules that hold most", summary->modules, "in no module", summary, view);
	write_coroutines(out, summary, view);
	write_groups(out, "Closures by their function", summary->closures, "functions that are not known",
		     summary, view);
	write_groups(out, "cdata by C type", summary->cdata, "of a type that is not known", summary, view);
	write_largest(out, summary, view);
	write_own(out, summary);
	write_waste(out, summary, view);
	write_collector(out, summary);
	write_held(out, &summary->account);
	heap_groups_clear(&rows);
	return 0;
}

int heap_text_write(FILE *out, const struct heap_side *side, const struct heap_view *view)
{
	int error = 0;

	for (size_t i = 0; i < side->count && !error; i++) {
		if (i > 0)
			putc('\n', out);
		error = write_subject(out, &side->subjects[i].summary, view);
	}
	return error ? error : ferror(out) ? -EIO : 0;
}
