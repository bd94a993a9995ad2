/* SPDX-License-Identifier: MIT */
#include "src/rendering/heap_output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "output/heap/heap_builder.h"
#include "output/heap_reports/heap_diff_text.h"
#include "output/heap_reports/heap_uncertain.h"
#include "output/heap_views/heap_folds.h"
#include "src/rendering/render.h"
#include "src/program/message.h"

struct heap_moment_read {
	const char *name; /* borrowed */
	struct heap_subject *subjects;
	size_t count, size;
};

int heap_output_begin_moment(struct heap_output *output, const char *name)
{
	struct heap_moment_read *moments = array_grow(output->moments, &output->moment_size,
						      output->moment_count + 1, sizeof(*moments));

	if (!moments)
		return -ENOMEM;
	output->moments = moments;
	output->moments[output->moment_count++] = (struct heap_moment_read){ .name = name };
	return 0;
}

static struct heap_moment_read *last_moment(const struct heap_output *output)
{
	return &output->moments[output->moment_count - 1];
}

/* Does a series keep each moment in a file? */
static bool keeps_moments(const struct heap_output *output)
{
	return output->options->output && output->options->heap_format->needs_graph;
}

/* The text of a series says it. */
static void tell_uncertain(const struct heap_output *output, const struct heap_account *account)
{
	const char *name = last_moment(output)->name;
	char text[HEAP_UNCERTAIN_SIZE];

	if (!output->options->every_ns && !output->options->heap_format->says_uncertain &&
	    *heap_uncertain_text(account, text))
		message_note("%s%s%s", name ? name : "", name ? ": " : "", text);
}

int heap_output_add(struct heap_output *output, struct heap_graph *graph, const struct heap_account *account)
{
	struct heap_moment_read *moment = last_moment(output);
	struct heap_subject *subjects = array_grow(moment->subjects, &moment->size, moment->count + 1,
						   sizeof(*subjects));
	int error;

	if (!subjects) {
		heap_graph_free(graph);
		return -ENOMEM;
	}
	moment->subjects = subjects;
	error = heap_subject_make(graph, account, output->options->heap_format->needs_graph,
				  &moment->subjects[moment->count]);
	if (error)
		return error;
	moment->count++;
	output->is_partial |= !heap_account_is_whole(account);
	tell_uncertain(output, account);
	return 0;
}

bool heap_output_has_any(const struct heap_output *output)
{
	const struct heap_moment_read *moment = output->moment_count > 0 ? last_moment(output) : NULL;

	for (size_t i = 0; moment && i < moment->count; i++)
		if (!heap_account_is_missing(&moment->subjects[i].summary.account))
			return true;
	return false;
}

/*---- Writing ----*/

static struct heap_view view_of(const struct heap_output *output)
{
	const struct options *options = output->options;

	return (struct heap_view){
		.measure = options->measure,
		.group = options->heap_group,
		.inverted = options->inverted,
		.min_percent = options->min_percent,
		.strings = options->strings,
		.command_line = output->command_line,
	};
}

static struct heap_side side_of(const struct heap_moment_read *moment)
{
	return (struct heap_side){ .name = moment->name,
				   .subjects = moment->subjects,
				   .count = moment->count };
}

/* How writing a file failed: a negative errno, or 0. */
struct failure {
	int error;
	bool was_open;
};

static struct failure try_to_write(const struct heap_output *output, const char *path)
{
	const struct heap_format *format = output->options->heap_format;
	struct heap_side side = side_of(last_moment(output));
	struct heap_view view = view_of(output);
	struct output_file file = { 0 };
	int error = output_file_open(path, &file);

	if (error)
		return (struct failure){ .error = error };
	errno = 0;
	error = render_end(&file, format->write(file.stream, &side, &view));
	if (!error)
		render_tell(path, format->picture);
	return (struct failure){ .error = error, .was_open = true };
}

static void explain(const char *path, const struct failure *failure)
{
	if (failure->was_open)
		render_explain_write(path, failure->error);
	else
		render_explain_open(path, "-o", failure->error);
}

static const char *path_of(const struct heap_output *output)
{
	return output->options->output ? output->options->output : "-";
}

bool heap_output_write(struct heap_output *output)
{
	const struct failure failure = try_to_write(output, path_of(output));

	if (failure.error)
		explain(path_of(output), &failure);
	return !failure.error;
}

/* "a.heap" has "a-1.heap" as its first. NULL when memory is short. */
static char *numbered(const char *path, size_t number)
{
	const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
	char *name = NULL;

	if (!dot || (slash && dot < slash))
		dot = path + strlen(path);
	return asprintf(&name, "%.*s-%zu%s", (int)(dot - path), path, number, dot) < 0 ? NULL : name;
}

/* A later file may be written again, such as on a disk that was full. */
static void tell_unwritten(const struct heap_output *output, const char *path, const struct failure *failure)
{
	const size_t written = output->moment_count - 1 - output->unwritten;

	if (failure->error != output->unwritten_by)
		explain(path, failure);
	if (output->unwritten == 0)
		message_note("%sThe series goes on, and compares the moments without a file, too.",
			     written ? "What was written before stays. " : "");
}

