/* SPDX-License-Identifier: MIT */
#include "output/reports/turn_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "memory/hash.h"
#include "output/labels/escape.h"
#include "output/labels/frame_text.h"
#include "output/labels/json_values.h"
#include "output/labels/names.h"
#include "output/sample/functions.h"
#include "output/sample/histogram.h"

enum { LINES_SHOWN = 20, BAR_WIDTH = 30, STEPS_MAX = 24 };

/* What a turn was doing: a line of Lua, and the function that it called, if any. */
struct line_key {
	const struct function *function; /* the innermost Lua function; without Lua, the leaf */
	const struct function *callee;   /* NULL if none */
	const char *phase;               /* NULL if none */
	uint32_t line;
	enum vm_state work; /* LuaJIT's own work: GC or RECORDING; VM_STATE_UNKNOWN for none */
	bool wants_cpu;     /* the thread was runnable and waited for a CPU */
};

struct line {
	struct line_key key;
	uint64_t ns, longest_ns; /* in all long turns, and the most in one */
	uint64_t turns;
	UT_hash_handle hh;
};

/* The time of a line in one turn, until the turn is closed. */
struct part {
	struct {
		uint64_t turn;
		struct line *line;
	} key;
	uint64_t ns;
	UT_hash_handle hh;
};

struct turn_report {
	uint64_t threshold_ns;
	struct line *lines;
	struct part *parts;
	uint64_t seen_count;   /* turns, long or not */
	uint64_t unsure_count; /* long turns that may be several */
	struct histogram long_ns;
	uint64_t sum_ns, slack_ns; /* of the long turns: sum, and largest slack */
	uint64_t steps[STEPS_MAX]; /* see step_begin() */
};

struct turn_report *turn_report_new(uint64_t threshold_ns)
{
	struct turn_report *report = calloc(1, sizeof(*report));

	if (report)
		report->threshold_ns = threshold_ns;
	return report;
}

void turn_report_keep_functions(const struct turn_report *report)
{
	for (const struct line *line = report->lines; line; line = line->hh.next) {
		functions_keep(line->key.function);
		functions_keep(line->key.callee);
	}
}

void turn_report_free(struct turn_report *report)
{
	if (!report)
		return;
	HASH_FREE_ALL(report->parts);
	HASH_FREE_ALL(report->lines);
	free(report);
}

/*---- Collecting ----*/

/* LuaJIT's own work, which does not count as the work of the line where it happened. */
static enum vm_state worth_telling(enum vm_state state)
{
	if (state == VM_STATE_OPTIMISING || state == VM_STATE_ASSEMBLING)
		return VM_STATE_RECORDING;
	return state == VM_STATE_GC || state == VM_STATE_RECORDING ? state : VM_STATE_UNKNOWN;
}

static struct line_key describe(const struct sample *sample)
{
	struct line_key key;
	size_t at = 0;

	memset(&key, 0, sizeof(key)); /* clear the padding, because the key is hashed as bytes */
	while (at < sample->frame_count && sample->frames[at].function->kind != FRAME_LUA)
		at++;
	if (at == sample->frame_count)
		at = 0;
	key.wants_cpu = sample->thread_state == THREAD_RUNNABLE;
	key.work = key.wants_cpu ? VM_STATE_UNKNOWN : worth_telling(sample->vm_state);
	key.phase = sample->phase;
	if (at < sample->frame_count) {
		key.function = sample->frames[at].function;
		key.line = sample->frames[at].line;
	}
	if (at > 0 && key.work == VM_STATE_UNKNOWN && !key.wants_cpu)
		key.callee = sample->frames[at - 1].function;
	return key;
}

static struct line *find_line(struct turn_report *report, const struct line_key *key)
{
	struct line *line;

	HASH_FIND(hh, report->lines, key, sizeof(*key), line);
	if (line)
		return line;
	line = calloc(1, sizeof(*line));
	if (!line)
		return NULL;
	line->key = *key;
	HASH_ADD(hh, report->lines, key, sizeof(line->key), line);
	if (hash_added(&line->hh))
		return line;
	free(line);
	return NULL;
}

static struct part *find_part(struct turn_report *report, uint64_t turn, struct line *line)
{
	struct part *part, wanted = { .key = { turn, line } };

	HASH_FIND(hh, report->parts, &wanted.key, sizeof(wanted.key), part);
	if (part)
		return part;
	part = calloc(1, sizeof(*part));
	if (!part)
		return NULL;
	part->key = wanted.key;
	HASH_ADD(hh, report->parts, key, sizeof(part->key), part);
	if (hash_added(&part->hh))
		return part;
	free(part);
	return NULL;
}

int turn_report_add(void *context, const struct turn *turn, const struct sample *sample)
{
	struct turn_report *report = context;
	struct line_key key = describe(sample);
	struct line *line = find_line(report, &key);
	struct part *part = line ? find_part(report, turn->number, line) : NULL;

	if (!part)
		return -ENOMEM;
	part->ns += sample->wall_ns;
	return 0;
}

