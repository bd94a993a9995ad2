/* SPDX-License-Identifier: MIT */
#include "output/listing/listing_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "output/sample/text_copy.h"
#include "output/labels/escape.h"
#include "output/labels/json_values.h"

struct listing_process *listing_process_new(pid_t pid, const char *name)
{
	struct listing_process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->pid = pid;
	if (!text_copy(name, &process->name)) {
		free(process);
		return NULL;
	}
	process->complete = true;
	return process;
}

void listing_process_free(struct listing_process *process)
{
	if (!process)
		return;
	for (size_t i = 0; i < process->count; i++) {
		listing_clear(&process->parts[i].listing);
		free(process->parts[i].module);
	}
	free(process->parts);
	free(process->name);
	free(process);
}

struct listing_part *listing_process_add(struct listing_process *process, uint64_t g, const char *module)
{
	struct listing_part *parts = array_grow(process->parts, &process->size, process->count + 1,
						sizeof(*parts));

	if (!parts)
		return NULL;
	process->parts = parts;
	parts[process->count] = (struct listing_part){ .g = g, .module = strdup(module) };
	if (!parts[process->count].module)
		return NULL;
	return &parts[process->count++];
}

static double share(const struct listing_process *process, uint64_t ns)
{
	return process->cpu_ns ? (double)ns / (double)process->cpu_ns : 0;
}

/*---- For people ----*/

enum { TEXT_COLUMNS = 68 };

static void print_escaped(FILE *out, const char *text)
{
	escape_write(ESCAPE_PLAIN, text, out);
}

static void print_text(FILE *out, const char *text, bool has_place)
{
	size_t length = strlen(text);

	print_escaped(out, text);
	if (has_place && length < TEXT_COLUMNS)
		fprintf(out, "%*s", (int)(TEXT_COLUMNS - length), "");
}

static void print_line(FILE *out, const struct listing_process *process, const struct listing_line *line)
{
	if (line->kind == LISTING_HEAD)
		putc('\n', out);
	if (process->has_samples && line->samples && line->kind != LISTING_HEAD)
		fprintf(out, "%6.2f  ", 100 * share(process, line->cpu_ns));
	else if (process->has_samples && line->kind != LISTING_HEAD)
		fputs("        ", out);
	print_text(out, line->text, *line->place != '\0');
	if (*line->place) {
		fputs("  ", out);
		print_escaped(out, line->place);
	}
	putc('\n', out);
}

static void print_part(FILE *out, const struct listing_process *process, const struct listing_part *part)
{
	const struct listing *listing = &part->listing;

	fprintf(out, "\nVM 0x%" PRIx64 " in ", part->g);
	print_escaped(out, part->module);
	if (part->trace)
		fprintf(out, ": trace %" PRIu32, part->trace);
	else
		fputs(": interpreted code of a function", out);
	if (process->has_samples)
		fprintf(out, ", %.2f %% of the time, %" PRIu64 " samples",
			100 * share(process, listing->cpu_ns), listing->samples);
	putc('\n', out);
	for (size_t i = 0; i < listing->count; i++)
		print_line(out, process, &listing->lines[i]);
	if (listing->cut)
		fputs("  There are more lines than ljspy shows.\n", out);
}

void listing_process_print(FILE *out, const struct listing_process *process)
{
	fprintf(out, "Process %d", (int)process->pid);
	if (process->name) {
		putc(' ', out);
		print_escaped(out, process->name);
	}
	if (process->has_samples)
		fprintf(out, ": %" PRIu64 " samples, %.1f s of CPU time in %.1f s\n", process->samples,
			(double)process->cpu_ns / 1e9, (double)process->duration_ns / 1e9);
	else
		putc('\n', out);
	for (size_t i = 0; i < process->count; i++)
		print_part(out, process, &process->parts[i]);
	if (process->left_off)
		fprintf(out, "\n%" PRIu32 " more functions match.\n", process->left_off);
	if (!process->complete)
		fputs("\nNot all could be read.\n", out);
}

/*---- JSON ----*/

static json_t *line_json(const struct listing_process *process, const struct listing_line *line)
{
	static const char *const kinds[LISTING_KIND_COUNT] = {
		[LISTING_HEAD] = "head",         [LISTING_BYTECODE] = "bytecode", [LISTING_IR] = "ir",
		[LISTING_SNAPSHOT] = "snapshot", [LISTING_CODE] = "code",         [LISTING_NOTE] = "note",
	};

	return json_pack(
		"{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "kind", kinds[line->kind], "text",
		json_value_text(line->text), "place", json_value_text(*line->place ? line->place : NULL),
		"address", line->address ? json_value_address(line->address) : json_null(), "ir",
		json_value_number(line->ref), "samples",
		process->has_samples ? json_integer((json_int_t)line->samples) : json_null(), "share",
		process->has_samples ? json_real(share(process, line->cpu_ns)) : json_null());
}

static json_t *lines_json(const struct listing_process *process, const struct listing *listing)
{
	json_t *lines = json_array();

	for (size_t i = 0; lines && i < listing->count; i++)
		lines = json_value_append(lines, line_json(process, &listing->lines[i]));
	return lines;
}

static json_t *parts_json(const struct listing_process *process)
{
	json_t *parts = json_array();

	for (size_t i = 0; parts && i < process->count; i++) {
		const struct listing_part *part = &process->parts[i];

		parts = json_value_append(
			parts,
			json_pack("{s:o, s:o, s:o, s:o, s:b, s:o}", "g", json_value_address(part->g), "file",
				  json_value_text(part->module), "trace", json_value_number(part->trace),
				  "share",
				  process->has_samples ? json_real(share(process, part->listing.cpu_ns))
						       : json_null(),
				  "cut", (int)part->listing.cut, "lines",
				  lines_json(process, &part->listing)));
	}
	return parts;
}

json_t *listing_process_json(const struct listing_process *process)
{
	return json_pack(
		"{s:i, s:o, s:o, s:o, s:o, s:b, s:i, s:o}", "pid", (int)process->pid, "name",
		json_value_text(process->name), "duration_ms",
		process->has_samples ? json_real((double)process->duration_ns / 1e6) : json_null(), "cpu_ms",
		process->has_samples ? json_real((double)process->cpu_ns / 1e6) : json_null(), "samples",
		process->has_samples ? json_integer((json_int_t)process->samples) : json_null(), "complete",
		(int)process->complete, "more_functions", (int)process->left_off, "listings",
		parts_json(process));
}