bool heap_output_write_moment(struct heap_output *output)
{
	const char *to = output->options->output;
	struct heap_moment_read *moment = last_moment(output);
	struct failure failure = { .error = -ENOMEM, .was_open = true };
	char *path;

	if (!keeps_moments(output))
		return true;
	path = strcmp(to, "-") ? numbered(to, output->moment_count + output->unread) : strdup("-");
	if (path)
		failure = try_to_write(output, path);
	if (failure.error) {
		tell_unwritten(output, path ? path : to, &failure);
		output->unwritten++;
	}
	output->unwritten_by = failure.error;
	free(path);
	for (size_t i = 0; i < moment->count; i++)
		heap_graph_free(&moment->subjects[i].graph);
	return !failure.error;
}

/* What is compared tells the same keys apart. 0 or -ENOMEM. */
static int fold_moments(struct heap_output *output)
{
	struct heap_trees trees = { 0 };

	for (size_t i = 0; i < output->moment_count; i++)
		for (size_t k = 0; k < output->moments[i].count; k++)
			heap_trees_add(&trees, &output->moments[i].subjects[k].summary.paths);
	return heap_trees_fold(&trees);
}

static bool is_of_vm(const struct heap_account *account, const struct heap_account *vm)
{
	return account->pid == vm->pid && account->g == vm->g;
}

static bool is_missing_in(const struct heap_moment_read *moment, const struct heap_account *of)
{
	for (size_t i = 0; i < moment->count; i++) {
		const struct heap_account *account = &moment->subjects[i].summary.account;

		if (heap_account_is_missing(account) && is_of_vm(account, of))
			return true;
	}
	return false;
}

/*
 * A VM that could not be read in the other moment would seem to have come or gone: it moves behind the
 * others.
 */
static struct heap_side comparable(struct heap_moment_read *moment, const struct heap_moment_read *other)
{
	struct heap_side side = side_of(moment);

	side.count = 0;
	for (size_t i = 0; i < moment->count; i++) {
		const struct heap_subject subject = moment->subjects[i];
		const struct heap_account *account = &subject.summary.account;

		if (!heap_account_is_missing(account) && is_missing_in(other, account)) {
			message_note("VM %u of process %d is left out: it could not be read in %s.",
				     account->vm, (int)account->pid, other->name);
			continue;
		}
		moment->subjects[i] = moment->subjects[side.count];
		moment->subjects[side.count++] = subject;
	}
	return side;
}

static void note_other_words(const struct heap_side *sides, size_t count)
{
	const struct heap_unlike unlike = heap_sides_unlike(sides, count);

	if (unlike.coroutines)
		message_note("%s", HEAP_OTHER_COROUTINES);
	if (unlike.functions_in_c)
		message_note("%s", HEAP_OTHER_C_FUNCTIONS);
}

bool heap_output_compare(struct heap_output *output)
{
	const struct heap_format *format = output->options->heap_format;
	struct heap_side before = comparable(&output->moments[0], &output->moments[1]);
	struct heap_side after = comparable(&output->moments[1], &output->moments[0]);
	const struct heap_side sides[] = { before, after };
	struct heap_view view = view_of(output);
	struct output_file file = { 0 };

	const int error = fold_moments(output);

	if (!format->says_uncertain)
		note_other_words(sides, 2);
	if (error) {
		render_explain_write(path_of(output), error);
		return false;
	}
	if (!render_open(&file, path_of(output), "-o"))
		return false;
	errno = 0;
	if (!render_finish(&file, format->compare(file.stream, &before, &after, &view)))
		return false;
	render_tell(path_of(output), format->picture);
	return true;
}

bool heap_output_check_series(const struct options *options)
{
	const struct heap_format *format = options->heap_format;

	/* A series is a text. */
	if (format == heap_format_by_name("text") || format->needs_graph)
		return true;
	message_error("The format %s shows one heap, not what grew over several.", format->name);
	message_note("Write text. Of two .heap files, `ljspy diff BEFORE AFTER -f svg` draws what grew.");
	return false;
}

/*---- A series ----*/

bool heap_output_write_series(struct heap_output *output)
{
	const char *path = keeps_moments(output) ? "-" : path_of(output);
	struct heap_side *sides = calloc(output->moment_count + 1, sizeof(*sides));
	struct heap_view view = view_of(output);
	struct output_file file = { 0 };
	const int error = sides ? fold_moments(output) : -ENOMEM;
	bool good;

	for (size_t i = 0; sides && i < output->moment_count; i++)
		sides[i] = side_of(&output->moments[i]);
	if (error)
		render_explain_write(path, error);
	good = !error && render_open(&file, path, "-o");
	errno = 0;
	good = good && render_finish(&file, heap_series_write(file.stream, sides, output->moment_count,
							      output->unread, &view));
	free(sides);
	if (good)
		render_tell(path, false); /* a series is a text */
	if (output->unwritten > 0)
		message_warn("%zu of the %zu moments%s could not be written to a file.", output->unwritten,
			     output->moment_count, good ? " in the text" : "");
	return good;
}

void heap_output_drop_moment(struct heap_output *output)
{
	struct heap_moment_read *moment = last_moment(output);

	for (size_t i = 0; i < moment->count; i++)
		heap_subject_clear(&moment->subjects[i]);
	free(moment->subjects);
	output->moment_count--;
}

size_t heap_output_moments(const struct heap_output *output)
{
	return output->moment_count;
}

void heap_output_clear(struct heap_output *output)
{
	while (output->moment_count > 0)
		heap_output_drop_moment(output);
	free(output->moments);
	*output = (struct heap_output){ 0 };
}
