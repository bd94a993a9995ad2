/* SPDX-License-Identifier: MIT */
#include "output/formats/firefox.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "output/labels/escape.h"
#include "output/labels/frame_text.h"
#include "output/labels/json_stream.h"
#include "output/labels/json_values.h"
#include "output/labels/string_index.h"
#include "output/sample/sample.h"
#include "output/views/sample_table.h"
#include "output/views/thread_samples.h"

enum {
	PROCESSED_VERSION = 61,
	GECKO_VERSION = 24, /* of the profile that a processed one is made from; nothing depends on it */
	RESOURCE_LIBRARY = 1,
};

/*
 * The profiler uses the first grey category for frames without one. The first subcategory of each is "Other".
 */
static const struct {
	const char *name;
	const char *color;
	const char *subcategories;
} categories[FRAME_KIND_COUNT + 1] = {
	[FRAME_LUA] = { "Lua", "yellow", "[\"Other\",\"Interpreted\",\"Compiled\"]" },
	[FRAME_BUILTIN] = { "Lua builtin", "green", "[\"Other\"]" },
	[FRAME_C_FUNCTION] = { "C function", "blue", "[\"Other\"]" },
	[FRAME_NATIVE] = { "Native", "lightblue", "[\"Other\"]" },
	[FRAME_VM] = { "LuaJIT", "orange", "[\"Other\"]" },
	[FRAME_TRACE] = { "Trace", "magenta", "[\"Other\"]" },
	[FRAME_LOST] = { "Lost", "red", "[\"Other\"]" },
	[FRAME_VM_WORK] = { "LuaJIT", "orange", "[\"Other\",\"Garbage collection\",\"Trace recording\"]" },
	[FRAME_ALLOCATED] = { "Allocated", "purple", "[\"Other\"]" },
	[FRAME_KIND_COUNT] = { "Other", "grey", "[\"Other\"]" },
};

static const char collecting[] = "garbage collection";
static const char recording[] = "recording a trace";
static const char blocked[] = "blocked";

enum { SUBCATEGORY_OTHER, SUBCATEGORY_INTERPRETED, SUBCATEGORY_COMPILED };

enum { SUBCATEGORY_COLLECTING = 1, SUBCATEGORY_RECORDING }; /* of FRAME_VM_WORK */

struct writer {
	struct json_stream json;
	const struct sample_table *table;
	struct thread_samples *samples;
	uint64_t origin_ns; /* time 0 of the profile */
	struct string_index *strings;
	struct string_index *files;   /* the sources */
	struct string_index *modules; /* the resources and libraries */
	const struct work_run *runs;  /* those of the thread being written */
};

static uint32_t number_of(struct writer *writer, struct string_index *index, const char *text)
{
	int64_t number = string_index_add(index, text);

	if (number < 0) {
		writer->json.error = (int)number;
		return 0;
	}
	return (uint32_t)number;
}

static const struct function *function_of(const struct writer *writer, uint32_t frame)
{
	return writer->table->functions[writer->table->frames[frame].function];
}

/*---- Tables are objects of columns ----*/

typedef void (*write_value)(struct writer *writer, size_t row);

static void write_column(struct writer *writer, const char *name, size_t length, write_value write)
{
	json_stream_outline(&writer->json, "\"%s\":[", name);
	for (size_t i = 0; i < length; i++) {
		if (i)
			json_stream_mark(&writer->json, ",");
		write(writer, i);
	}
	json_stream_outline(&writer->json, "],\n");
}

static void begin_table(struct writer *writer, const char *name)
{
	json_stream_outline(&writer->json, "\"%s\":{\n", name);
}

static void end_table(struct writer *writer, size_t length, const char *separator)
{
	json_stream_outline(&writer->json, "\"length\":%zu}%s\n", length, separator);
}

static void write_number(struct writer *writer, uint32_t number)
{
	json_stream_number(&writer->json, number);
}

/* Lines begin at 1; 0 is unknown: null. */
static void write_line(struct writer *writer, uint32_t line)
{
	if (line)
		write_number(writer, line);
	else
		json_stream_outline(&writer->json, "null");
}

