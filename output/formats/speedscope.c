/* SPDX-License-Identifier: MIT */
#include "output/formats/speedscope.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "output/labels/frame_text.h"
#include "output/labels/json_stream.h"
#include "output/labels/json_values.h"
#include "output/views/sample_table.h"
#include "output/views/thread_samples.h"

enum {
	NAME_SIZE = 256,
	/*
	 * Samples that are placed together. One look has two of a thread, but some of as many requests as
	 * there are.
	 */
	GROUP_MAX = 64,
};

struct writer {
	struct json_stream json;
	const struct sample_table *table;
	struct thread_samples *samples;
	bool by_line;
	uint32_t *path;    /* room for the deepest stack */
	uint64_t begin_ns; /* where all threads begin, on the clock of samples */
};

/* The index of a frame in the file: in the line view that of the table's frame, otherwise of its function. */
static uint32_t frame_index(const struct writer *writer, uint32_t frame)
{
	return writer->by_line ? frame : writer->table->frames[frame].function;
}

static void write_frame(struct writer *writer, uint32_t function_index, uint32_t line)
{
	const struct function *function = writer->table->functions[function_index];
	char name[FRAME_TEXT_SIZE], file[FRAME_TEXT_SIZE];
	const char *path = frame_text_file(function, file);
	json_t *frame = json_pack("{s:s}", "name", frame_text(function, line, writer->by_line, name));

	if (path)
		frame = json_value_set(frame, "file", json_string(path));
	if (function->file && line)
		frame = json_value_set(frame, "line", json_integer(line));
	json_stream_value(&writer->json, frame);
}

static void write_frames(struct writer *writer)
{
	const struct sample_table *table = writer->table;

	json_stream_outline(&writer->json, "\"shared\":{\"frames\":[");
	if (writer->by_line) {
		for (uint32_t i = 0; i < table->frame_count; i++) {
			json_stream_outline(&writer->json, i ? ",\n" : "\n");
			write_frame(writer, table->frames[i].function, table->frames[i].line);
		}
	} else {
		for (uint32_t i = 0; i < table->function_count; i++) {
			json_stream_outline(&writer->json, i ? ",\n" : "\n");
			write_frame(writer, i, table->functions[i]->firstline);
		}
	}
	json_stream_outline(&writer->json, "\n]}");
}

static void write_stack(struct writer *writer, uint32_t stack)
{
	uint32_t depth = sample_table_frames(writer->table, stack, writer->path);

	json_stream_mark(&writer->json, "[");
	for (uint32_t i = 0; i < depth; i++) {
		json_stream_mark(&writer->json, i ? "," : "");
		json_stream_number(&writer->json, frame_index(writer, writer->path[i]));
	}
	json_stream_mark(&writer->json, "]");
}

/* The word of the format for what the weights are in. */
static const char *unit_of(enum weight_kind weight)
{
	if (weight_is_time(weight))
		return "nanoseconds";
	return weight == WEIGHT_ALLOC_BYTES ? "bytes" : "none";
}

static void begin_profile(struct writer *writer, const char *name, uint64_t end)
{
	json_stream_outline(&writer->json, "{\"type\":\"sampled\",\"name\":");
	json_stream_text(&writer->json, name);
	json_stream_outline(&writer->json,
			    ",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" PRIu64 ",\n\"samples\":[",
			    unit_of(writer->table->weight), end);
}

/*---- A thread in time order ----*/

/* A stretch of time: one sample, or a gap between two. Of other weights, what a sample has. */
struct stretch {
	uint32_t stack;
	uint64_t length;
};

typedef void write_stretch(struct writer *writer, const struct stretch *stretch);

/* The state of going through a thread's stretches. */
struct line {
	struct writer *writer;
	write_stretch *write; /* NULL to find only their end */
	uint64_t cursor;
	bool begun;
	/* Of samples taken at one time, which are not written yet. */
	struct stretch group[GROUP_MAX];
	size_t count;
	uint64_t time_ns;
};

static void add_stretch(struct line *line, const struct stretch *stretch)
{
	line->cursor += stretch->length;
	if (!line->write)
		return;
	json_stream_mark(&line->writer->json, line->begun ? ",\n" : "\n");
	line->write(line->writer, stretch);
	line->begun = true;
}

/*
 * Add the stretches of the group, after a gap perhaps. They follow each other and end
 * when the samples were taken, but begin no earlier than where the previous group ends,
 * *cursor. Weights that are no times follow each other without gaps.
 */
