/* SPDX-License-Identifier: MIT */
#include "output/formats/pprof.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/formats/pprof_writer.h"
#include "output/formats/pprof_name.h"
#include "output/labels/escape.h"
#include "output/labels/frame_text.h"
#include "output/labels/module_path.h"
#include "output/labels/names.h"
#include "output/labels/session_title.h"
#include "output/views/sample_table.h"

enum { LABELS_MAX = 13 };

struct writer {
	struct pprof_writer *pprof;
	const struct sample_table *table;
	const struct session *session;
	bool is_alloc;       /* allocations are the values, not times */
	bool wall;           /* elapsed time is a value */
	bool few_labels;     /* only those with few values */
	uint64_t *locations; /* room for the deepest stack */
};

/*---- Tables ----*/

/* The file without its package root: then profiles of two deploys agree. "" if unknown. */
static const char *file_name(const struct function *function, char ret_text[static FRAME_TEXT_SIZE])
{
	size_t root = 0;
	const char *file = function->file ? module_path_file(function, &root) : "";

	escape_text(ESCAPE_PLAIN, file + root, ret_text, FRAME_TEXT_SIZE);
	return ret_text;
}

static void write_functions(struct writer *writer)
{
	for (uint32_t i = 0; i < writer->table->function_count; i++) {
		const struct function *function = writer->table->functions[i];
		char name[FRAME_TEXT_SIZE], full[FRAME_TEXT_SIZE], file[FRAME_TEXT_SIZE];
		Pprof__Function message = PPROF__FUNCTION__INIT;

		message.id = (uint64_t)i + 1;
		message.name = pprof_safe_text(writer->pprof, pprof_name(function, name));
		/* Not the raw name: readers take a name that differs for one that they need not demangle. */
		message.system_name = pprof_safe_text(writer->pprof, frame_text(function, 0, false, full));
		message.filename = pprof_safe_text(writer->pprof, file_name(function, file));
		message.start_line = function->firstline;
		pprof_write_function(writer->pprof, &message);
	}
}

static void write_locations(struct writer *writer)
{
	for (uint32_t i = 0; i < writer->table->frame_count; i++) {
		const struct table_frame *frame = &writer->table->frames[i];

		pprof_write_location(writer->pprof, (uint64_t)i + 1, (uint64_t)frame->function + 1,
				     frame->line);
	}
}

/*---- Samples ----*/

static Pprof__Label *add_label(struct writer *writer, Pprof__Sample *sample, const char *key)
{
	Pprof__Label *label = sample->label[sample->n_label++];

	pprof__label__init(label);
	label->key = pprof_safe_text(writer->pprof, key);
	return label;
}

static void add_text_label(struct writer *writer, Pprof__Sample *sample, const char *key, const char *text)
{
	if (text)
		add_label(writer, sample, key)->str = pprof_target_text(writer->pprof, text);
}

static void add_number_label(struct writer *writer, Pprof__Sample *sample, const char *key, int number)
{
	add_label(writer, sample, key)->num = number;
}

static void add_request(struct writer *writer, Pprof__Sample *sample, const struct table_request *request)
{
	if (!request->route)
		return;
	add_text_label(writer, sample, "route", request->route);
	add_text_label(writer, sample, "method", request->method);
	add_text_label(writer, sample, "host", request->host);
	if (request->status)
		add_number_label(writer, sample, "status", (int)request->status);
	if (request->is_subrequest)
		add_number_label(writer, sample, "subrequest", 1);
}

static void add_labels_of_many_values(struct writer *writer, Pprof__Sample *sample,
				      const struct table_kind *kind)
{
	const struct table_thread *thread = &writer->table->threads[kind->thread];

	add_number_label(writer, sample, "pid", (int)thread->pid);
	add_number_label(writer, sample, "tid", (int)thread->tid);
	add_text_label(writer, sample, "thread", thread->thread_name);
	add_text_label(writer, sample, "gc_phase", gc_phase_name((enum gc_phase)kind->gc_phase));
	add_request(writer, sample, &writer->table->requests[kind->request]);
}

static void write_sum(struct writer *writer, const struct table_sum *sum)
{
	const struct table_kind *kind = &sum->kind;
	const struct table_thread *thread = &writer->table->threads[kind->thread];
	Pprof__Label labels[LABELS_MAX], *label_pointers[LABELS_MAX];
	Pprof__Sample message = PPROF__SAMPLE__INIT;
	const struct amounts *amounts = &sum->amounts;
	int64_t of_time[] = { (int64_t)sum->count, (int64_t)amounts->cpu_ns, (int64_t)amounts->wall_ns };
	int64_t of_allocations[] = { (int64_t)amounts->alloc_objects, (int64_t)amounts->alloc_bytes };

	for (int i = 0; i < LABELS_MAX; i++)
		label_pointers[i] = &labels[i];
	message.value = writer->is_alloc ? of_allocations : of_time;
	message.n_value = writer->wall ? 3 : 2;
	message.location_id = writer->locations;
	for (uint32_t stack = kind->stack; stack; stack = writer->table->stacks[stack].parent)
		writer->locations[message.n_location_id++] = (uint64_t)writer->table->stacks[stack].frame + 1;
	message.label = label_pointers;
	add_text_label(writer, &message, "process", thread->process_name);
	add_text_label(writer, &message, "state", thread_state_name((enum thread_state)kind->thread_state));
	add_text_label(writer, &message, "vm_state", vm_state_name((enum vm_state)kind->vm_state));
	add_text_label(writer, &message, "phase", kind->phase);
	if (!writer->few_labels)
		add_labels_of_many_values(writer, &message, kind);
	pprof_write_sample(writer->pprof, &message);
}