static void write_ms(struct writer *writer, uint64_t ns)
{
	char decimals[] = ".000000";

	json_stream_number(&writer->json, ns / 1000000);
	ns %= 1000000;
	for (size_t at = sizeof(decimals) - 2; ns; at--, ns /= 10)
		decimals[at] = (char)('0' + ns % 10);
	json_stream_mark(&writer->json, decimals);
}

static void write_null(struct writer *writer, size_t row)
{
	(void)row;
	json_stream_mark(&writer->json, "null");
}

static void write_zero(struct writer *writer, size_t row)
{
	(void)row;
	write_number(writer, 0);
}

static void write_one(struct writer *writer, size_t row)
{
	(void)row;
	write_number(writer, 1);
}

static void write_none(struct writer *writer, size_t row)
{
	(void)row;
	json_stream_outline(&writer->json, "-1");
}

static void write_false(struct writer *writer, size_t row)
{
	(void)row;
	json_stream_outline(&writer->json, "false");
}

/*---- Stacks and frames ----*/

/* The empty stack has no row. */
static void write_stack_frame(struct writer *writer, size_t row)
{
	write_number(writer, writer->table->stacks[row + 1].frame);
}

static void write_stack_prefix(struct writer *writer, size_t row)
{
	uint32_t parent = writer->table->stacks[row + 1].parent;

	if (parent)
		write_number(writer, parent - 1);
	else
		write_null(writer, row);
}

static void write_frame_category(struct writer *writer, size_t row)
{
	write_number(writer, function_of(writer, (uint32_t)row)->kind);
}

static void write_frame_subcategory(struct writer *writer, size_t row)
{
	const struct function *function = function_of(writer, (uint32_t)row);
	bool is_work = function->kind == FRAME_VM_WORK && function->name;

	if (is_work && strcmp(function->name, collecting) == 0)
		write_number(writer, SUBCATEGORY_COLLECTING);
	else if (is_work && strcmp(function->name, recording) == 0)
		write_number(writer, SUBCATEGORY_RECORDING);
	else if (function->kind != FRAME_LUA)
		write_number(writer, SUBCATEGORY_OTHER);
	else
		write_number(writer, writer->table->frames[row].compiled ? SUBCATEGORY_COMPILED
									 : SUBCATEGORY_INTERPRETED);
}

static void write_frame_function(struct writer *writer, size_t row)
{
	write_number(writer, writer->table->frames[row].function);
}

static void write_frame_line(struct writer *writer, size_t row)
{
	write_line(writer, writer->table->frames[row].line);
}

static void write_stacks(struct writer *writer)
{
	size_t stacks = writer->table->stack_count - 1, frames = writer->table->frame_count;

	begin_table(writer, "stackTable");
	write_column(writer, "frame", stacks, write_stack_frame);
	write_column(writer, "prefix", stacks, write_stack_prefix);
	end_table(writer, stacks, ",");
	begin_table(writer, "frameTable");
	write_column(writer, "address", frames, write_none);
	write_column(writer, "inlineDepth", frames, write_zero);
	write_column(writer, "category", frames, write_frame_category);
	write_column(writer, "subcategory", frames, write_frame_subcategory);
	write_column(writer, "func", frames, write_frame_function);
	write_column(writer, "nativeSymbol", frames, write_null);
	write_column(writer, "innerWindowID", frames, write_null);
	write_column(writer, "line", frames, write_frame_line);
	write_column(writer, "column", frames, write_null);
	end_table(writer, frames, ",");
}

/*---- Functions ----*/

static void write_function_name(struct writer *writer, size_t row)
{
	char name[FRAME_TEXT_SIZE];

	frame_text(writer->table->functions[row], 0, false, name);
	write_number(writer, number_of(writer, writer->strings, name));
}

static void write_function_is_lua(struct writer *writer, size_t row)
{
	enum frame_kind kind = writer->table->functions[row]->kind;

	json_stream_outline(&writer->json, kind == FRAME_LUA || kind == FRAME_BUILTIN ? "true" : "false");
}

