/* SPDX-License-Identifier: MIT */
#include "output/source/source_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The file of a function, so that its name is looked up once. */
struct known {
	const struct function *function;
	struct source_file *file;
	UT_hash_handle hh;
};

struct reading {
	struct source_lines lines;
	struct known *known;
	enum weight_kind weight;
};

static struct source_file *file_by_name(struct source_lines *lines, const char *name)
{
	struct source_file *file;

	HASH_FIND_STR(lines->files, name, file);
	if (file)
		return file;
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->name = name;
	HASH_ADD_KEYPTR(hh, lines->files, file->name, strlen(file->name), file);
	if (hash_added(&file->hh))
		return file;
	free(file);
	return NULL;
}

static struct source_file *file_of(struct reading *reading, const struct function *function)
{
	struct known *known;

	HASH_FIND_PTR(reading->known, &function, known);
	if (known)
		return known->file;
	known = calloc(1, sizeof(*known));
	if (!known)
		return NULL;
	known->function = function;
	known->file = file_by_name(&reading->lines, function->file);
	HASH_ADD_PTR(reading->known, function, known);
	if (!hash_added(&known->hh)) {
		free(known);
		return NULL;
	}
	return known->file;
}

static struct source_line *line_of(struct source_file *file, uint32_t number)
{
	struct source_line *line;

	HASH_FIND(hh, file->lines, &number, sizeof(number), line);
	if (line)
		return line;
	line = calloc(1, sizeof(*line));
	if (!line)
		return NULL;
	line->number = number;
	HASH_ADD(hh, file->lines, number, sizeof(line->number), line);
	if (hash_added(&line->hh))
		return line;
	free(line);
	return NULL;
}

static void add_own(struct source_time *time, const struct sample *sample, uint64_t ns)
{
	time->own_ns += ns;
	time->state_ns[sample->vm_state] += ns;
}

static void add_total(struct source_time *time, uint64_t number, uint64_t ns)
{
	if (time->last_sample == number)
		return;
	time->last_sample = number;
	time->total_ns += ns;
}

static int add_sample(void *context, const struct sample *sample)
{
	struct reading *reading = context;
	const uint64_t ns = weight_of(reading->weight, sample);
	bool is_innermost = true;

	reading->lines.samples++;
	reading->lines.all_ns += ns;
	for (size_t i = 0; i < sample->frame_count; i++) {
		const struct frame *frame = &sample->frames[i];
		struct source_file *file;
		struct source_line *line;

		if (frame->function->kind != FRAME_LUA || !frame->function->file)
			continue;
		file = file_of(reading, frame->function);
		line = file ? line_of(file, frame->line) : NULL;
		if (!line)
			return -ENOMEM;
		if (is_innermost) {
			add_own(&file->time, sample, ns);
			add_own(&line->time, sample, ns);
		}
		is_innermost = false;
		add_total(&file->time, reading->lines.samples, ns);
		add_total(&line->time, reading->lines.samples, ns);
	}
	return 0;
}

static int by_number(const struct source_line *a, const struct source_line *b)
{
	return a->number < b->number ? -1 : a->number > b->number;
}

static int by_time(const struct source_file *a, const struct source_file *b)
{
	if (a->time.own_ns != b->time.own_ns)
		return a->time.own_ns > b->time.own_ns ? -1 : 1;
	if (a->time.total_ns != b->time.total_ns)
		return a->time.total_ns > b->time.total_ns ? -1 : 1;
	return strcmp(a->name, b->name);
}

static void sort(struct source_lines *lines)
{
	HASH_SORT(lines->files, by_time);
	for (struct source_file *file = lines->files; file; file = file->hh.next)
		HASH_SORT(file->lines, by_number);
}

int source_lines_read(struct sample_source *source, enum weight_kind weight, struct source_lines *ret_lines)
{
	struct reading reading = { .weight = weight };
	int error = sample_source_each(source, add_sample, &reading);

	HASH_FREE_ALL(reading.known);
	if (error) {
		source_lines_clear(&reading.lines);
		return error;
	}
	sort(&reading.lines);
	*ret_lines = reading.lines;
	return 0;
}

static void free_file(struct source_file *file)
{
	HASH_FREE_ALL(file->lines);
	free(file);
}

void source_lines_clear(struct source_lines *lines)
{
	struct source_file *file, *next;

	HASH_ITER(hh, lines->files, file, next) {
		HASH_DEL(lines->files, file);
		free_file(file);
	}
}
