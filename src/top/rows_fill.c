/* SPDX-License-Identifier: MIT */
#include "src/top/rows_fill.h"

#include <errno.h>

#include "src/top/gather.h"

static bool has_lost_frame(const struct sample *sample)
{
	for (size_t i = 0; i < sample->frame_count; i++)
		if (sample->frames[i].function->kind == FRAME_LOST)
			return true;
	return false;
}

static void add_to_totals(struct totals *totals, const struct sample *sample)
{
	totals->samples++;
	totals->cpu_ns += sample->cpu_ns;
	totals->by_state[sample->vm_state] += sample->cpu_ns;
	gc_bill_add(&totals->gc, sample, sample->cpu_ns);
	if (has_lost_frame(sample))
		totals->lost_ns += sample->cpu_ns;
}

struct gathered {
	struct rows *rows;
	const struct rows_options *options;
	struct function_entry *functions;
	struct profile *profile;
	struct thread_entry *threads;
};

static int gather_sample(void *context, const struct sample *sample)
{
	struct gathered *gathered = context;
	const struct rows_options *options = gathered->options;
	struct rows *rows = gathered->rows;
	int error, passes;

	if (sample->time_ns < options->since_ns)
		return 0;
	error = thread_rows_gather(&gathered->threads, options, sample);
	if (error)
		return error;
	if (rows_show_one(options) &&
	    ((options->pid && sample->pid != options->pid) || (options->tid && sample->tid != options->tid)))
		return 0;
	add_to_totals(&rows->totals, sample);
	if (sample->time_ns >= options->middle_ns) {
		rows->whole_late_ns += sample->cpu_ns;
		rows->samples_late++;
	}
	if (options->list == ROWS_FUNCTIONS)
		return function_rows_gather(&gathered->functions, options, sample, rows->totals.samples);
	if (options->list != ROWS_TREE)
		return 0;
	passes = function_rows_any_passes(&gathered->functions, options, sample);
	return passes > 0 ? profile_add(gathered->profile, sample) : passes;
}

static int gather(struct gathered *gathered, struct sample_source *source)
{
	struct profile_options profile_options = {
		.weight = WEIGHT_CPU_TIME,
		.by_line = gathered->options->by_line,
	};

	gathered->profile = profile_new(&profile_options);
	if (!gathered->profile)
		return -ENOMEM;
	return sample_source_each(source, gather_sample, gathered);
}

int rows_fill(struct rows *rows, struct sample_source *source, const struct rows_options *options)
{
	struct gathered gathered = { .rows = rows, .options = options };
	int error;

	rows->count = 0;
	rows->whole_late_ns = rows->samples_late = 0;
	rows->totals = (struct totals){ 0 };
	error = gather(&gathered, source);
	thread_rows_count(gathered.threads, &rows->totals);
	if (!error && options->list == ROWS_TREE)
		error = tree_rows_finish(gathered.profile, options, rows);
	else if (!error && options->list == ROWS_THREADS)
		error = thread_rows_finish(gathered.threads, options, rows);
	else if (!error)
		error = function_rows_finish(gathered.functions, rows);
	if (options->list == ROWS_FUNCTIONS)
		rows_sort(rows->rows, rows->count, options->sort);
	function_rows_free(&gathered.functions);
	profile_free(gathered.profile);
	thread_rows_free(&gathered.threads);
	return error;
}