static void write_function_resource(struct writer *writer, size_t row)
{
	const char *module = writer->table->functions[row]->module;
	char text[FRAME_TEXT_SIZE];

	if (!module) {
		write_none(writer, row);
		return;
	}
	escape_text(ESCAPE_PLAIN, module, text, sizeof(text));
	write_number(writer, number_of(writer, writer->modules, text));
}

static void write_function_source(struct writer *writer, size_t row)
{
	char file[FRAME_TEXT_SIZE];

	if (frame_text_file(writer->table->functions[row], file))
		write_number(writer, number_of(writer, writer->files, file));
	else
		write_null(writer, row);
}

static void write_function_line(struct writer *writer, size_t row)
{
	write_line(writer, writer->table->functions[row]->firstline);
}

static void write_functions(struct writer *writer)
{
	size_t functions = writer->table->function_count;

	begin_table(writer, "funcTable");
	write_column(writer, "name", functions, write_function_name);
	write_column(writer, "isJS", functions, write_function_is_lua);
	write_column(writer, "relevantForJS", functions, write_false);
	write_column(writer, "resource", functions, write_function_resource);
	write_column(writer, "source", functions, write_function_source);
	write_column(writer, "lineNumber", functions, write_function_line);
	write_column(writer, "columnNumber", functions, write_null);
	end_table(writer, functions, ",");
}

/* Write all texts of an index. Call this after everything that adds to it. Returns their number. */
static size_t write_texts(struct writer *writer, struct string_index *index)
{
	size_t count = 0;

	for (const char *text = NULL; (text = string_index_next(index, text)); count++) {
		json_stream_outline(&writer->json, count ? ",\n" : "\n");
		json_stream_text(&writer->json, text);
	}
	return count;
}

/* Write the texts of an index as a column of string numbers. Returns their number. */
static size_t write_text_numbers(struct writer *writer, const char *column, struct string_index *index)
{
	size_t count = 0;

	json_stream_outline(&writer->json, "\"%s\":[", column);
	for (const char *text = NULL; (text = string_index_next(index, text)); count++)
		json_stream_outline(&writer->json, "%s%" PRIu32, count ? "," : "",
				    number_of(writer, writer->strings, text));
	json_stream_outline(&writer->json, "],\n");
	return count;
}

static void write_row_number(struct writer *writer, size_t row)
{
	write_number(writer, (uint32_t)row);
}

static void write_modules_and_files(struct writer *writer)
{
	size_t count;

	begin_table(writer, "resourceTable");
	count = write_text_numbers(writer, "name", writer->modules);
	write_column(writer, "lib", count, write_row_number);
	write_column(writer, "host", count, write_null);
	write_column(writer, "type", count, write_one);
	end_table(writer, count, ",");
	begin_table(writer, "sources");
	count = write_text_numbers(writer, "filename", writer->files);
	write_column(writer, "id", count, write_null);
	write_column(writer, "startLine", count, write_one);
	write_column(writer, "startColumn", count, write_one);
	write_column(writer, "sourceMapURL", count, write_null);
	end_table(writer, count, ",");
	begin_table(writer, "nativeSymbols");
	write_column(writer, "libIndex", 0, write_null);
	write_column(writer, "address", 0, write_null);
	write_column(writer, "name", 0, write_null);
	write_column(writer, "functionSize", 0, write_null);
	end_table(writer, 0, ",");
}

static void write_shared(struct writer *writer)
{
	begin_table(writer, "shared");
	write_stacks(writer);
	write_functions(writer);
	write_modules_and_files(writer);
	/* The names of markers, which come later. */
	number_of(writer, writer->strings, collecting);
	number_of(writer, writer->strings, recording);
	number_of(writer, writer->strings, blocked);
	json_stream_outline(&writer->json, "\"stringArray\":[");
	write_texts(writer, writer->strings);
	json_stream_outline(&writer->json, "\n]},\n\"libs\":[");
	for (const char *module = NULL; (module = string_index_next(writer->modules, module));) {
		json_t *name = json_value_text(module);

		if (module != string_index_next(writer->modules, NULL))
			json_stream_outline(&writer->json, ",");
		json_stream_value(&writer->json, json_pack("{s:s, s:O, s:O, s:O, s:o, s:s, s:n}", "arch", "",
							   "name", name, "path", name, "debugName", name,
							   "debugPath", name, "breakpadId", "", "codeId"));
	}
	json_stream_outline(&writer->json, "],\n");
}