static void add_group(struct line *line)
{
	const struct writer *writer = line->writer;
	const bool is_time = weight_is_time(writer->table->weight);
	const uint64_t end = is_time && line->count ? line->time_ns - writer->begin_ns : 0;
	uint64_t weight = 0;

	for (size_t i = 0; i < line->count; i++)
		weight += line->group[i].length;
	if (end > line->cursor && end - line->cursor > weight)
		add_stretch(line, &(struct stretch){ 0, end - line->cursor - weight });
	for (size_t i = 0; i < line->count; i++)
		add_stretch(line, &line->group[i]);
	line->count = 0;
}

static int add_sample(void *context, const struct table_sample *sample)
{
	struct line *line = context;

	if (line->count == GROUP_MAX || (line->count && line->time_ns != sample->time_ns))
		add_group(line);
	line->time_ns = sample->time_ns;
	line->group[line->count++] = (struct stretch){
		sample->kind.stack, sample_table_weight(line->writer->table, &sample->amounts)
	};
	return 0;
}

/* The first samples of a thread, which were taken at one time. */
struct first {
	const struct sample_table *table;
	uint64_t time_ns, weight;
	bool known;
};

static int note_first(void *context, const struct table_sample *sample)
{
	struct first *first = context;

	if (!first->known)
		first->time_ns = sample->time_ns;
	first->known = true;
	if (sample->time_ns == first->time_ns)
		first->weight += sample_table_weight(first->table, &sample->amounts);
	return 0;
}

/*
 * Find where the earliest group of any thread begins: samples of one time begin earlier
 * together than each of them would alone. Waits of many requests at once may seem to
 * begin before the session. 0 or a negative errno.
 */
static int find_begin(struct writer *writer, const struct session *session)
{
	const struct sample_table *table = writer->table;
	const uint64_t origin_ns = sample_table_origin(table, session);
	uint64_t begin_ns = table->start_ns;
	int error = 0;

	for (uint32_t i = 0; i < table->thread_count && !error && weight_is_time(table->weight); i++) {
		struct first first = { .table = table };

		error = thread_samples_each(writer->samples, i, note_first, &first);
		if (first.time_ns < begin_ns + first.weight)
			begin_ns = first.time_ns > first.weight ? first.time_ns - first.weight : 0;
	}
	writer->begin_ns = begin_ns < origin_ns ? origin_ns : begin_ns;
	return error;
}

/* Write the stacks or the weights of a thread, or only find where they end. 0 or a negative errno. */
static int write_stretches(struct writer *writer, uint32_t thread, write_stretch *write, uint64_t *ret_end)
{
	struct line line = { .writer = writer, .write = write };
	int error = thread_samples_each(writer->samples, thread, add_sample, &line);

	if (error)
		return error;
	add_group(&line);
	if (ret_end)
		*ret_end = line.cursor;
	return 0;
}

static void write_stretch_stack(struct writer *writer, const struct stretch *stretch)
{
	write_stack(writer, stretch->stack);
}

static void write_stretch_weight(struct writer *writer, const struct stretch *stretch)
{
	json_stream_number(&writer->json, stretch->length);
}

static int write_thread(struct writer *writer, uint32_t index)
{
	const struct table_thread *thread = &writer->table->threads[index];
	const char *process = thread->process_name ? thread->process_name : "?";
	char name[NAME_SIZE];
	uint64_t end;
	int error = write_stretches(writer, index, NULL, &end);

	if (error)
		return error;
	snprintf(name, sizeof(name), "%s (pid %d), thread %s (%d)", process, (int)thread->pid,
		 thread->thread_name ? thread->thread_name : "?", (int)thread->tid);
	begin_profile(writer, name, end);
	error = write_stretches(writer, index, write_stretch_stack, NULL);
	json_stream_outline(&writer->json, "\n],\n\"weights\":[");
	if (!error)
		error = write_stretches(writer, index, write_stretch_weight, NULL);
	json_stream_outline(&writer->json, "\n]}");
	return error;
}

/*---- All threads, merged ----*/

struct merged_stack {
	uint64_t own;
	uint64_t total;
	uint32_t stack;
	uint32_t parent;
	uint32_t first_child; /* 0 if none: the root is no child */
	uint32_t next_sibling;
};

