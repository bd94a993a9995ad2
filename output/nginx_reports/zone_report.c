/* SPDX-License-Identifier: MIT */
#include "output/nginx_reports/zone_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "output/labels/escape.h"
#include "output/labels/json_values.h"

enum { CELL_BYTES = 256, NUMBER_BYTES = 24, KIB = 1024 };

static const char *const holder_texts[] = {
	[ZONE_HOLDER_ALIVE] = "alive",
	[ZONE_HOLDER_DEAD] = "DEAD: nobody will unlock it",
	[ZONE_HOLDER_UNKNOWN] = "it is unknown whether that is alive",
};

struct zone_report *zone_report_new(pid_t pid, const char *name)
{
	struct zone_report *report = calloc(1, sizeof(*report));

	if (!report)
		return NULL;
	report->pid = pid;
	report->name = strdup(name);
	if (report->name)
		return report;
	free(report);
	return NULL;
}

void zone_report_free(struct zone_report *report)
{
	if (!report)
		return;
	free(report->rows);
	free(report->name);
	free(report);
}

int zone_report_add(struct zone_report *report, const struct zone_row *row)
{
	struct zone_row *rows;

	if (report->count == ZONE_ROWS_MAX) {
		report->is_cut = true;
		return 0;
	}
	rows = array_grow(report->rows, &report->room, report->count + 1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	report->rows = rows;
	rows[report->count++] = *row;
	return 0;
}

/*---- Text ----*/

/* "?" if it is unknown; "~" before what others changed meanwhile. */
static const char *number(bool is_known, bool is_exact, uint64_t value, char ret_text[static NUMBER_BYTES])
{
	if (!is_known)
		return "?";
	snprintf(ret_text, NUMBER_BYTES, "%s%" PRIu64, is_exact ? "" : "~", value);
	return ret_text;
}

static void print_row(FILE *out, const struct zone_row *row)
{
	char used[NUMBER_BYTES], pages[NUMBER_BYTES], keys[NUMBER_BYTES], expired[NUMBER_BYTES];
	uint64_t size = row->size / KIB;

	fprintf(out, "%10" PRIu64 " %10s %10s %10s %10s  ", size,
		number(row->knows_free, true, (row->usable - row->free) / KIB, used),
		number(row->knows_free, true, row->free / ZONE_PAGE_BYTES, pages),
		row->is_dict ? number(row->knows_keys, row->is_exact, row->keys, keys) : "-",
		row->is_dict ? number(row->knows_keys, row->is_exact, row->expired, expired) : "-");
	escape_write(ESCAPE_PLAIN, row->name[0] ? row->name : "(no name)", out);
	if (row->kind[0] && !row->is_dict) {
		fputs("  ", out);
		escape_write(ESCAPE_PLAIN, row->kind, out);
	}
	putc('\n', out);
}

static void print_lock(FILE *out, const struct zone_lock *lock)
{
	char name[CELL_BYTES];

	if (!lock->is_known || lock->holder == 0)
		return;
	fprintf(out, "           locked by process %d", (int)lock->holder);
	if (lock->pid && lock->pid != lock->holder)
		fprintf(out, " (%d here)", (int)lock->pid);
	if (lock->name[0]) {
		escape_text(ESCAPE_PLAIN, lock->name, name, sizeof(name));
		fprintf(out, " \"%s\"", name);
	}
	fprintf(out, ", %s\n", holder_texts[lock->state]);
}

void zone_report_print(FILE *out, const struct zone_report *report)
{
	char name[CELL_BYTES];

	escape_text(ESCAPE_PLAIN, report->name, name, sizeof(name));
	fprintf(out, "Process %d \"%s\": %s%zu shared zone%s\n", (int)report->pid, name,
		report->is_cut ? "more than " : "", report->count, report->count == 1 ? "" : "s");
	fprintf(out, "%10s %10s %10s %10s %10s  %s\n", "size KiB", "used KiB", "free pages", "keys",
		"expired", "zone");
	for (size_t i = 0; i < report->count; i++) {
		print_row(out, &report->rows[i]);
		print_lock(out, &report->rows[i].lock);
	}
}

/*---- JSON ----*/

static json_t *known(bool is_known, uint64_t value)
{
	return is_known ? json_integer((json_int_t)value) : json_null();
}

static json_t *text_or_null(const char *text)
{
	return json_value_text(*text ? text : NULL);
}

static json_t *lock_json(const struct zone_lock *lock)
{
	json_t *alive = lock->state == ZONE_HOLDER_UNKNOWN ? json_null()
							   : json_boolean(lock->state == ZONE_HOLDER_ALIVE);

	if (lock->is_known && lock->holder)
		return json_pack("{s:i, s:o, s:o, s:o}", "holder", (int)lock->holder, "pid",
				 json_value_number((uint64_t)lock->pid), "alive", alive, "name",
				 text_or_null(lock->name));
	json_decref(alive);
	return json_null();
}

static json_t *row_json(const struct zone_row *row)
{
	bool knows_keys = row->is_dict && row->knows_keys;

	return json_pack(
		"{s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", text_or_null(row->name), "kind",
		text_or_null(row->kind), "size_bytes", (json_int_t)row->size, "usable_bytes",
		json_value_number(row->usable), "used_bytes", known(row->knows_free, row->usable - row->free),
		"free_pages", known(row->knows_free, row->free / ZONE_PAGE_BYTES), "keys",
		known(knows_keys, row->keys), "expired", known(knows_keys, row->expired), "exact",
		knows_keys ? json_boolean(row->is_exact) : json_null(), "lock", lock_json(&row->lock));
}

json_t *zone_report_json(const struct zone_report *report)
{
	json_t *rows = json_array();

	for (size_t i = 0; rows && i < report->count; i++)
		rows = json_value_append(rows, row_json(&report->rows[i]));
	return rows ? json_pack("{s:i, s:o, s:b, s:o}", "pid", (int)report->pid, "name",
				json_value_text(report->name), "cut", report->is_cut, "zones", rows)
		    : NULL;
}
