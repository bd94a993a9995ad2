/* SPDX-License-Identifier: MIT */
#include "output/source/source_data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/hash.h"
#include "output/labels/escape.h"
#include "output/labels/frame_label.h"

/* A file, with the indices of its functions. */
struct file {
	const char *name;
	size_t *functions;
	size_t count;
	struct source_text text;
	UT_hash_handle hh;
};

static void clear(struct file *files)
{
	struct file *file, *next;

	HASH_ITER(hh, files, file, next) {
		HASH_DEL(files, file);
		source_text_clear(&file->text);
		free(file->functions);
		free(file);
	}
}

static struct file *find_or_add(struct file **files, const char *name)
{
	struct file *file;

	HASH_FIND_STR(*files, name, file);
	if (file)
		return file;
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->name = name;
	HASH_ADD_KEYPTR(hh, *files, file->name, strlen(file->name), file);
	if (hash_added(&file->hh))
		return file;
	free(file);
	return NULL;
}

/* Grow by doubling: at counts that are powers of two. */
static int add_function(struct file *file, size_t index)
{
	size_t *grown = file->functions;

	if ((file->count & (file->count - 1)) == 0)
		grown = reallocarray(grown, file->count ? 2 * file->count : 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	file->functions = grown;
	file->functions[file->count++] = index;
	return 0;
}

static int collect(const struct function *const *functions, size_t count, struct file **files)
{
	for (size_t i = 0; i < count; i++) {
		struct file *file;

		if (!functions[i] || functions[i]->kind != FRAME_LUA || !functions[i]->file)
			continue;
		file = find_or_add(files, functions[i]->file);
		if (!file || add_function(file, i))
			return -ENOMEM;
	}
	return 0;
}

static size_t size_of(const struct source_text *text)
{
	size_t size = 0;

	for (size_t i = 0; i < text->line_count; i++)
		size += strlen(text->lines[i]) + 1;
	return size;
}

static int read_texts(struct file *files, struct source_reader *reader)
{
	size_t left = SOURCE_ALL_BYTES_MAX;

	for (struct file *file = files; file; file = file->hh.next) {
		int error = reader->read(reader, file->name, &file->text);
		size_t size = error ? 0 : size_of(&file->text);

		if (error)
			return error;
		if (size > left) {
			source_text_clear(&file->text);
			snprintf(file->text.note, sizeof(file->text.note),
				 "left out, because the files are too large together");
			continue;
		}
		left -= size;
	}
	return 0;
}

static void write_list(FILE *out, const struct file *files)
{
	fputs("<metadata id=\"files\">", out);
	for (const struct file *file = files; file; file = file->hh.next) {
		escape_write(ESCAPE_XML, frame_label_file(file->name), out);
		fputc('\t', out);
		escape_write(ESCAPE_XML, file->text.note, out);
		for (size_t i = 0; i < file->count; i++)
			fprintf(out, "%c%zu", i ? ' ' : '\t', file->functions[i]);
		fputc('\n', out);
	}
	fputs("</metadata>\n", out);
}

void source_data_write_line(FILE *out, const char *line)
{
	char *copy = strdup(line), *rest = copy;

	for (const char *part = strsep(&rest, "\t"); part; part = strsep(&rest, "\t")) {
		escape_write(ESCAPE_XML, part, out);
		if (rest)
			fputc('\t', out);
	}
	free(copy);
}

static void write_texts(FILE *out, const struct file *files)
{
	size_t number = 0;

	for (const struct file *file = files; file; file = file->hh.next, number++) {
		if (!file->text.lines)
			continue;
		fprintf(out, "<metadata id=\"source-%zu\">", number);
		for (size_t i = 0; i < file->text.line_count; i++) {
			source_data_write_line(out, file->text.lines[i]);
			fputc('\n', out);
		}
		fputs("</metadata>\n", out);
	}
}

int source_data_write(FILE *out, const struct function *const *functions, size_t count,
		      struct source_reader *reader)
{
	struct file *files = NULL;
	int error = collect(functions, count, &files);

	if (!error)
		error = read_texts(files, reader);
	if (!error) {
		write_list(out, files);
		write_texts(out, files);
	}
	clear(files);
	return error;
}