/* Lightest first: merge() adds each in front of its siblings, so the heaviest ends up first. */
static int compare_merged(const void *a, const void *b)
{
	const struct merged_stack *const *left = a, *const *right = b;

	if ((*left)->total != (*right)->total)
		return (*left)->total < (*right)->total ? -1 : 1;
	return (*left)->stack < (*right)->stack ? 1 : -1;
}

/* The tree of all stacks with siblings sorted by weight. The caller frees it. NULL when memory is short. */
static struct merged_stack *merge(const struct sample_table *table)
{
	struct merged_stack *merged = calloc(table->stack_count, sizeof(*merged));
	struct merged_stack **order = calloc(table->stack_count, sizeof(struct merged_stack *));

	if (!merged || !order) {
		free(merged);
		free(order);
		return NULL;
	}
	for (size_t i = 0; i < table->sum_count; i++) {
		const struct table_sum *sum = &table->sums[i];

		merged[sum->kind.stack].own += sample_table_weight(table, &sum->amounts);
	}
	for (uint32_t i = table->stack_count; i-- > 0;) {
		merged[i].stack = i;
		merged[i].parent = table->stacks[i].parent;
		merged[i].total += merged[i].own;
		if (i > 0)
			merged[merged[i].parent].total += merged[i].total;
		order[i] = &merged[i];
	}
	qsort(order, table->stack_count, sizeof(struct merged_stack *), compare_merged);
	for (uint32_t i = 0; i < table->stack_count; i++) {
		struct merged_stack *parent = &merged[order[i]->parent];

		if (order[i]->stack == 0)
			continue;
		order[i]->next_sibling = parent->first_child;
		parent->first_child = order[i]->stack;
	}
	free(order);
	return merged;
}

/* The stack after this one, callers before callees; 0 after the last. */
static uint32_t next_merged(const struct merged_stack *merged, uint32_t stack)
{
	if (merged[stack].first_child)
		return merged[stack].first_child;
	while (stack && !merged[stack].next_sibling)
		stack = merged[stack].parent;
	return merged[stack].next_sibling;
}

static int write_merged(struct writer *writer)
{
	struct merged_stack *merged = merge(writer->table);
	bool first = true;
	uint32_t stack = 0;

	if (!merged)
		return -ENOMEM;
	begin_profile(writer, "all threads, merged", writer->table->weight_sum);
	do {
		if (merged[stack].own) {
			json_stream_outline(&writer->json, first ? "\n" : ",\n");
			write_stack(writer, stack);
			first = false;
		}
		stack = next_merged(merged, stack);
	} while (stack);
	json_stream_outline(&writer->json, "\n],\n\"weights\":[");
	first = true;
	do {
		if (merged[stack].own) {
			json_stream_outline(&writer->json, "%s%" PRIu64, first ? "\n" : ",\n",
					    merged[stack].own);
			first = false;
		}
		stack = next_merged(merged, stack);
	} while (stack);
	json_stream_outline(&writer->json, "\n]}");
	free(merged);
	return 0;
}

static int write_document(struct writer *writer, const struct session *session)
{
	const struct sample_table *table = writer->table;
	struct json_stream *json = &writer->json;
	int error;

	json_stream_outline(json, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
				  "\"exporter\":\"ljspy\",\"activeProfileIndex\":0,\"name\":");
	json_stream_text(json, session->target ? session->target : "ljspy");
	json_stream_outline(json, ",\n");
	write_frames(writer);
	json_stream_outline(json, ",\n\"profiles\":[");
	error = write_merged(writer);
	for (uint32_t i = 0; i < table->thread_count && !error; i++) {
		json_stream_outline(json, ",\n");
		error = write_thread(writer, i);
	}
	if (error)
		return error;
	json_stream_outline(json, "]}\n");
	return json_stream_end(json);
}

int speedscope_write(FILE *out, struct sample_source *source, const struct session *session,
		     const struct figures *figures, const struct view *view)
{
	struct sample_table *table;
	struct writer writer = { .json = { .out = out }, .by_line = view->by_line };
	int error = sample_table_read(source, view->weight, &table);

	(void)figures;
	if (error)
		return error;
	writer.table = table;
	writer.path = calloc((size_t)table->depth + 1, sizeof(*writer.path));
	writer.samples = thread_samples_new(table);
	error = writer.path && writer.samples ? find_begin(&writer, session) : -ENOMEM;
	if (!error)
		error = write_document(&writer, session);
	thread_samples_free(writer.samples);
	free(writer.path);
	sample_table_free(table);
	return error;
}
