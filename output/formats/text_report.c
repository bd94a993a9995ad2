/* SPDX-License-Identifier: MIT */
#include "output/formats/text_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/labels/escape.h"
#include "output/labels/frame_label.h"
#include "output/labels/names.h"
#include "output/labels/session_title.h"
#include "output/sample/amount_text.h"
#include "output/source/source_report.h"
#include "output/views/tally.h"

enum {
	AMOUNT_WIDTH = 12,
	BAR_CHARACTERS = 40,
	COLLECTED_MAX = 10, /* functions in which the collector ran */
};

struct report {
	FILE *out;
	const struct session *session;
	const struct figures *figures;
	struct tally tally;
	const struct view *view;
	double min_share;
	struct tally_call **calls; /* all calls twice, see sort_calls() */
	size_t call_count;
};

static void write_label(const struct report *report, const struct tally_row *row)
{
	char label[FRAME_LABEL_SIZE];

	frame_label(row->key.function, (uint32_t)row->key.line, report->view->by_line, label);
	escape_write(ESCAPE_PLAIN, label, report->out);
	fputc('\n', report->out);
}

/* "12.3 ± 0.4", in percent. squares: of the weights of its samples. */
static void write_share(const struct report *report, uint64_t ns, double squares)
{
	fprintf(report->out, "%6.2f \u00b1 %4.2f", 100 * tally_share(&report->tally, ns),
		100 * tally_error(&report->tally, ns, squares));
}

/* In a column of twelve, and what follows it. */
static void write_amount(const struct report *report, uint64_t weight)
{
	char text[AMOUNT_SIZE];

	fprintf(report->out, "  %*s  ", AMOUNT_WIDTH, amount_in_column(report->view->weight, weight, text));
}

/* The head of a table of shares and amounts. */
static void write_title(const struct report *report, const char *title)
{
	fprintf(report->out, "\n            %%  %*s  ", AMOUNT_WIDTH, amount_column(report->view->weight));
	escape_write(ESCAPE_PLAIN, title, report->out);
	fputc('\n', report->out);
}

static bool is_shown(const struct report *report, uint64_t ns)
{
	return ns > 0 && tally_share(&report->tally, ns) >= report->min_share;
}

static int compare_roots(const struct tally_row *a, const struct tally_row *b)
{
	return a->root_ns > b->root_ns ? -1 : a->root_ns < b->root_ns;
}

/* Write the groups of stacks with their weight. */
static void write_groups(struct report *report)
{
	HASH_SORT(report->tally.rows, compare_roots);
	write_title(report, report->view->group);
	for (const struct tally_row *row = report->tally.rows; row && row->root_ns; row = row->hh.next) {
		write_share(report, row->root_ns, row->root_squares);
		write_amount(report, row->root_ns);
		write_label(report, row);
	}
}

/* Write how often the collectors began anew, and the size of their heaps. */
static void write_heap(const struct report *report)
{
	const struct gc_bill *bill = &report->tally.gc;

	if (bill->heap_most)
		fprintf(report->out, "%" PRIu64 " cycles seen, of %s from %.1f to %.1f MB.\n", bill->cycles,
			bill->has_heaps ? "heaps of several threads" : "a heap",
			(double)bill->heap_least / 1e6, (double)bill->heap_most / 1e6);
}

/*
 * Write how much was allocated; each sample tells what was since the one before, so all of them are needed.
 */
static void write_allocated_for_cycles(const struct report *report)
{
	const struct gc_bill *bill = &report->tally.gc;
	char amount[AMOUNT_SIZE];
	uint64_t bytes;
	bool is_least;

	bytes = gc_allocated_bytes(&bill->allocated, &is_least);
	if (bytes == 0 || report->figures->is_part)
		return;
	fprintf(report->out, "%s%s allocated", is_least ? "At least " : "About ",
		amount_bytes(bytes, amount));
	if (bill->cycles && !is_least)
		fprintf(report->out, ", for each cycle %s at most",
			amount_bytes(bytes / bill->cycles, amount));
	fputs(".\n", report->out);
}