/*---- Threads ----*/

typedef void (*write_sample)(struct writer *writer, const struct table_sample *sample);

/* The state of writing a column of a thread's samples. */
struct column {
	struct writer *writer;
	write_sample write;
	bool begun;
};

static int write_row(void *context, const struct table_sample *sample)
{
	struct column *column = context;

	if (column->begun)
		json_stream_mark(&column->writer->json, ",");
	column->begun = true;
	column->write(column->writer, sample);
	return 0;
}

static int write_sample_column(struct writer *writer, const char *name, uint32_t thread, write_sample write)
{
	struct column column = { .writer = writer, .write = write };
	int error = 0;

	json_stream_outline(&writer->json, "\"%s\":[", name);
	if (thread < writer->table->thread_count)
		error = thread_samples_each(writer->samples, thread, write_row, &column);
	json_stream_outline(&writer->json, "],\n");
	return error;
}

static void write_sample_stack(struct writer *writer, const struct table_sample *sample)
{
	if (sample->kind.stack)
		write_number(writer, sample->kind.stack - 1);
	else
		write_null(writer, 0);
}

static void write_sample_time(struct writer *writer, const struct table_sample *sample)
{
	write_ms(writer, sample->time_ns - writer->origin_ns);
}

static void write_sample_weight(struct writer *writer, const struct table_sample *sample)
{
	const uint64_t weight = sample_table_weight(writer->table, &sample->amounts);

	if (weight_is_time(writer->table->weight))
		write_ms(writer, weight);
	else
		json_stream_number(&writer->json, weight);
}

static void write_sample_cpu(struct writer *writer, const struct table_sample *sample)
{
	json_stream_number(&writer->json, sample->amounts.cpu_ns);
}

/* The profiler's word for the unit; it has none for objects, but counts samples. */
static const char *weight_type(enum weight_kind kind)
{
	if (weight_is_time(kind))
		return "tracing-ms";
	return kind == WEIGHT_ALLOC_BYTES ? "bytes" : "samples";
}

static int write_samples(struct writer *writer, uint32_t thread, size_t count)
{
	static const struct {
		const char *name;
		write_sample write;
	} columns[] = {
		{ "stack", write_sample_stack },
		{ "time", write_sample_time },
		{ "weight", write_sample_weight },
		{ "threadCPUDelta", write_sample_cpu },
	};
	int error = 0;

	begin_table(writer, "samples");
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]) && !error; i++)
		error = write_sample_column(writer, columns[i].name, thread, columns[i].write);
	json_stream_outline(&writer->json, "\"weightType\":\"%s\",", weight_type(writer->table->weight));
	end_table(writer, count, ",");
	return error;
}

/*---- Markers ----*/

/* Consecutive samples of a thread during which it did the same work, or was blocked. */
struct work_run {
	uint64_t begin_ns, end_ns;
	const char *work; /* a static text */
};

struct work_runs {
	struct work_run *runs;
	size_t count, size;
	const char *now; /* the work at the last sample; NULL if none */
};

enum {
	WORK_RUNS_MAX = 1 << 17,
	MARKER_INTERVAL = 1,
	GAP_MAX =
		4, /* times a sample's weight: a thread that works on may wait for a CPU; else it has slept */
};

/* What a marker says of a sample's time; NULL: there is none. */
static const char *work_of(const struct table_kind *kind)
{
	/* It sleeps, but not where its event loop waits for work. */
	if (kind->thread_state == THREAD_BLOCKED || kind->thread_state == THREAD_UNINTERRUPTIBLE)
		return blocked;
	switch ((enum vm_state)kind->vm_state) {
	case VM_STATE_GC: return collecting;
	case VM_STATE_RECORDING:
	case VM_STATE_OPTIMISING:
	case VM_STATE_ASSEMBLING: return recording;
	case VM_STATE_NONE:
	case VM_STATE_INTERPRETED:
	case VM_STATE_COMPILED:
	case VM_STATE_C:
	case VM_STATE_EXIT:
	case VM_STATE_UNKNOWN:
	case VM_STATE_COUNT: break;
	}
	return NULL;
}

