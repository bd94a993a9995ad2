/* SPDX-License-Identifier: MIT */
#include "output/source/source_report.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "output/labels/escape.h"
#include "output/labels/frame_label.h"
#include "output/labels/session_title.h"
#include "output/sample/utf8.h"
#include "output/source/source_lines.h"

enum {
	AROUND = 2, /* lines of text before and after one with time */
	SHARE_WIDTH = 7,
	TAB = 8,
	CHARACTER_BYTES_MAX = 4,
};

struct report {
	FILE *out;
	struct source_lines lines;
	double min_share;
};

static bool is_shown(const struct report *report, const struct source_time *time)
{
	return time->total_ns > 0 &&
	       (double)time->total_ns >= report->min_share * (double)report->lines.all_ns;
}

/* In percent of all time; nothing for 0. */
static void write_share(const struct report *report, uint64_t ns)
{
	if (ns == 0)
		fprintf(report->out, "%*s  ", SHARE_WIDTH, "");
	else
		fprintf(report->out, "%*.2f  ", SHARE_WIDTH, 100 * (double)ns / (double)report->lines.all_ns);
}

static void write_time(const struct report *report, const struct source_time *time)
{
	const uint64_t told = time->state_ns[VM_STATE_INTERPRETED] + time->state_ns[VM_STATE_COMPILED] +
			      time->state_ns[VM_STATE_C] + time->state_ns[VM_STATE_GC];

	write_share(report, time->own_ns);
	write_share(report, time->total_ns);
	write_share(report, time->state_ns[VM_STATE_INTERPRETED]);
	write_share(report, time->state_ns[VM_STATE_COMPILED]);
	write_share(report, time->state_ns[VM_STATE_C]);
	write_share(report, time->state_ns[VM_STATE_GC]);
	write_share(report, time->own_ns - told);
}

/* How much of a text of this length, or longer, ends with a character. */
static size_t whole_characters(const char *text, size_t length)
{
	for (size_t whole = length; length - whole < CHARACTER_BYTES_MAX; whole--)
		if (!utf8_continues(text[whole]))
			return whole;
	return length;
}

/* With its tabs, to columns of eight, as spaces. */
static void write_code(FILE *out, const char *line)
{
	char part[1024];
	size_t column = 0;

	while (*line) {
		size_t length = strcspn(line, "\t");

		if (length >= sizeof(part))
			length = whole_characters(line, sizeof(part) - 1);
		memcpy(part, line, length);
		part[length] = '\0';
		escape_write(ESCAPE_PLAIN, part, out);
		column += utf8_count(line, length);
		line += length;
		for (; *line == '\t'; line++) {
			fprintf(out, "%*s", (int)(TAB - column % TAB), "");
			column += TAB - column % TAB;
		}
	}
}

static void write_line(const struct report *report, const struct source_time *time, uint32_t number,
		       const struct source_text *text)
{
	static const struct source_time none = { 0 };

	write_time(report, time ? time : &none);
	if (number > 0)
		fprintf(report->out, "%6" PRIu32, number);
	else
		fprintf(report->out, "%6s", "?");
	if (number > 0 && number <= text->line_count && *text->lines[number - 1]) {
		fputs("  ", report->out);
		write_code(report->out, text->lines[number - 1]);
	}
	fputc('\n', report->out);
}

/* Write the lines of text between two with time: all if they are few, else those next to them. */
static void write_between(const struct report *report, uint32_t after, uint32_t before,
			  const struct source_text *text)
{
	const uint32_t end = before <= text->line_count ? before : (uint32_t)text->line_count + 1;
	uint32_t number = after + 1;

	if (after > 0)
		for (uint32_t i = 0; i < AROUND && number < end; i++)
			write_line(report, NULL, number++, text);
	if (number < end && end - number > AROUND) {
		if (after > 0)
			fputs("   ...\n", report->out);
		number = before < UINT32_MAX ? end - AROUND : end;
	}
	while (number < end)
		write_line(report, NULL, number++, text);
}

static void write_lines(const struct report *report, const struct source_file *file,
			const struct source_text *text)
{
	uint32_t last = 0;
	size_t left_out = 0;

	for (const struct source_line *line = file->lines; line; line = line->hh.next) {
		if (!is_shown(report, &line->time)) {
			left_out++;
			continue;
		}
		if (line->number > 0)
			write_between(report, last, line->number, text);
		write_line(report, &line->time, line->number, text);
		last = line->number;
	}
	if (last > 0)
		write_between(report, last, UINT32_MAX, text);
	if (left_out)
		fprintf(report->out, "%zu lines with a total below %g %% are shown without their time.\n",
			left_out, 100 * report->min_share);
}

static int write_file(const struct report *report, const struct source_file *file,
		      struct source_reader *reader)
{
	struct source_text text = { 0 };
	int error = reader->read(reader, file->name, &text);

	if (error)
		return error;
	fputc('\n', report->out);
	escape_write(ESCAPE_PLAIN, frame_label_file(file->name), report->out);
	if (*text.note) {
		fputs(" (", report->out);
		escape_write(ESCAPE_PLAIN, text.note, report->out);
		fputc(')', report->out);
	}
	fputs("\n  own %   total %   interp.  compiled     C       GC      other    line\n", report->out);
	write_time(report, &file->time);
	fputs("   all\n", report->out);
	write_lines(report, file, &text);
	source_text_clear(&text);
	return 0;
}

static int write_files(const struct report *report, struct source_reader *reader)
{
	size_t left_out = 0;

	for (const struct source_file *file = report->lines.files; file; file = file->hh.next) {
		int error = 0;

		if (is_shown(report, &file->time))
			error = write_file(report, file, reader);
		else
			left_out++;
		if (error)
			return error;
	}
	if (left_out)
		fprintf(report->out, "\n%zu files with a total below %g %% are left out.\n", left_out,
			100 * report->min_share);
	return 0;
}

int source_report_write(FILE *out, struct sample_source *source, const struct session *session,
			const struct figures *figures, const struct view *view)
{
	struct report report = {
		.out = out,
		.min_share = (view->min_percent > 0 ? view->min_percent : VIEW_TEXT_MIN_PERCENT) / 100,
	};
	int error = source_lines_read(source, view->weight, &report.lines);

	if (error)
		return error;
	session_title_write_head(out, session, figures, report.lines.samples, report.lines.all_ns);
	fprintf(out,
		"Lines of Lua, in percent of all %s. own: at this line, or in what it called that is no Lua\n"
		"(builtins, C, the collector), by the state of the VM. total: with all that it called.\n",
		weights[view->weight].unit);
	error = write_files(&report, view->source);
	source_lines_clear(&report.lines);
	return error ? error : ferror(out) ? -EIO : 0;
}