/*---- About the profile ----*/

/* Which of the values the view shows. */
static int shown_value(enum weight_kind weight)
{
	return weight == WEIGHT_ALLOC_OBJECTS ? 0 : weights[weight].is_elapsed ? 2 : 1;
}

/* The types of values that write_sum() writes, and which of them the view shows. */
static void write_about(struct writer *writer, const struct figures *figures)
{
	const struct session *session = writer->session;
	Pprof__ValueType of_time[] = {
		pprof_value_type(writer->pprof, "samples", "count"),
		pprof_value_type(writer->pprof, "cpu", "nanoseconds"),
		pprof_value_type(writer->pprof, "wall", "nanoseconds"),
	};
	/* As Go names them, with their period. */
	Pprof__ValueType of_allocations[] = {
		pprof_value_type(writer->pprof, "alloc_objects", "count"),
		pprof_value_type(writer->pprof, "alloc_space", "bytes"),
		pprof_value_type(writer->pprof, "space", "bytes"),
	};
	Pprof__ValueType *types = writer->is_alloc ? of_allocations : of_time;
	Pprof__ValueType *pointers[] = { &types[0], &types[1], writer->wall ? &types[2] : NULL };
	Pprof__Profile piece = PPROF__PROFILE__INIT;

	piece.n_sample_type = writer->wall ? 3 : 2;
	piece.sample_type = pointers;
	piece.default_sample_type = types[shown_value(writer->table->weight)].type;
	piece.period_type = &types[writer->is_alloc || weights[session->clock].is_elapsed ? 2 : 1];
	if (figures->rate_asked_hz > 0 && !writer->is_alloc)
		piece.period = (int64_t)(1e9 / figures->rate_asked_hz);
	piece.time_nanos = (int64_t)session->start_unix_ns;
	piece.duration_nanos = (int64_t)session->duration_ns;
	pprof_write_piece(writer->pprof, &piece);
}

static void write_comment(struct writer *writer, const char *text)
{
	pprof_write_comment(writer->pprof, pprof_target_text(writer->pprof, text));
}

/* Write each line of figures_print() as a comment. */
static void write_figures(struct writer *writer, const struct figures *figures)
{
	char *text = NULL, *line, *rest;
	size_t size;
	FILE *memory = open_memstream(&text, &size);

	if (!memory) {
		pprof_writer_fail(writer->pprof, -ENOMEM);
		return;
	}
	figures_print(memory, figures);
	if (fclose(memory) != 0 || !text)
		pprof_writer_fail(writer->pprof, -ENOMEM);
	else
		for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
			write_comment(writer, line);
	free(text);
}

static void write_table(struct writer *writer, const struct figures *figures)
{
	const struct sample_table *table = writer->table;
	char title[SESSION_TITLE_SIZE];

	write_about(writer, figures);
	pprof_write_mapping(writer->pprof, writer->session->target);
	write_functions(writer);
	write_locations(writer);
	for (size_t i = 0; i < table->sum_count; i++)
		write_sum(writer, &table->sums[i]);
	session_title(writer->session, title);
	write_comment(writer, title);
	if (writer->session->cause)
		write_comment(writer, writer->session->cause);
	if (writer->session->command_line)
		write_comment(writer, writer->session->command_line);
	write_figures(writer, figures);
}

int pprof_write(FILE *out, struct sample_source *source, const struct session *session,
		const struct figures *figures, const struct view *view)
{
	struct writer writer = { .session = session, .few_labels = view->few_labels };
	struct sample_table *table;
	int error = sample_table_read(source, view->weight, &table);

	if (error)
		return error;
	writer.table = table;
	writer.is_alloc = weights[view->weight].clock == WEIGHT_ALLOC_BYTES;
	writer.wall = weights[session->clock].is_elapsed || weights[view->weight].is_elapsed;
	writer.locations = calloc((size_t)table->depth + 1, sizeof(*writer.locations));
	writer.pprof = pprof_writer_new(out);
	if (writer.pprof && !writer.locations)
		pprof_writer_fail(writer.pprof, -ENOMEM);
	else if (writer.pprof)
		write_table(&writer, figures);
	error = writer.pprof ? pprof_writer_end(writer.pprof) : -ENOMEM;
	free(writer.locations);
	sample_table_free(table);
	return error;
}