/* A sample stands for the time before it: CPU time, or elapsed time if it sleeps. */
static int note_work(void *context, const struct table_sample *sample)
{
	const char *work = work_of(&sample->kind);
	uint64_t length_ns = work == blocked ? sample->amounts.wall_ns : sample->amounts.cpu_ns;
	struct work_runs *runs = context;
	struct work_run *moved;

	if (work && work == runs->now &&
	    sample->time_ns <= runs->runs[runs->count - 1].end_ns + (1 + GAP_MAX) * length_ns) {
		runs->runs[runs->count - 1].end_ns = sample->time_ns;
		return 0;
	}
	runs->now = work && runs->count < WORK_RUNS_MAX ? work : NULL;
	if (!runs->now)
		return 0;
	moved = array_grow(runs->runs, &runs->size, runs->count + 1, sizeof(*moved));
	if (!moved)
		return -ENOMEM;
	runs->runs = moved;
	moved[runs->count++] = (struct work_run){
		.begin_ns = sample->time_ns > length_ns ? sample->time_ns - length_ns : 0,
		.end_ns = sample->time_ns,
		.work = work,
	};
	return 0;
}

static void write_run_name(struct writer *writer, size_t row)
{
	write_number(writer, number_of(writer, writer->strings, writer->runs[row].work));
}

static void write_run_begin(struct writer *writer, size_t row)
{
	uint64_t begin_ns = writer->runs[row].begin_ns;

	write_ms(writer, begin_ns > writer->origin_ns ? begin_ns - writer->origin_ns : 0);
}

static void write_run_end(struct writer *writer, size_t row)
{
	write_ms(writer, writer->runs[row].end_ns - writer->origin_ns);
}

static void write_run_phase(struct writer *writer, size_t row)
{
	(void)row;
	write_number(writer, MARKER_INTERVAL);
}

static void write_run_category(struct writer *writer, size_t row)
{
	write_number(writer, writer->runs[row].work == blocked ? FRAME_NATIVE : FRAME_VM);
}

static int write_markers(struct writer *writer, uint32_t thread)
{
	struct work_runs runs = { 0 };
	int error = 0;

	if (thread < writer->table->thread_count)
		error = thread_samples_each(writer->samples, thread, note_work, &runs);
	writer->runs = runs.runs;
	begin_table(writer, "markers");
	write_column(writer, "data", runs.count, write_null);
	write_column(writer, "name", runs.count, write_run_name);
	write_column(writer, "startTime", runs.count, write_run_begin);
	write_column(writer, "endTime", runs.count, write_run_end);
	write_column(writer, "phase", runs.count, write_run_phase);
	write_column(writer, "category", runs.count, write_run_category);
	end_table(writer, runs.count, "}");
	free(runs.runs);
	return error;
}

/*---- A thread ----*/

/* Write the thread of this index; after the last one, an empty thread. */
static int write_thread(struct writer *writer, uint32_t index)
{
	static const struct table_thread no_thread;
	const struct table_thread *thread = index < writer->table->thread_count
						    ? &writer->table->threads[index]
						    : &no_thread;
	struct json_stream *json = &writer->json;
	int error;

	json_stream_outline(json, "{\"name\":");
	json_stream_text(json, thread->thread_name ? thread->thread_name : "?");
	json_stream_outline(json, ",\"processName\":");
	json_stream_text(json, thread->process_name ? thread->process_name : "?");
	json_stream_outline(
		json,
		",\"pid\":\"%d\",\"tid\":%d,\"isMainThread\":%s,\n"
		"\"processType\":\"default\",\"processStartupTime\":0,\"processShutdownTime\":null,"
		"\"registerTime\":0,\"unregisterTime\":null,\"pausedRanges\":[],\n",
		(int)thread->pid, (int)thread->tid, thread->pid == thread->tid ? "true" : "false");
	error = write_samples(writer, index, thread->sample_count);
	return error ? error : write_markers(writer, index);
}

