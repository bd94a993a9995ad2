/* SPDX-License-Identifier: MIT */
#include "output/formats/callgrind.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "memory/hash.h"
#include "output/labels/escape.h"
#include "output/labels/frame_text.h"
#include "output/labels/string_index.h"
#include "output/views/sample_table.h"

/*
 * A cost of a function at a line: its own, or that of a callee. Functions have
 * their numbers in the table; the threads follow. The key has no padding,
 * because it is hashed as bytes.
 */
struct cost_key {
	uint32_t function;
	uint32_t callee; /* its number + 1; OWN for the function's own cost */
	uint32_t line;
};

enum { OWN = 0 };

struct cost {
	struct cost_key key;
	uint64_t weight;
	uint64_t samples;
	uint64_t calls;
	UT_hash_handle hh;
};

struct writer {
	FILE *out;
	const struct sample_table *table;
	struct cost *costs;
	uint32_t *path;    /* room for the deepest stack */
	uint32_t *entered; /* for each function, the number of the last stack with it, from 1 */
	/* Each name is written once, later only its number. */
	bool *named; /* for each function */
	struct string_index *files, *objects;
	int64_t files_named, objects_named;
};

static struct cost *find_cost(struct writer *writer, uint32_t function, uint32_t callee, uint32_t line)
{
	struct cost_key key = { .function = function, .callee = callee, .line = line };
	struct cost *cost;

	HASH_FIND(hh, writer->costs, &key, sizeof(key), cost);
	if (cost)
		return cost;
	cost = calloc(1, sizeof(*cost));
	if (!cost)
		return NULL;
	cost->key = key;
	HASH_ADD(hh, writer->costs, key, sizeof(cost->key), cost);
	if (!hash_added(&cost->hh)) {
		free(cost);
		return NULL;
	}
	return cost;
}

/* Add the costs of a thread's stack. number counts the stacks so far, from 1. 0 or -ENOMEM. */
static int add_stack(struct writer *writer, uint32_t thread, uint32_t number, uint32_t stack, uint64_t weight,
		     uint64_t samples)
{
	const struct sample_table *table = writer->table;
	uint32_t depth = sample_table_frames(table, stack, writer->path);
	uint32_t function = table->function_count + thread, line = 0;
	struct cost *cost;

	for (uint32_t i = 0; i < depth; i++) {
		const struct table_frame *frame = &table->frames[writer->path[i]];

		cost = find_cost(writer, function, frame->function + 1, line);
		if (!cost)
			return -ENOMEM;
		cost->calls += samples;
		if (writer->entered[frame->function] != number) {
			writer->entered[frame->function] = number;
			cost->weight += weight;
			cost->samples += samples;
		}
		function = frame->function;
		line = frame->line;
	}
	cost = find_cost(writer, function, OWN, line);
	if (!cost)
		return -ENOMEM;
	cost->weight += weight;
	cost->samples += samples;
	return 0;
}

/* Add each stack of a thread once, with the sum of its samples. 0 or -ENOMEM. */
static int add_thread(struct writer *writer, uint32_t index, uint32_t *number)
{
	const struct sample_table *table = writer->table;
	const struct table_sum *sum = table->sums + table->threads[index].first_sum;
	const struct table_sum *end = sum + table->threads[index].sum_count;
	int error = 0;

	while (sum < end && !error) {
		uint32_t stack = sum->kind.stack;
		uint64_t weight = 0, samples = 0;

		for (; sum < end && sum->kind.stack == stack; sum++) {
			weight += sample_table_weight(table, &sum->amounts);
			samples += sum->count;
		}
		error = add_stack(writer, index, ++*number, stack, weight, samples);
	}
	return error;
}

/*---- Writing ----*/

static void write_text(FILE *out, const char *text)
{
	escape_write(ESCAPE_PLAIN, text, out);
}

/* Readers take a text of spaces for no name, so write "???". */
static const char *visible(const char *text)
{
	return text[strspn(text, " ")] ? text : "???";
}

static int write_shared_name(FILE *out, const char *key, struct string_index *index, int64_t *named,
			     const char *name)
{
	int64_t number = string_index_add(index, name);

	if (number < 0)
		return (int)number;
	if (number < *named) {
		fprintf(out, "%s=(%" PRId64 ")\n", key, number + 1);
		return 0;
	}
	fprintf(out, "%s=(%" PRId64 ") %s\n", key, number + 1, visible(name));
	*named = number + 1;
	return 0;
}

static void write_thread_name(FILE *out, const struct table_thread *thread)
{
	fputs("thread ", out);
	write_text(out, thread->thread_name ? thread->thread_name : "?");
	fprintf(out, " (%d of ", (int)thread->tid);
	write_text(out, thread->process_name ? thread->process_name : "process");
	fprintf(out, " %d)", (int)thread->pid);
}

/* The keys of a function's object, file and name. */
struct keys {
	const char *object, *file, *name;
};

static const struct keys own_keys = { "ob", "fl", "fn" }, callee_keys = { "cob", "cfi", "cfn" };

