#include "output/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "output/frame_text.h"
#include "output/json_stream.h"
#include "output/names.h"
#include "output/sample_table.h"

enum { VERSION = 1 };

struct writer {
	struct json_stream json;
	const struct sample_table *table;
	uint32_t *path;		/* room for the deepest stack */
	uint32_t *stack_numbers;	/* in the document, from 1; 0 where no sample has the stack */
};

static void begin_list(struct writer *writer, const char *name)
{
	json_stream_outline(&writer->json, ",\n\"%s\":[", name);
}

static void begin_element(struct writer *writer, size_t number)
{
	json_stream_outline(&writer->json, number ? ",\n" : "\n");
}

static void end_list(struct writer *writer)
{
	json_stream_outline(&writer->json, "\n]");
}

static void write_session(struct writer *writer, const struct session *session)
{
	json_stream_value(&writer->json, json_pack(
		"{s:o, s:o, s:o, s:I, s:I, s:s}",
		"pid", session->pid ? json_integer(session->pid) : json_null(),
		"target", json_target_text(session->target),
		"command_line", json_target_text(session->command_line),
		"start_unix_ns", (json_int_t)session->start_unix_ns,
		"duration_ns", (json_int_t)session->duration_ns,
		"clock", profile_weight_name(session->clock)));
}

static void write_functions(struct writer *writer)
{
	begin_list(writer, "functions");
	for (uint32_t i = 0; i < writer->table->function_count; i++) {
		const struct function *function = writer->table->functions[i];
		char name[FRAME_TEXT_SIZE], file[FRAME_TEXT_SIZE];

		begin_element(writer, i);
		json_stream_value(&writer->json, json_pack(
			"{s:s, s:s, s:s*, s:o*, s:o*}",
			"name", frame_text(function, 0, false, name),
			"kind", frame_kind_name(function->kind),
			"file", frame_text_file(function, file),
			"firstline", function->firstline ? json_integer(function->firstline) : NULL,
			"module", function->module ? json_target_text(function->module) : NULL));
	}
	end_list(writer);
}

static void write_frames(struct writer *writer)
{
	begin_list(writer, "frames");
	for (uint32_t i = 0; i < writer->table->frame_count; i++) {
		const struct table_frame *frame = &writer->table->frames[i];

		begin_element(writer, i);
		json_stream_value(&writer->json, json_pack(
			"{s:I, s:o, s:b}", "function", (json_int_t)frame->function,
			"line", frame->line ? json_integer(frame->line) : json_null(),
			"compiled", frame->compiled));
	}
	end_list(writer);
}

/* Those that samples have: the others are on the way to them. */
static void write_stacks(struct writer *writer)
{
	uint32_t count = 0;

	for (size_t i = 0; i < writer->table->sample_count; i++)
		writer->stack_numbers[writer->table->samples[i].stack] = 1;
	begin_list(writer, "stacks");
	for (uint32_t i = 0; i < writer->table->stack_count; i++) {
		uint32_t depth = sample_table_frames(writer->table, i, writer->path);

		if (!writer->stack_numbers[i])
			continue;
		begin_element(writer, count);
		writer->stack_numbers[i] = ++count;
		json_stream_outline(&writer->json, "[");
		for (uint32_t j = 0; j < depth; j++)
			json_stream_outline(&writer->json, "%s%" PRIu32, j ? "," : "", writer->path[j]);
		json_stream_outline(&writer->json, "]");
	}
	end_list(writer);
}

static void write_threads(struct writer *writer)
{
	begin_list(writer, "threads");
	for (uint32_t i = 0; i < writer->table->thread_count; i++) {
		const struct table_thread *thread = &writer->table->threads[i];

		begin_element(writer, i);
		json_stream_value(&writer->json, json_pack(
			"{s:i, s:i, s:o, s:o}", "pid", (int)thread->pid, "tid", (int)thread->tid,
			"process", json_target_text(thread->process_name),
			"thread", json_target_text(thread->thread_name)));
	}
	end_list(writer);
}