/*---- About the profile ----*/

/* An array with an entry for each line of figures_print(). The caller owns it. NULL when memory is short. */
static json_t *figures_entries(const struct figures *figures)
{
	char *text = NULL, *line, *rest;
	size_t size;
	FILE *memory = open_memstream(&text, &size);
	json_t *entries = NULL;

	if (!memory)
		return NULL;
	figures_print(memory, figures);
	if (fclose(memory) == 0 && text)
		entries = json_array();
	for (line = entries ? strtok_r(text, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest)) {
		size_t name = strcspn(line, " ");

		entries = json_value_append(entries, json_pack("{s:s%, s:s, s:s}", "label", line, name,
							       "format", "string", "value",
							       line + name + strspn(line + name, " ")));
	}
	free(text);
	return entries;
}

static void write_categories(struct writer *writer)
{
	json_stream_outline(&writer->json, ",\"categories\":[");
	for (int i = 0; i <= FRAME_KIND_COUNT; i++)
		json_stream_outline(&writer->json,
				    "%s{\"name\":\"%s\",\"color\":\"%s\",\"subcategories\":%s}", i ? "," : "",
				    categories[i].name, categories[i].color, categories[i].subcategories);
	json_stream_outline(&writer->json, "],\n");
}

static void write_meta(struct writer *writer, const struct session *session, const struct figures *figures)
{
	struct json_stream *json = &writer->json;
	double interval_ms = figures->rate_asked_hz > 0 ? 1e3 / figures->rate_asked_hz : 1;

	json_stream_outline(
		json, "{\"meta\":{\"version\":%d,\"preprocessedProfileVersion\":%d,\"interval\":%.6f,\n",
		GECKO_VERSION, PROCESSED_VERSION, interval_ms);
	json_stream_outline(json, "\"startTime\":");
	write_ms(writer, session->start_unix_ns);
	json_stream_outline(
		json, ",\"processType\":0,\"stackwalk\":1,\"symbolicated\":true,"
		      "\"importedFrom\":\"ljspy\",\"sourceCodeIsNotOnSearchfox\":true,\"markerSchema\":[],\n"
		      "\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\",\"threadCPUDelta\":\"ns\"},\n"
		      "\"product\":");
	json_stream_text(json, session->target ? session->target : "ljspy");
	if (session->command_line) {
		json_stream_outline(json, ",\"arguments\":");
		json_stream_text(json, session->command_line);
	}
	write_categories(writer);
	json_stream_outline(json, "\"extra\":[{\"label\":\"Recorded by ljspy\",\"entries\":");
	json_stream_value(json, figures_entries(figures));
	json_stream_outline(json, "}]},\n");
}

static int write_document(struct writer *writer, const struct session *session, const struct figures *figures)
{
	uint32_t i = 0;
	int error;

	write_meta(writer, session, figures);
	write_shared(writer);
	json_stream_outline(&writer->json, "\"threads\":[");
	/* The profiler refuses a profile without threads. */
	do {
		if (i)
			json_stream_outline(&writer->json, ",\n");
		error = write_thread(writer, i);
	} while (++i < writer->table->thread_count && !error);
	if (error)
		return error;
	json_stream_outline(&writer->json, "]}\n");
	return json_stream_end(&writer->json);
}

int firefox_write(FILE *out, struct sample_source *source, const struct session *session,
		  const struct figures *figures, const struct view *view)
{
	struct writer writer = { .json = { .out = out } };
	struct sample_table *table;
	int error = sample_table_read(source, view->weight, &table);

	if (error)
		return error;
	writer.table = table;
	writer.origin_ns = sample_table_origin(table, session);
	writer.strings = string_index_new();
	writer.files = string_index_new();
	writer.modules = string_index_new();
	writer.samples = thread_samples_new(table);
	error = writer.strings && writer.files && writer.modules && writer.samples
			? write_document(&writer, session, figures)
			: -ENOMEM;
	thread_samples_free(writer.samples);
	string_index_free(writer.strings);
	string_index_free(writer.files);
	string_index_free(writer.modules);
	sample_table_free(table);
	return error;
}