/* Where a step of the histogram begins, in nanoseconds: at 1, 2, 5, 10 ... times the threshold. */
static uint64_t step_begin(const struct turn_report *report, unsigned step)
{
	static const uint64_t factors[] = { 1, 2, 5 };
	uint64_t begin = report->threshold_ns * factors[step % 3];

	for (unsigned i = 0; i < step / 3; i++)
		begin *= 10;
	return begin;
}

static void count_step(struct turn_report *report, uint64_t length_ns)
{
	unsigned step = 0;

	while (step + 1 < STEPS_MAX && step_begin(report, step + 1) <= length_ns)
		step++;
	report->steps[step]++;
}

void turn_report_close(void *context, const struct turn *turn, bool is_long)
{
	struct turn_report *report = context;
	uint64_t length_ns = turn->end_ns - turn->begin_ns;
	struct part *part, *next;

	report->seen_count++;
	if (!is_long)
		return;
	report->unsure_count += turn->may_be_several;
	histogram_add(&report->long_ns, length_ns);
	count_step(report, length_ns);
	report->sum_ns += length_ns;
	if (turn->slack_ns > report->slack_ns)
		report->slack_ns = turn->slack_ns;
	HASH_ITER(hh, report->parts, part, next) {
		struct line *line = part->key.line;

		if (part->key.turn != turn->number)
			continue;
		line->ns += part->ns;
		line->turns++;
		if (part->ns > line->longest_ns)
			line->longest_ns = part->ns;
		HASH_DEL(report->parts, part);
		free(part);
	}
}

/*---- Lines ----*/

static int heaviest_first(const void *a, const void *b)
{
	const struct line *left = *(const struct line *const *)a, *right = *(const struct line *const *)b;

	return (left->ns < right->ns) - (left->ns > right->ns);
}

/* The lines of long turns, heaviest first. The caller frees the array. NULL when memory is short. */
static const struct line **sort_lines(const struct turn_report *report, size_t *ret_count)
{
	size_t count = 0, room = HASH_COUNT(report->lines);
	const struct line **sorted = calloc(room + 1, sizeof(const struct line *));

	if (!sorted)
		return NULL;
	for (const struct line *line = report->lines; line; line = line->hh.next)
		if (line->turns)
			sorted[count++] = line;
	qsort(sorted, count, sizeof(const struct line *), heaviest_first);
	*ret_count = count;
	return sorted;
}

struct turn_sums turn_report_sums(const struct turn_report *report)
{
	return (struct turn_sums){
		.threshold_ns = report->threshold_ns,
		.seen = report->seen_count,
		.long_turns = report->long_ns.count,
		.unsure = report->unsure_count,
		.ns = report->sum_ns,
		.longest_ns = report->long_ns.max,
	};
}

struct turn_line *turn_report_lines(const struct turn_report *report, size_t *ret_count)
{
	size_t count = 0;
	const struct line **sorted = sort_lines(report, &count);
	struct turn_line *lines = sorted ? calloc(count + 1, sizeof(*lines)) : NULL;

	for (size_t i = 0; lines && i < count; i++)
		lines[i] = (struct turn_line){
			.function = sorted[i]->key.function,
			.callee = sorted[i]->key.callee,
			.line = sorted[i]->key.line,
			.wants_cpu = sorted[i]->key.wants_cpu,
			.ns = sorted[i]->ns,
			.longest_ns = sorted[i]->longest_ns,
		};
	free(sorted);
	if (lines)
		*ret_count = count;
	return lines;
}

/*---- Printing ----*/

static const char *doing(const struct line_key *key, char buffer[static FRAME_TEXT_SIZE])
{
	if (key->wants_cpu)
		return WAITING_FOR_CPU;
	if (key->work == VM_STATE_GC)
		return "collecting garbage";
	if (key->work == VM_STATE_RECORDING)
		return "compiling a trace";
	return key->callee ? frame_text(key->callee, 0, false, buffer) : NULL;
}

static void print_line(FILE *out, const struct line *line)
{
	char where[FRAME_TEXT_SIZE], buffer[FRAME_TEXT_SIZE];
	const char *what = doing(&line->key, buffer);

	fprintf(out, "  %9.1f  %6" PRIu64 "  %10.1f  ", (double)line->ns / 1e6, line->turns,
		(double)line->longest_ns / 1e6);
	if (line->key.phase)
		fprintf(out, "%s: ", line->key.phase);
	fputs(line->key.function ? frame_text(line->key.function, line->key.line, true, where) : "?", out);
	fprintf(out, "%s%s\n", what ? ": " : "", what ? what : "");
}