static int write_function(struct writer *writer, uint32_t index, const struct keys *keys)
{
	const struct sample_table *table = writer->table;
	const struct function *function = index < table->function_count ? table->functions[index] : NULL;
	char text[FRAME_TEXT_SIZE];
	int error = 0;

	if (function && function->module) {
		escape_text(ESCAPE_PLAIN, function->module, text, sizeof(text));
		error = write_shared_name(writer->out, keys->object, writer->objects, &writer->objects_named,
					  text);
	} else {
		fprintf(writer->out, "%s=\n", keys->object);
	}
	if (!error)
		error = write_shared_name(writer->out, keys->file, writer->files, &writer->files_named,
					  function && frame_text_file(function, text) ? text : "???");
	if (error)
		return error;
	fprintf(writer->out, "%s=(%" PRIu32 ")", keys->name, index + 1);
	if (!writer->named[index]) {
		fputc(' ', writer->out);
		if (function)
			fputs(visible(frame_text(function, 0, false, text)), writer->out);
		else
			write_thread_name(writer->out, &table->threads[index - table->function_count]);
		writer->named[index] = true;
	}
	fputc('\n', writer->out);
	return 0;
}

static uint32_t first_line(const struct writer *writer, uint32_t function)
{
	return function < writer->table->function_count ? writer->table->functions[function]->firstline : 0;
}

static int compare_costs(const void *a, const void *b)
{
	const struct cost_key *left = &((const struct cost *)a)->key, *right = &((const struct cost *)b)->key;

	if (left->function != right->function)
		return left->function < right->function ? -1 : 1;
	if (left->callee != right->callee)
		return left->callee < right->callee ? -1 : 1;
	return left->line < right->line ? -1 : left->line > right->line;
}

static int write_costs(struct writer *writer)
{
	const struct cost *previous = NULL;
	int error = 0;

	HASH_SRT(hh, writer->costs, compare_costs);
	for (const struct cost *cost = writer->costs; cost && !error; cost = cost->hh.next) {
		if (!previous || previous->key.function != cost->key.function) {
			fputc('\n', writer->out);
			error = write_function(writer, cost->key.function, &own_keys);
		}
		if (!error && cost->key.callee != OWN) {
			error = write_function(writer, cost->key.callee - 1, &callee_keys);
			fprintf(writer->out, "calls=%" PRIu64 " %" PRIu32 "\n", cost->calls,
				first_line(writer, cost->key.callee - 1));
		}
		fprintf(writer->out, "%" PRIu32 " %" PRIu64 " %" PRIu64 "\n", cost->key.line, cost->weight,
			cost->samples);
		previous = cost;
	}
	return error;
}

/* Of what samples have; heaps have formats of their own. */
static const struct {
	const char *name, *title;
} events[WEIGHT_COUNT] = {
	[WEIGHT_CPU_TIME] = { "cpu_ns", "CPU time [ns]" },
	[WEIGHT_WALL_TIME] = { "wall_ns", "Elapsed time [ns]" },
	[WEIGHT_OFF_CPU_TIME] = { "wall_ns", "Elapsed time [ns]" },
	[WEIGHT_ALLOC_BYTES] = { "alloc_bytes", "Allocated bytes" },
	[WEIGHT_ALLOC_OBJECTS] = { "alloc_objects", "Allocated objects" },
};

static void write_header(struct writer *writer, const struct session *session)
{
	const enum weight_kind weight = writer->table->weight;
	FILE *out = writer->out;

	fputs("# callgrind format\nversion: 1\ncreator: ljspy\n", out);
	if (session->pid)
		fprintf(out, "pid: %d\n", (int)session->pid);
	fputs("cmd: ", out);
	write_text(out, session->target ? session->target : "?");
	if (session->command_line) {
		fputs("\ndesc: Command: ", out);
		write_text(out, session->command_line);
	}
	fprintf(out,
		"\npositions: line\nevent: %s : %s\nevent: samples : Samples\n"
		"events: %s samples\nsummary: %" PRIu64 " %zu\n",
		events[weight].name, events[weight].title, events[weight].name, writer->table->weight_sum,
		writer->table->sample_count);
}

static int write_table(struct writer *writer, const struct session *session)
{
	const struct sample_table *table = writer->table;
	size_t functions = (size_t)table->function_count + table->thread_count;
	uint32_t number = 0;
	int error = 0;

	writer->path = calloc((size_t)table->depth + 1, sizeof(*writer->path));
	writer->entered = calloc(functions + 1, sizeof(*writer->entered));
	writer->named = calloc(functions + 1, sizeof(*writer->named));
	writer->files = string_index_new();
	writer->objects = string_index_new();
	if (!writer->path || !writer->entered || !writer->named || !writer->files || !writer->objects)
		return -ENOMEM;
	for (uint32_t i = 0; i < table->thread_count && !error; i++)
		error = add_thread(writer, i, &number);
	if (error)
		return error;
	write_header(writer, session);
	error = write_costs(writer);
	return error ? error : ferror(writer->out) ? -EIO : 0;
}

int callgrind_write(FILE *out, struct sample_source *source, const struct session *session,
		    const struct figures *figures, const struct view *view)
{
	struct writer writer = { .out = out };
	struct sample_table *table;
	int error = sample_table_read(source, view->weight, &table);

	(void)figures;
	if (error)
		return error;
	writer.table = table;
	error = write_table(&writer, session);
	HASH_FREE_ALL(writer.costs);
	free(writer.path);
	free(writer.entered);
	free(writer.named);
	string_index_free(writer.files);
	string_index_free(writer.objects);
	sample_table_free(table);
	return error;
}
