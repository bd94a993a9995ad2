/* SPDX-License-Identifier: MIT */
#include "output/formats/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "memory/hash.h"
#include "output/labels/frame_text.h"
#include "output/labels/json_stream.h"
#include "output/labels/json_values.h"
#include "output/labels/names.h"
#include "output/views/sample_table.h"

enum { VERSION = 1 };

/* The JSON of a text that many samples share, found by the text's address. */
struct text {
	const char *text;
	UT_hash_handle hh;
	char json[];
};

struct writer {
	struct json_stream json;
	struct sample_table *table;
	uint32_t *path;          /* room for the deepest stack */
	uint32_t *stack_numbers; /* in the document, from 1; 0 for a stack without samples */
	struct text *texts;
	uint64_t origin_ns; /* time 0 of the document */
	size_t written;     /* samples written so far */
};

static void begin_list(struct writer *writer, const char *name)
{
	json_stream_outline(&writer->json, ",\n\"%s\":[", name);
}

static void begin_element(struct writer *writer, size_t number)
{
	json_stream_mark(&writer->json, number ? ",\n" : "\n");
}

static void end_list(struct writer *writer)
{
	json_stream_outline(&writer->json, "\n]");
}

static void write_session(struct writer *writer, const struct session *session)
{
	json_stream_value(&writer->json,
			  json_pack("{s:o, s:o, s:o, s:o, s:I, s:I, s:s}", "pid",
				    session->pid ? json_integer(session->pid) : json_null(), "target",
				    json_value_text(session->target), "command_line",
				    json_value_text(session->command_line), "cause",
				    json_value_text(session->cause), "start_unix_ns",
				    (json_int_t)session->start_unix_ns, "duration_ns",
				    (json_int_t)session->duration_ns, "clock", weights[session->clock].name));
}

static void write_functions(struct writer *writer)
{
	begin_list(writer, "functions");
	for (uint32_t i = 0; i < writer->table->function_count; i++) {
		const struct function *function = writer->table->functions[i];
		char name[FRAME_TEXT_SIZE], file[FRAME_TEXT_SIZE];
		const char *path = frame_text_file(function, file);
		json_t *value = json_pack("{s:s, s:s}", "name", frame_text(function, 0, false, name), "kind",
					  frame_kind_name(function->kind));

		if (path)
			value = json_value_set(value, "file", json_string(path));
		if (function->firstline)
			value = json_value_set(value, "firstline", json_integer(function->firstline));
		if (function->module)
			value = json_value_set(value, "module", json_value_text(function->module));
		begin_element(writer, i);
		json_stream_value(&writer->json, value);
	}
	end_list(writer);
}

static void write_frames(struct writer *writer)
{
	begin_list(writer, "frames");
	for (uint32_t i = 0; i < writer->table->frame_count; i++) {
		const struct table_frame *frame = &writer->table->frames[i];

		begin_element(writer, i);
		json_stream_value(&writer->json,
				  json_pack("{s:I, s:o, s:b}", "function", (json_int_t)frame->function,
					    "line", frame->line ? json_integer(frame->line) : json_null(),
					    "compiled", frame->compiled));
	}
	end_list(writer);
}

/* Write only stacks that samples have; the others are parents of those. */
static void write_stacks(struct writer *writer)
{
	uint32_t count = 0;

	for (size_t i = 0; i < writer->table->sum_count; i++)
		writer->stack_numbers[writer->table->sums[i].kind.stack] = 1;
	begin_list(writer, "stacks");
	for (uint32_t i = 0; i < writer->table->stack_count; i++) {
		uint32_t depth = sample_table_frames(writer->table, i, writer->path);

		if (!writer->stack_numbers[i])
			continue;
		begin_element(writer, count);
		writer->stack_numbers[i] = ++count;
		json_stream_outline(&writer->json, "[");
		for (uint32_t j = 0; j < depth; j++) {
			json_stream_mark(&writer->json, j ? "," : "");
			json_stream_number(&writer->json, writer->path[j]);
		}
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
		json_stream_value(&writer->json, json_pack("{s:i, s:i, s:o, s:o}", "pid", (int)thread->pid,
							   "tid", (int)thread->tid, "process",
							   json_value_text(thread->process_name), "thread",
							   json_value_text(thread->thread_name)));
	}
	end_list(writer);
}

/*---- Samples ----*/

/* Add a text with its JSON. NULL when memory is short. */
static const struct text *add_text(struct writer *writer, const char *text)
{
	json_t *value = json_value_text(text);
	size_t length = json_dumpb(value, NULL, 0, JSON_ENCODE_ANY); /* 0 without memory */
	struct text *added = length ? calloc(1, sizeof(*added) + length + 1) : NULL;
	const bool written = added && json_dumpb(value, added->json, length, JSON_ENCODE_ANY) == length;

	json_decref(value);
	if (written) {
		added->text = text;
		HASH_ADD_PTR(writer->texts, text, added);
		if (hash_added(&added->hh))
			return added;
	}
	free(added);
	return NULL;
}