/* Write the longest steps that samples have met. */
static void write_steps(const struct report *report)
{
	const struct gc_bill *bill = &report->tally.gc;
	char label[FRAME_LABEL_SIZE];

	if (bill->steps[0].length_ns == 0)
		return;
	fputs("\n ms at least          at s  longest steps of the collector, and the function that they ran in\n",
	      report->out);
	for (size_t i = 0; i < GC_STEPS_MAX && bill->steps[i].length_ns; i++) {
		const struct gc_step *step = &bill->steps[i];

		fprintf(report->out, "%12.1f  %12.3f  %s", (double)step->length_ns / 1e6,
			((double)step->begin_ns - (double)report->session->start_ns) / 1e9,
			gc_phase_name(step->first));
		if (step->last != step->first)
			fprintf(report->out, " to %s", gc_phase_name(step->last));
		if (step->frame.function) {
			frame_label(step->frame.function, step->frame.line, report->view->by_line, label);
			fputs(", ", report->out);
			escape_write(ESCAPE_PLAIN, label, report->out);
		}
		fputc('\n', report->out);
	}
}

static int compare_totals(const struct tally_row *a, const struct tally_row *b)
{
	return a->total.ns > b->total.ns ? -1 : a->total.ns < b->total.ns;
}

/* What was allocated, or that this is not known. */
static bool is_allocated(const struct tally_row *row)
{
	return row->key.function->kind == FRAME_ALLOCATED ||
	       (row->key.function->kind == FRAME_LOST && row->own.ns > 0);
}

/* Write what was allocated. */
static void write_allocated(struct report *report)
{
	const struct gc_bill *bill = &report->tally.gc;
	const enum weight_kind weight = report->view->weight;
	char amount[AMOUNT_SIZE], bytes[FIGURES_BYTES_SIZE];

	if (weights[weight].clock != WEIGHT_ALLOC_BYTES)
		return;
	write_title(report, "allocated");
	HASH_SORT(report->tally.rows, compare_totals);
	for (const struct tally_row *row = report->tally.rows; row; row = row->hh.next) {
		if (!is_allocated(row) || !is_shown(report, row->total.ns))
			continue;
		write_share(report, row->total.ns, row->total.sample_squares);
		write_amount(report, row->total.ns);
		write_label(report, row);
	}
	write_heap(report);
	if (bill->cycles)
		fprintf(report->out, "For each cycle of the collector, %s at most.\n",
			amount_alone(weight, report->tally.all_ns / bill->cycles, amount));
	if (figures_uncertain_bytes(report->figures, bytes))
		fprintf(report->out, "%s.\n", bytes);
	if (figures_large_bytes(report->figures, bytes))
		fprintf(report->out, "%s.\n", bytes);
}

/* Write what the collector took. */
static void write_collector(const struct report *report)
{
	const struct gc_bill *bill = &report->tally.gc;

	if (!weight_is_time(report->view->weight) || !gc_bill_has_any(bill))
		return;
	write_title(report, "collector");
	for (enum gc_phase phase = GC_PHASE_NONE + 1; phase < GC_PHASE_COUNT; phase++) {
		if (!bill->phase_ns[phase])
			continue;
		write_share(report, bill->phase_ns[phase], bill->phase_squares[phase]);
		write_amount(report, bill->phase_ns[phase]);
		fprintf(report->out, "%s\n", gc_phase_name(phase));
	}
	write_heap(report);
	write_allocated_for_cycles(report);
	write_steps(report);
}

static int compare_collected(const struct tally_row *a, const struct tally_row *b)
{
	return a->collector_ns > b->collector_ns ? -1 : a->collector_ns < b->collector_ns;
}

/* Write in which Lua functions the collector ran most. */
static void write_collected(struct report *report)
{
	unsigned written = 0;

	if (!weight_is_time(report->view->weight))
		return;
	HASH_SORT(report->tally.rows, compare_collected);
	for (const struct tally_row *row = report->tally.rows; row && written < COLLECTED_MAX;
	     row = row->hh.next) {
		if (!is_shown(report, row->collector_ns))
			break;
		if (!written++)
			write_title(report, "the collector ran in");
		write_share(report, row->collector_ns, row->collector_squares);
		write_amount(report, row->collector_ns);
		write_label(report, row);
	}
}

/* "12.3 ms" */
static void write_time(const struct report *report, const char *what, double ns)
{
	fprintf(report->out, ", %s %.1f ms", what, ns / 1e6);
}

