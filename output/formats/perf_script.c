/* SPDX-License-Identifier: MIT */
#include "output/formats/perf_script.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "memory/hash.h"
#include "output/labels/escape.h"
#include "output/labels/frame_text.h"
#include "output/labels/names.h"

enum { LINES_SIZE_MAX = 16 << 20 }; /* bytes of remembered lines */

/* The key of the line of a frame. It has no padding, because it is hashed as bytes. */
struct line_key {
	const struct function *function;
	uint32_t line; /* 0 without by_line */
	uint32_t map;  /* for compiled Lua code, the pid + 1; else 0 */
};

/* The written text of a frame, remembered because frames repeat and writing them takes most of the time. */
struct line {
	struct line_key key;
	char *text; /* owned */
	size_t length;
	UT_hash_handle hh;
};

struct writer {
	FILE *out;
	const struct view *view;
	struct line *lines;
	size_t lines_size;
};

/*
 * Write an escaped text so that readers accept it. They take text in round
 * brackets for arguments or a module, and "->" for the start of inlined
 * frames. Text that is not ASCII ends inferno, which may cut it inside a
 * character. A word must have no spaces.
 */
static void write_symbol(FILE *out, const char *text, bool word)
{
	for (const char *at = text; *at; at++) {
		if ((unsigned char)*at >= 0x80 || (*at == '>' && at > text && at[-1] == '-'))
			fprintf(out, "\\x%02x", (unsigned char)*at);
		else
			fputc(*at == '(' ? '[' : *at == ')' ? ']' : *at == ' ' && word ? '_' : *at, out);
	}
}

static void write_module(FILE *out, const struct sample *sample, const struct frame *frame)
{
	const struct function *function = frame->function;
	char text[FRAME_TEXT_SIZE];

	if (function->kind == FRAME_LUA && frame->compiled) {
		fprintf(out, "/tmp/perf-%d.map", (int)sample->pid);
	} else if (function->module) {
		escape_text(ESCAPE_FOLDED, function->module, text, sizeof(text));
		write_symbol(out, text, true);
	} else {
		write_symbol(out, frame_text_file(function, text) ? text : frame_kind_name(function->kind),
			     true);
	}
}

static void write_frame(FILE *out, const struct sample *sample, const struct frame *frame, bool by_line)
{
	char text[FRAME_TEXT_SIZE];

	fprintf(out, "\t%16x ", 0);
	write_symbol(out, frame_text(frame->function, frame->line, by_line, text), false);
	fputs(" (", out);
	write_module(out, sample, frame);
	fputs(")\n", out);
}

static void forget_lines(struct writer *writer)
{
	struct line *line, *next;

	HASH_ITER(hh, writer->lines, line, next) {
		HASH_DEL(writer->lines, line);
		free(line->text);
		free(line);
	}
	writer->lines_size = 0;
}

/* Write the line of a frame and remember it. NULL when memory is short. */
static const struct line *add_line(struct writer *writer, const struct line_key *key,
				   const struct sample *sample, const struct frame *frame)
{
	struct line *line = calloc(1, sizeof(*line));
	FILE *text = line ? open_memstream(&line->text, &line->length) : NULL;
	bool written = text != NULL;

	if (text) {
		write_frame(text, sample, frame, writer->view->by_line);
		if (fclose(text))
			written = false;
	}
	if (written) {
		line->key = *key;
		if (writer->lines_size > LINES_SIZE_MAX)
			forget_lines(writer);
		writer->lines_size += sizeof(*line) + line->length;
		HASH_ADD(hh, writer->lines, key, sizeof(line->key), line);
	}
	if (line && hash_added(&line->hh))
		return line;
	if (line)
		free(line->text);
	free(line);
	return NULL;
}

static const struct line *find_line(struct writer *writer, const struct sample *sample,
				    const struct frame *frame)
{
	bool is_mapped = frame->function->kind == FRAME_LUA && frame->compiled;
	struct line_key key = {
		.function = frame->function,
		.line = writer->view->by_line ? frame->line : 0,
		.map = is_mapped ? (uint32_t)sample->pid + 1 : 0,
	};
	const struct line *line;

	HASH_FIND(hh, writer->lines, &key, sizeof(key), line);
	return line ? line : add_line(writer, &key, sample, frame);
}

static void write_command(FILE *out, const char *name)
{
	char text[FRAME_TEXT_SIZE];

	escape_text(ESCAPE_FOLDED, name && *name ? name : "?", text, sizeof(text));
	/* A line that begins with "#" is a comment. */
	if (*text == '#')
		*text = '_';
	write_symbol(out, text, true);
}

static int write_sample(void *context, const struct sample *sample)
{
	struct writer *writer = context;
	const enum weight_kind kind = writer->view->weight;
	uint64_t weight = weight_of(kind, sample);

	/* Readers take a weight of 0 for 1. */
	if (weight == 0)
		return 0;
	write_command(writer->out, sample->thread_name);
	fprintf(writer->out, "  %d/%d  %" PRIu64 ".%09" PRIu64 ": %10" PRIu64 " %s%s:\n", (int)sample->pid,
		(int)sample->tid, sample->time_ns / 1000000000, sample->time_ns % 1000000000, weight,
		weights[kind].name, weight_is_time(kind) ? "-clock" : "");
	for (size_t i = 0; i < sample->frame_count; i++) {
		const struct line *line = find_line(writer, sample, &sample->frames[i]);

		if (!line)
			return -ENOMEM;
		fwrite_unlocked(line->text, 1, line->length, writer->out);
	}
	fputc('\n', writer->out);
	return 0;
}

int perf_script_write(FILE *out, struct sample_source *source, const struct session *session,
		      const struct figures *figures, const struct view *view)
{
	struct writer writer = { .out = out, .view = view };
	int error = sample_source_each(source, write_sample, &writer);

	(void)session;
	(void)figures;
	forget_lines(&writer);
	return error ? error : ferror(out) ? -EIO : 0;
}
