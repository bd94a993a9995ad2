/* SPDX-License-Identifier: MIT */
#include "output/formats/pprof.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/formats/pprof.pb-c.h"
#include "output/labels/escape.h"
#include "output/labels/frame_text.h"
#include "output/labels/gzip.h"
#include "output/labels/names.h"
#include "output/labels/string_index.h"
#include "output/views/sample_table.h"

enum { VALUE_TYPES_MAX = 3, LABELS_MAX = 7, MAPPING_ID = 1 };

/*
 * The profile is written in pieces, which readers merge: each element is packed
 * as a Profile that holds nothing else.
 */
struct writer {
	struct gzip *gzip;
	const struct sample_table *table;
	const struct session *session;
	bool wall; /* elapsed time is a value */
	struct string_index *strings;
	int error;           /* the first one */
	uint64_t *locations; /* room for the deepest stack */
};

static void write_piece(struct writer *writer, const Pprof__Profile *piece)
{
	int error = gzip_write_message(writer->gzip, &piece->base);

	if (error && !writer->error)
		writer->error = error;
}

/* The number of a text that needs no escaping. */
static int64_t safe_string(struct writer *writer, const char *text)
{
	int64_t number = string_index_add(writer->strings, text);

	if (number < 0) {
		writer->error = (int)number;
		return 0;
	}
	return number;
}

/* The number of a text of the target; for NULL, of the empty text. */
static int64_t target_string(struct writer *writer, const char *text)
{
	char escaped[FRAME_TEXT_SIZE];

	escape_text(ESCAPE_PLAIN, text ? text : "", escaped, sizeof(escaped));
	return safe_string(writer, escaped);
}

/*---- Tables ----*/

static void write_functions(struct writer *writer)
{
	for (uint32_t i = 0; i < writer->table->function_count; i++) {
		const struct function *function = writer->table->functions[i];
		char name[FRAME_TEXT_SIZE], file[FRAME_TEXT_SIZE];
		Pprof__Function message = PPROF__FUNCTION__INIT, *element = &message;
		Pprof__Profile piece = PPROF__PROFILE__INIT;

		message.id = (uint64_t)i + 1;
		message.name = safe_string(writer, frame_text(function, 0, false, name));
		/* Readers demangle and then shorten system names. */
		message.system_name = target_string(
			writer, strcmp(name, function->name ? function->name : "") ? function->name : NULL);
		message.filename = safe_string(writer, frame_text_file(function, file) ? file : "");
		message.start_line = function->firstline;
		piece.n_function = 1;
		piece.function = &element;
		write_piece(writer, &piece);
	}
}

static void write_locations(struct writer *writer)
{
	for (uint32_t i = 0; i < writer->table->frame_count; i++) {
		const struct table_frame *frame = &writer->table->frames[i];
		Pprof__Line line = PPROF__LINE__INIT, *lines = &line;
		Pprof__Location message = PPROF__LOCATION__INIT, *element = &message;
		Pprof__Profile piece = PPROF__PROFILE__INIT;

		line.function_id = (uint64_t)frame->function + 1;
		line.line = frame->line;
		message.id = (uint64_t)i + 1;
		message.mapping_id = MAPPING_ID;
		message.n_line = 1;
		message.line = &lines;
		piece.n_location = 1;
		piece.location = &element;
		write_piece(writer, &piece);
	}
}

/* One mapping for all locations. It says that readers have nothing to look up in it. */
static void write_mapping(struct writer *writer)
{
	Pprof__Mapping message = PPROF__MAPPING__INIT, *element = &message;
	Pprof__Profile piece = PPROF__PROFILE__INIT;

	message.id = MAPPING_ID;
	message.filename = target_string(writer, writer->session->target);
	message.has_functions = message.has_filenames = true;
	message.has_line_numbers = message.has_inline_frames = true;
	piece.n_mapping = 1;
	piece.mapping = &element;
	write_piece(writer, &piece);
}

static void write_strings(struct writer *writer)
{
	for (char *text = NULL; (text = string_index_next(writer->strings, text));) {
		Pprof__Profile piece = PPROF__PROFILE__INIT;

		piece.n_string_table = 1;
		piece.string_table = &text;
		write_piece(writer, &piece);
	}
}

/*---- Samples ----*/

static Pprof__Label *add_label(struct writer *writer, Pprof__Sample *sample, const char *key)
{
	Pprof__Label *label = sample->label[sample->n_label++];

	pprof__label__init(label);
	label->key = safe_string(writer, key);
	return label;
}

static void add_text_label(struct writer *writer, Pprof__Sample *sample, const char *key, const char *text)
{
	if (text)
		add_label(writer, sample, key)->str = target_string(writer, text);
}

static void add_number_label(struct writer *writer, Pprof__Sample *sample, const char *key, int number)
{
	add_label(writer, sample, key)->num = number;
}