static void write_latencies(const struct report *report)
{
	const struct request_bill *bill = &report->tally.requests;
	double most = 0;

	fprintf(report->out, "\nAbout %.0f requests, %" PRIu64 " of them seen", bill->requests, bill->seen);
	write_time(report, "p50", bill->p50_ns);
	write_time(report, "p99", bill->p99_ns);
	write_time(report, "p99.9", bill->p999_ns);
	write_time(report, "oldest seen", (double)bill->slowest[0].age_ns);
	fputs("\n\n    requests  from (about)\n", report->out);
	for (size_t i = 0; i < REQUEST_BILL_BUCKETS; i++)
		most = bill->buckets[i] > most ? bill->buckets[i] : most;
	for (size_t i = 0; i < REQUEST_BILL_BUCKETS; i++) {
		if (bill->buckets[i] <= 0)
			continue;
		fprintf(report->out, "%12.0f  %10.3f ms  ", bill->buckets[i],
			(double)(UINT64_C(1) << i) / 1e3);
		for (int bar = 0; bar < (int)(BAR_CHARACTERS * bill->buckets[i] / most) + 1; bar++)
			fputc('#', report->out);
		fputc('\n', report->out);
	}
}

/* With the numbers by which --request finds them. */
static void write_slowest(const struct report *report)
{
	const struct request_bill *bill = &report->tally.requests;

	fputs("\n          age  request          process  the slowest: age when last seen, by nginx's clock "
	      "(see --request)\n",
	      report->out);
	for (size_t i = 0; i < bill->slowest_count; i++) {
		const struct request_bill_slow *slow = &bill->slowest[i];
		char number[2 * sizeof("18446744073709551615")];

		snprintf(number, sizeof(number), "%" PRIu64 ".%" PRIu64, slow->connection, slow->number);
		fprintf(report->out, "%10.1f ms  %-15s  %7" PRIu64 "  ", (double)slow->age_ns / 1e6, number,
			slow->pid);
		escape_write(ESCAPE_PLAIN, slow->route, report->out);
		fputc('\n', report->out);
	}
}

/* Write what requests waited for, by route. */
static void write_requests(const struct report *report)
{
	const struct request_bill *bill = &report->tally.requests;

	if (!bill->has_waiting)
		return;
	write_title(report, "route and what its requests waited for");
	for (size_t i = 0; i < bill->row_count; i++) {
		const struct request_bill_row *row = &bill->rows[i];

		if (i == 0 || strcmp(row->route, row[-1].route) != 0) {
			write_share(report, row->route_ns, row->route_squares);
			write_amount(report, row->route_ns);
			escape_write(ESCAPE_PLAIN, row->route, report->out);
			fputc('\n', report->out);
		}
		write_share(report, row->ns, row->squares);
		write_amount(report, row->ns);
		fputs("  ", report->out);
		escape_write(ESCAPE_PLAIN, row->kind, report->out);
		fputc('\n', report->out);
	}
	write_latencies(report);
	write_slowest(report);
}

static bool is_group(const struct report *report, const struct tally_row *row)
{
	return report->view->group && row->root_ns;
}

static void write_table(const struct report *report)
{
	const char *unit = amount_column(report->view->weight);
	char own[AMOUNT_SIZE], total[AMOUNT_SIZE];
	size_t left_out = 0;

	fprintf(report->out, "\n        own %%         total %%  %*s %s  %*s %s  function\n",
		AMOUNT_WIDTH - 1 - (int)strlen(unit), "own", unit, AMOUNT_WIDTH - 1 - (int)strlen(unit),
		"total", unit);
	for (const struct tally_row *row = report->tally.rows; row; row = row->hh.next) {
		if (is_group(report, row) || row->key.function->kind == FRAME_ALLOCATED)
			continue;
		if (!is_shown(report, row->total.ns)) {
			left_out++;
			continue;
		}
		write_share(report, row->own.ns, row->own.sample_squares);
		fputs("  ", report->out);
		write_share(report, row->total.ns, row->total.sample_squares);
		fprintf(report->out, "  %*s  %*s  ", AMOUNT_WIDTH,
			amount_in_column(report->view->weight, row->own.ns, own), AMOUNT_WIDTH,
			amount_in_column(report->view->weight, row->total.ns, total));
		write_label(report, row);
	}
	if (left_out)
		fprintf(report->out, "%zu with a total below %g %% are left out.\n", left_out,
			100 * report->min_share);
}

/*---- Callers and callees ----*/

/* Sort calls by caller, or by callee; equal ones by time, the largest first. */
static int compare_by_caller(const void *a, const void *b)
{
	const struct tally_call *left = *(struct tally_call *const *)a;
	const struct tally_call *right = *(struct tally_call *const *)b;

	if (left->key.caller != right->key.caller)
		return left->key.caller < right->key.caller ? -1 : 1;
	return left->ns > right->ns ? -1 : left->ns < right->ns;
}