/*---- Samples ----*/

struct moment {
	uint64_t time_ns;
	const struct table_sample *sample;
	uint32_t thread;
};

static int compare_moments(const void *a, const void *b)
{
	const struct moment *left = a, *right = b;

	if (left->time_ns != right->time_ns)
		return left->time_ns < right->time_ns ? -1 : 1;
	return left->sample < right->sample ? -1 : left->sample > right->sample;
}

/* All threads' samples in the order of time; NULL without memory. */
static struct moment *sort_by_time(const struct sample_table *table)
{
	struct moment *moments = calloc(table->sample_count + 1, sizeof(*moments));
	size_t count = 0;

	if (!moments)
		return NULL;
	for (uint32_t i = 0; i < table->thread_count; i++) {
		const struct table_thread *thread = &table->threads[i];

		for (size_t j = 0; j < thread->count; j++, count++) {
			moments[count].sample = &table->samples[thread->first + j];
			moments[count].time_ns = moments[count].sample->time_ns;
			moments[count].thread = i;
		}
	}
	qsort(moments, count, sizeof(*moments), compare_moments);
	return moments;
}

static int write_samples(struct writer *writer, uint64_t origin_ns)
{
	const struct sample_table *table = writer->table;
	struct moment *moments = sort_by_time(table);

	if (!moments)
		return -ENOMEM;
	begin_list(writer, "samples");
	for (size_t i = 0; i < table->sample_count; i++) {
		const struct table_sample *sample = moments[i].sample;

		begin_element(writer, i);
		json_stream_outline(&writer->json, "{\"time_ns\":%" PRIu64 ",\"thread\":%" PRIu32 ",\"stack\":%" PRIu32
				    ",\"cpu_ns\":%" PRIu64 ",\"wall_ns\":%" PRIu64
				    ",\"state\":\"%s\",\"vm_state\":\"%s\",\"phase\":",
				    sample->time_ns - origin_ns, moments[i].thread,
				    writer->stack_numbers[sample->stack] - 1,
				    sample->cpu_ns, sample->wall_ns,
				    thread_state_name((enum thread_state)sample->thread_state),
				    vm_state_name((enum vm_state)sample->vm_state));
		json_stream_text(&writer->json, sample->phase);
		json_stream_outline(&writer->json, ",\"wait\":");
		json_stream_text(&writer->json, sample->wait ? sample->wait->name : NULL);
		json_stream_outline(&writer->json, "}");
	}
	end_list(writer);
	free(moments);
	return 0;
}

static int write_document(struct writer *writer, const struct session *session,
			  const struct figures *figures)
{
	int error;

	json_stream_outline(&writer->json, "{\"format\":\"ljspy\",\"version\":%d,\n\"session\":", VERSION);
	write_session(writer, session);
	json_stream_outline(&writer->json, ",\n\"figures\":");
	json_stream_value(&writer->json, figures_json(figures));
	write_functions(writer);
	write_frames(writer);
	write_stacks(writer);
	write_threads(writer);
	error = write_samples(writer, sample_table_origin(writer->table, session));
	if (error)
		return error;
	json_stream_outline(&writer->json, "}\n");
	return json_stream_end(&writer->json);
}

int json_write(FILE *out, struct sample_source *source, const struct session *session,
	       const struct figures *figures, const struct view *view)
{
	struct writer writer = { .json = { .out = out } };
	struct sample_table *table;
	int error = sample_table_read(source, view->weight, &table);

	if (error)
		return error;
	writer.table = table;
	writer.path = calloc((size_t)table->depth + 1, sizeof(*writer.path));
	writer.stack_numbers = calloc(table->stack_count, sizeof(*writer.stack_numbers));
	error = writer.path && writer.stack_numbers ? write_document(&writer, session, figures) : -ENOMEM;
	free(writer.path);
	free(writer.stack_numbers);
	sample_table_free(table);
	return error;
}
