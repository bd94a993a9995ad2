/* SPDX-License-Identifier: MIT */
#include "output/nginx_reports/timer_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "output/labels/escape.h"
#include "output/labels/frame_label.h"
#include "output/labels/json_values.h"

enum { CELL_BYTES = 160, MS_PER_SECOND = 1000 };

static const char *const kind_names[TIMER_ROW_KINDS] = {
	[TIMER_ROW_LUA] = "ngx.timer",         [TIMER_ROW_COROUTINE] = "coroutine",
	[TIMER_ROW_CLIENT] = "client",         [TIMER_ROW_UPSTREAM] = "upstream",
	[TIMER_ROW_CONNECTION] = "connection", [TIMER_ROW_OTHER] = "other",
	[TIMER_ROW_UNKNOWN] = "unknown",
};

struct timer_report *timer_report_new(pid_t pid, const char *name)
{
	struct timer_report *report = calloc(1, sizeof(*report));

	if (!report)
		return NULL;
	report->pid = pid;
	report->name = strdup(name);
	if (report->name)
		return report;
	free(report);
	return NULL;
}

void timer_report_clear_rows(struct timer_report *report)
{
	report->row_count = 0;
	report->count = report->left_out = 0;
}

void timer_report_free(struct timer_report *report)
{
	if (!report)
		return;
	free(report->rows);
	free(report->name);
	free(report);
}

static bool is_alike(const struct timer_row *a, const struct timer_row *b)
{
	if (a->kind != b->kind || a->frame_count != b->frame_count || strcmp(a->route, b->route) != 0 ||
	    strcmp(a->peer, b->peer) != 0 || strcmp(a->module, b->module) != 0)
		return false;
	for (size_t i = 0; i < a->frame_count; i++)
		if (a->frames[i].function != b->frames[i].function || a->frames[i].line != b->frames[i].line)
			return false;
	return true;
}

int timer_report_add(struct timer_report *report, const struct timer_row *timer)
{
	struct timer_row *rows;

	report->count++;
	for (size_t i = 0; i < report->row_count; i++) {
		struct timer_row *row = &report->rows[i];

		if (!is_alike(row, timer))
			continue;
		row->count++;
		row->first_ms = timer->first_ms < row->first_ms ? timer->first_ms : row->first_ms;
		row->last_ms = timer->last_ms > row->last_ms ? timer->last_ms : row->last_ms;
		return 0;
	}
	if (report->row_count == TIMER_ROWS_MAX) {
		report->left_out++;
		return 0;
	}
	rows = array_grow(report->rows, &report->room, report->row_count + 1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	report->rows = rows;
	rows[report->row_count] = *timer;
	rows[report->row_count++].count = 1;
	return 0;
}

/*---- Text ----*/

/* A number of milliseconds in seconds, "-0.010". */
static void print_seconds(FILE *out, int64_t ms)
{
	uint64_t size = ms < 0 ? -(uint64_t)ms : (uint64_t)ms;

	fprintf(out, "%s%" PRIu64 ".%03u s", ms < 0 ? "-" : "", size / MS_PER_SECOND,
		(unsigned int)(size % MS_PER_SECOND));
}

static void print_text(FILE *out, const char *before, const char *text)
{
	if (*text == '\0')
		return;
	fputs(before, out);
	escape_write(ESCAPE_PLAIN, text, out);
}

/* The innermost frame, and the frames up to the first of Lua. */
static void print_frames(FILE *out, const struct timer_row *row)
{
	char label[FRAME_LABEL_SIZE];

	for (size_t i = 0; i < row->frame_count; i++) {
		frame_label(row->frames[i].function, row->frames[i].line, row->kind != TIMER_ROW_LUA, label);
		print_text(out, i ? " < " : "  ", label);
		if (row->frames[i].function->kind == FRAME_LUA)
			break;
	}
}

static void print_row(FILE *out, const struct timer_row *row)
{
	fprintf(out, "%6" PRIu64 "  %-10s  in ", row->count, kind_names[row->kind]);
	print_seconds(out, row->first_ms);
	if (row->last_ms != row->first_ms) {
		fputs(" to ", out);
		print_seconds(out, row->last_ms);
	}
	print_frames(out, row);
	print_text(out, "  of ", row->route);
	print_text(out, "  to ", row->peer);
	print_text(out, "  in ", row->module);
	putc('\n', out);
}

void timer_report_print(FILE *out, const struct timer_report *report)
{
	char name[CELL_BYTES];

	escape_text(ESCAPE_PLAIN, report->name ? report->name : "", name, sizeof(name));
	if (report->is_torn) {
		fprintf(out,
			"Process %d \"%s\": its timers are unknown: they changed whenever they were read\n",
			(int)report->pid, name);
		return;
	}
	fprintf(out, "Process %d \"%s\": %s%" PRIu64 " timer%s%s\n", (int)report->pid, name,
		report->is_cut ? "more than " : "", report->count, report->count == 1 ? "" : "s",
		report->asleep ? "" : "; it ran while it was read");
	for (size_t i = 0; i < report->row_count; i++)
		print_row(out, &report->rows[i]);
	if (report->left_out)
		fprintf(out, "%6" PRIu64 "  more, in other places\n", report->left_out);
}

/*---- JSON ----*/

static json_t *frames_json(const struct timer_row *row)
{
	json_t *frames = json_array();
	char label[FRAME_LABEL_SIZE];

	for (size_t i = 0; frames && i < row->frame_count; i++) {
		frame_label(row->frames[i].function, row->frames[i].line, row->kind != TIMER_ROW_LUA, label);
		frames = json_value_append(frames, json_value_text(label));
	}
	return frames;
}

static json_t *text_or_null(const char *text)
{
	return json_value_text(*text ? text : NULL);
}

static json_t *row_json(const struct timer_row *row)
{
	return json_pack("{s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "kind", kind_names[row->kind], "count",
			 (json_int_t)row->count, "first_due_ms", (json_int_t)row->first_ms, "last_due_ms",
			 (json_int_t)row->last_ms, "lua", frames_json(row), "route", text_or_null(row->route),
			 "peer", text_or_null(row->peer), "module", text_or_null(row->module));
}

json_t *timer_report_json(const struct timer_report *report)
{
	json_t *rows = json_array();

	for (size_t i = 0; rows && i < report->row_count; i++)
		rows = json_value_append(rows, row_json(&report->rows[i]));
	return rows ? json_pack("{s:i, s:o, s:b, s:b, s:I, s:b, s:I, s:o}", "pid", (int)report->pid, "name",
				json_value_text(report->name), "asleep", report->asleep, "torn",
				report->is_torn, "count", (json_int_t)report->count, "cut", report->is_cut,
				"left_out", (json_int_t)report->left_out, "timers", rows)
		    : NULL;
}