static int compare_by_callee(const void *a, const void *b)
{
	const struct tally_call *left = *(struct tally_call *const *)a;
	const struct tally_call *right = *(struct tally_call *const *)b;

	if (left->key.callee != right->key.callee)
		return left->key.callee < right->key.callee ? -1 : 1;
	return left->ns > right->ns ? -1 : left->ns < right->ns;
}

/* The first call of this row in an array sorted by caller or by callee. */
static size_t find_calls(struct tally_call **calls, size_t count, bool by_caller, const struct tally_row *row)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct tally_row *at = by_caller ? calls[middle]->key.caller
						       : calls[middle]->key.callee;

		if (at < row)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void write_calls(const struct report *report, bool by_caller, const struct tally_row *row)
{
	struct tally_call **calls = report->calls + (by_caller ? 0 : report->call_count);

	for (size_t i = find_calls(calls, report->call_count, by_caller, row); i < report->call_count; i++) {
		const struct tally_row *here = by_caller ? calls[i]->key.caller : calls[i]->key.callee;
		const struct tally_row *there = by_caller ? calls[i]->key.callee : calls[i]->key.caller;

		if (here != row || !is_shown(report, calls[i]->ns))
			break;
		fputs("    ", report->out);
		write_share(report, calls[i]->ns, calls[i]->squares);
		fputs(by_caller ? "  calls      " : "  called by  ", report->out);
		write_label(report, there);
	}
}

static void write_neighbours(const struct report *report)
{
	fprintf(report->out, "\nCallers and callees, by their part of all %s\n",
		weights[report->view->weight].unit);
	for (const struct tally_row *row = report->tally.rows; row; row = row->hh.next) {
		if (!is_shown(report, row->total.ns))
			continue;
		fputc('\n', report->out);
		write_share(report, row->total.ns, row->total.sample_squares);
		fputs("  ", report->out);
		write_label(report, row);
		write_calls(report, false, row);
		write_calls(report, true, row);
	}
}

/* Fill report->calls with all calls twice: sorted by caller, then by callee. 0 or -ENOMEM. */
static int sort_calls(struct report *report)
{
	size_t i = 0;

	report->call_count = HASH_COUNT(report->tally.calls);
	report->calls = calloc(2 * report->call_count + 1, sizeof(struct tally_call *));
	if (!report->calls)
		return -ENOMEM;
	for (struct tally_call *call = report->tally.calls; call; call = call->hh.next, i++)
		report->calls[i] = report->calls[report->call_count + i] = call;
	qsort(report->calls, report->call_count, sizeof(struct tally_call *), compare_by_caller);
	qsort(report->calls + report->call_count, report->call_count, sizeof(struct tally_call *),
	      compare_by_callee);
	return 0;
}

static int compare_rows(const struct tally_row *a, const struct tally_row *b)
{
	if (a->own.ns != b->own.ns)
		return a->own.ns > b->own.ns ? -1 : 1;
	return a->total.ns > b->total.ns ? -1 : a->total.ns < b->total.ns;
}

int text_report_write(FILE *out, struct sample_source *source, const struct session *session,
		      const struct figures *figures, const struct view *view)
{
	struct report report = {
		.out = out,
		.session = session,
		.figures = figures,
		.view = view,
		.min_share = (view->min_percent > 0 ? view->min_percent : VIEW_TEXT_MIN_PERCENT) / 100,
	};
	int error;

	if (view->source)
		return source_report_write(out, source, session, figures, view);
	error = tally_read(source, figures->samples, view, true, &report.tally);

	if (error)
		return error;
	error = sort_calls(&report);
	if (!error) {
		session_title_write_head(out, session, figures, report.tally.samples, report.tally.all_ns);
		fputs("\u00b1 is the standard error of sampling, by the weights of the samples.\n", out);
		if (view->group)
			write_groups(&report);
		write_requests(&report);
		write_allocated(&report);
		write_collector(&report);
		write_collected(&report);
		HASH_SORT(report.tally.rows, compare_rows);
		write_table(&report);
		write_neighbours(&report);
	}
	free(report.calls);
	tally_clear(&report.tally);
	return error ? error : ferror(out) ? -EIO : 0;
}