static void write_sum(struct writer *writer, const struct table_sum *sum)
{
	const struct table_kind *kind = &sum->kind;
	const struct table_thread *thread = &writer->table->threads[kind->thread];
	Pprof__Label labels[LABELS_MAX], *label_pointers[LABELS_MAX];
	Pprof__Sample message = PPROF__SAMPLE__INIT, *element = &message;
	Pprof__Profile piece = PPROF__PROFILE__INIT;
	int64_t values[VALUE_TYPES_MAX] = { (int64_t)sum->count, (int64_t)sum->cpu_ns,
					    (int64_t)sum->wall_ns };

	for (int i = 0; i < LABELS_MAX; i++)
		label_pointers[i] = &labels[i];
	message.value = values;
	message.n_value = writer->wall ? 3 : 2;
	message.location_id = writer->locations;
	for (uint32_t stack = kind->stack; stack; stack = writer->table->stacks[stack].parent)
		writer->locations[message.n_location_id++] = (uint64_t)writer->table->stacks[stack].frame + 1;
	message.label = label_pointers;
	add_number_label(writer, &message, "pid", (int)thread->pid);
	add_number_label(writer, &message, "tid", (int)thread->tid);
	add_text_label(writer, &message, "process", thread->process_name);
	add_text_label(writer, &message, "thread", thread->thread_name);
	add_text_label(writer, &message, "state", thread_state_name((enum thread_state)kind->thread_state));
	add_text_label(writer, &message, "vm_state", vm_state_name((enum vm_state)kind->vm_state));
	add_text_label(writer, &message, "phase", kind->phase);
	piece.n_sample = 1;
	piece.sample = &element;
	write_piece(writer, &piece);
}

/*---- About the profile ----*/

static Pprof__ValueType value_type(struct writer *writer, const char *type, const char *unit)
{
	Pprof__ValueType message = PPROF__VALUE_TYPE__INIT;

	message.type = safe_string(writer, type);
	message.unit = safe_string(writer, unit);
	return message;
}

static void write_about(struct writer *writer, const struct figures *figures)
{
	const struct session *session = writer->session;
	Pprof__ValueType types[VALUE_TYPES_MAX] = {
		value_type(writer, "samples", "count"),
		value_type(writer, "cpu", "nanoseconds"),
		value_type(writer, "wall", "nanoseconds"),
	};
	Pprof__ValueType *pointers[VALUE_TYPES_MAX] = { &types[0], &types[1], &types[2] };
	Pprof__Profile piece = PPROF__PROFILE__INIT;

	piece.n_sample_type = writer->wall ? 3 : 2;
	piece.sample_type = pointers;
	piece.default_sample_type = types[weights[writer->table->weight].is_elapsed ? 2 : 1].type;
	piece.period_type = &types[weights[session->clock].is_elapsed ? 2 : 1];
	if (figures->rate_asked_hz > 0)
		piece.period = (int64_t)(1e9 / figures->rate_asked_hz);
	piece.time_nanos = (int64_t)session->start_unix_ns;
	piece.duration_nanos = (int64_t)session->duration_ns;
	write_piece(writer, &piece);
}

static void write_comment(struct writer *writer, const char *text)
{
	Pprof__Profile piece = PPROF__PROFILE__INIT;
	int64_t number = target_string(writer, text);

	piece.n_comment = 1;
	piece.comment = &number;
	write_piece(writer, &piece);
}

/* Write each line of figures_print() as a comment. */
static void write_figures(struct writer *writer, const struct figures *figures)
{
	char *text = NULL, *line, *rest;
	size_t size;
	FILE *memory = open_memstream(&text, &size);

	if (!memory) {
		writer->error = -ENOMEM;
		return;
	}
	figures_print(memory, figures);
	if (fclose(memory) != 0 || !text)
		writer->error = -ENOMEM;
	else
		for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
			write_comment(writer, line);
	free(text);
}

static int write_table(struct writer *writer, const struct figures *figures)
{
	const struct sample_table *table = writer->table;

	/* The first string must be empty. */
	safe_string(writer, "");
	write_about(writer, figures);
	write_mapping(writer);
	write_functions(writer);
	write_locations(writer);
	for (size_t i = 0; i < table->sum_count; i++)
		write_sum(writer, &table->sums[i]);
	if (writer->session->command_line)
		write_comment(writer, writer->session->command_line);
	write_figures(writer, figures);
	write_strings(writer);
	return writer->error;
}

int pprof_write(FILE *out, struct sample_source *source, const struct session *session,
		const struct figures *figures, const struct view *view)
{
	struct writer writer = { .session = session };
	struct sample_table *table;
	int end, error = sample_table_read(source, view->weight, &table);

	if (error)
		return error;
	writer.table = table;
	writer.wall = weights[session->clock].is_elapsed || weights[view->weight].is_elapsed;
	writer.strings = string_index_new();
	writer.locations = calloc((size_t)table->depth + 1, sizeof(*writer.locations));
	writer.gzip = gzip_new(out);
	error = writer.strings && writer.locations && writer.gzip ? write_table(&writer, figures) : -ENOMEM;
	end = gzip_end(writer.gzip);
	string_index_free(writer.strings);
	free(writer.locations);
	sample_table_free(table);
	return error ? error : end;
}