static void print_steps(FILE *out, const struct turn_report *report)
{
	uint64_t most = 1;
	unsigned last = 0;

	for (unsigned step = 0; step < STEPS_MAX; step++) {
		if (report->steps[step])
			last = step;
		if (report->steps[step] > most)
			most = report->steps[step];
	}
	fputs("\n       from ms   turns\n", out);
	for (unsigned step = 0; step <= last; step++) {
		uint64_t width = (report->steps[step] * BAR_WIDTH + most - 1) / most;

		fprintf(out, "  %12g  %6" PRIu64 "  %.*s\n", (double)step_begin(report, step) / 1e6,
			report->steps[step], (int)width, "##############################");
	}
}

static void print_summary(FILE *out, const struct turn_report *report, uint64_t duration_ns)
{
	const struct histogram *long_ns = &report->long_ns;

	fprintf(out, "blocked  %" PRIu64 " turns of %g ms or more, %.1f ms of %.1f s in all", long_ns->count,
		(double)report->threshold_ns / 1e6, (double)report->sum_ns / 1e6, (double)duration_ns / 1e9);
	if (long_ns->count)
		fprintf(out, "; p50 %.1f ms, p99 %.1f ms, max %.1f ms, each up to %.1f ms more or less",
			(double)histogram_percentile(long_ns, 500) / 1e6,
			(double)histogram_percentile(long_ns, 990) / 1e6, (double)long_ns->max / 1e6,
			(double)report->slack_ns / 1e6);
	fprintf(out, "\n         of %" PRIu64 " turns that were seen; of shorter ones most are not\n",
		report->seen_count);
	if (report->unsure_count)
		fprintf(out,
			"         %" PRIu64
			" of the long ones may be several: a loop that always finds work does not"
			" sleep between turns\n",
			report->unsure_count);
	if (report->seen_count == 0)
		fputs("         No event loop was seen at work.\n", out);
}

int turn_report_print(FILE *out, const struct turn_report *report, uint64_t duration_ns)
{
	const struct line **lines;
	size_t count;

	print_summary(out, report, duration_ns);
	if (report->long_ns.count == 0)
		return ferror(out) ? -EIO : 0;
	lines = sort_lines(report, &count);
	if (!lines)
		return -ENOMEM;
	print_steps(out, report);
	fputs("\n         ms   turns  longest ms  line\n", out);
	for (size_t i = 0; i < count && i < LINES_SHOWN; i++)
		print_line(out, lines[i]);
	if (count > LINES_SHOWN)
		fprintf(out, "  and %zu more\n", count - LINES_SHOWN);
	fputc('\n', out);
	free(lines);
	return ferror(out) ? -EIO : 0;
}

/*---- JSON ----*/

static json_t *milliseconds(uint64_t ns)
{
	return json_real((double)ns / 1e6);
}

static json_t *line_json(const struct line *line)
{
	char label[FRAME_TEXT_SIZE], buffer[FRAME_TEXT_SIZE];

	return json_pack(
		"{s:o, s:I, s:o, s:o, s:o, s:o, s:o}", "ms", milliseconds(line->ns), "turns",
		(json_int_t)line->turns, "longest_ms", milliseconds(line->longest_ns), "phase",
		json_value_text(line->key.phase), "function",
		json_value_text(line->key.function ? frame_text(line->key.function, 0, false, label) : NULL),
		"line", json_value_number(line->key.line), "doing",
		json_value_text(doing(&line->key, buffer)));
}

static json_t *lines_json(const struct turn_report *report)
{
	json_t *array = json_array();
	size_t count;
	const struct line **lines = sort_lines(report, &count);

	for (size_t i = 0; lines && i < count; i++)
		array = json_value_append(array, line_json(lines[i]));
	if (!lines) {
		json_decref(array);
		array = NULL;
	}
	free(lines);
	return array;
}

static json_t *steps_json(const struct turn_report *report)
{
	json_t *array = json_array();

	for (unsigned step = 0; step < STEPS_MAX; step++)
		if (report->steps[step])
			array = json_value_append(array,
						  json_pack("{s:o, s:o, s:I}", "from_ms",
							    milliseconds(step_begin(report, step)), "to_ms",
							    milliseconds(step_begin(report, step + 1)),
							    "turns", (json_int_t)report->steps[step]));
	return array;
}

json_t *turn_report_json(const struct turn_report *report)
{
	const struct histogram *long_ns = &report->long_ns;

	return json_pack("{s:o, s:I, s:I, s:I, s:o, s:o, s:{s:o, s:o, s:o, s:o}, s:o, s:o}", "threshold_ms",
			 milliseconds(report->threshold_ns), "turns_seen", (json_int_t)report->seen_count,
			 "long_turns", (json_int_t)long_ns->count, "unsure_turns",
			 (json_int_t)report->unsure_count, "long_ms", milliseconds(report->sum_ns),
			 "slack_ms", milliseconds(report->slack_ns), "turn_ms", "p50",
			 milliseconds(histogram_percentile(long_ns, 500)), "p90",
			 milliseconds(histogram_percentile(long_ns, 900)), "p99",
			 milliseconds(histogram_percentile(long_ns, 990)), "max", milliseconds(long_ns->max),
			 "histogram", steps_json(report), "lines", lines_json(report));
}