static void write_text(struct writer *writer, const char *text)
{
	const struct text *known;

	HASH_FIND_PTR(writer->texts, &text, known);
	if (!known)
		known = add_text(writer, text);
	if (known)
		json_stream_mark(&writer->json, known->json);
	else
		writer->json.error = -ENOMEM;
}

static void write_number(struct writer *writer, const char *name, uint64_t number)
{
	json_stream_mark(&writer->json, name);
	json_stream_number(&writer->json, number);
}

static void write_name(struct writer *writer, const char *name, const char *value)
{
	json_stream_mark(&writer->json, name);
	json_stream_mark(&writer->json, value);
}

/* Only samples with a request have one. */
static void write_request(struct writer *writer, const struct table_sample *sample)
{
	const struct table_request *request = &writer->table->requests[sample->kind.request];

	if (!request->route)
		return;
	json_stream_mark(&writer->json, ",\"request\":{\"route\":");
	write_text(writer, request->route);
	json_stream_mark(&writer->json, ",\"method\":");
	write_text(writer, request->method);
	json_stream_mark(&writer->json, ",\"host\":");
	write_text(writer, request->host);
	if (request->status)
		write_number(writer, ",\"status\":", request->status);
	json_stream_mark(&writer->json,
			 request->is_subrequest ? ",\"subrequest\":true" : ",\"subrequest\":false");
	write_number(writer, ",\"connection\":", sample->connection);
	write_number(writer, ",\"number\":", sample->number);
	write_number(writer, ",\"age_ns\":", sample->age_ns);
	json_stream_mark(&writer->json, "}");
}

static int write_sample(void *context, const struct table_sample *sample)
{
	struct writer *writer = context;
	const struct table_kind *kind = &sample->kind;

	begin_element(writer, writer->written++);
	write_number(writer, "{\"time_ns\":", sample->time_ns - writer->origin_ns);
	write_number(writer, ",\"thread\":", kind->thread);
	write_number(writer, ",\"stack\":", writer->stack_numbers[kind->stack] - 1);
	write_number(writer, ",\"cpu_ns\":", sample->amounts.cpu_ns);
	write_number(writer, ",\"wall_ns\":", sample->amounts.wall_ns);
	if (sample->amounts.alloc_bytes || sample->amounts.alloc_objects) {
		write_number(writer, ",\"alloc_bytes\":", sample->amounts.alloc_bytes);
		write_number(writer, ",\"alloc_objects\":", sample->amounts.alloc_objects);
	}
	write_name(writer, ",\"state\":\"", thread_state_name((enum thread_state)kind->thread_state));
	write_name(writer, "\",\"vm_state\":\"", vm_state_name((enum vm_state)kind->vm_state));
	if (kind->gc_phase != GC_PHASE_NONE)
		write_name(writer, "\",\"gc_phase\":\"", gc_phase_name((enum gc_phase)kind->gc_phase));
	json_stream_mark(&writer->json, "\"");
	if (sample->heap_bytes)
		write_number(writer, ",\"heap_bytes\":", sample->heap_bytes);
	if (sample->allocated_bytes)
		write_number(writer, ",\"vm_allocated_bytes\":", sample->allocated_bytes);
	if (sample->step_ns)
		write_number(writer, ",\"gc_step_ns\":", sample->step_ns);
	json_stream_mark(&writer->json, ",\"phase\":");
	write_text(writer, kind->phase);
	write_request(writer, sample);
	json_stream_mark(&writer->json, ",\"wait\":");
	write_text(writer, sample->wait ? sample->wait->name : NULL);
	json_stream_mark(&writer->json, "}");
	return writer->json.error;
}

static int write_samples(struct writer *writer)
{
	int error;

	begin_list(writer, "samples");
	error = sample_table_each(writer->table, write_sample, writer);
	end_list(writer);
	return error;
}

static int write_document(struct writer *writer, const struct session *session, const struct figures *figures)
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
	error = write_samples(writer);
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
	writer.origin_ns = sample_table_origin(table, session);
	writer.path = calloc((size_t)table->depth + 1, sizeof(*writer.path));
	writer.stack_numbers = calloc(table->stack_count, sizeof(*writer.stack_numbers));
	error = writer.path && writer.stack_numbers ? write_document(&writer, session, figures) : -ENOMEM;
	HASH_FREE_ALL(writer.texts);
	free(writer.path);
	free(writer.stack_numbers);
	sample_table_free(table);
	return error;
}
