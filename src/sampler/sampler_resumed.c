/* SPDX-License-Identifier: MIT */
/* Runs of the sampler, one after the other, and their results added up. */
#include "src/sampler/sampler_resumed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/linux/clocks/clock.h"
#include "src/sampler/wanted.h"
#include "unwind/lua/package_path.h"

struct resumed {
	const struct sampler_options *given;
	struct sampler_options options; /* of the current run */
	const struct sampler_breaks *breaks;
	struct wanted *wanted;
	pid_t *pids;                            /* of wanted processes that are still there */
	struct sampler_result run, before, all; /* the current run; those before; all together */
};

/* The time that the samples stand for, by their clock; in ns. */
static uint64_t clocked_ns(const struct figures *figures)
{
	return figures->rate_reached_hz > 0
		       ? (uint64_t)((double)figures->samples * 1e9 / figures->rate_reached_hz)
		       : 0;
}

static bool knows_rate(const struct figures *figures)
{
	return figures->rate_reached_hz > 0 || figures->samples == 0;
}

static void note_all(struct sampler_noted *noted, const struct sampler_noted *others)
{
	for (size_t i = 0; i < others->count; i++)
		sampler_note(noted, others->at[i].pid, others->at[i].why);
	noted->more += others->more;
}

void sampler_add_results(const struct sampler_result *before, const struct sampler_result *run,
			 struct sampler_result *ret_sum)
{
	struct sampler_result sum = *run;

	if (*before->layout)
		memcpy(sum.layout, before->layout, sizeof(sum.layout));
	memcpy(sum.roots, before->roots, sizeof(sum.roots));
	package_path_join_roots(run->roots, sum.roots, sizeof(sum.roots));
	if (before->begin_ns)
		sum.begin_ns = before->begin_ns;
	sum.saw_luajit |= before->saw_luajit;
	sum.has_attached |= before->has_attached;
	if (*before->other_lua)
		memcpy(sum.other_lua, before->other_lua, sizeof(sum.other_lua));
	if (before->unknown_pid) {
		sum.unknown_pid = before->unknown_pid;
		memcpy(sum.unknown_reason, before->unknown_reason, sizeof(sum.unknown_reason));
	}
	sum.launched |= before->launched;
	if (before->exit_known) {
		sum.exit_known = true;
		sum.exit_status = before->exit_status;
	}
	if (before->left_out) {
		sum.left_out += before->left_out;
		sum.left_out_pid = before->left_out_pid;
		sum.left_out_error = before->left_out_error;
	}
	sum.unsearched += before->unsearched;
	if (before->unsearched)
		sum.unsearched_pid = before->unsearched_pid;
	sum.refused = before->refused;
	note_all(&sum.refused, &run->refused);
	figures_add(&sum.figures, &before->figures);
	figures_set_rate(&sum.figures, knows_rate(&before->figures) && knows_rate(&run->figures)
					       ? clocked_ns(&before->figures) + clocked_ns(&run->figures)
					       : 0);
	*ret_sum = sum;
}

/* Since the first run began; 0 if none has. */
static uint64_t gone_by_ns(const struct resumed *resumed, uint64_t until_ns)
{
	const uint64_t begin_ns = resumed->before.begin_ns ? resumed->before.begin_ns : resumed->run.begin_ns;

	return begin_ns ? until_ns - begin_ns : 0;
}

/* A run that has ended knows how long it took, without opening and closing its targets. */
static void sum_up(struct resumed *resumed)
{
	const struct sampler_result *run = &resumed->run;
	const uint64_t until_ns = run->begin_ns && run->figures.duration_ns
					  ? run->begin_ns + run->figures.duration_ns
					  : clock_now_ns(CLOCK_MONOTONIC);

	sampler_add_results(&resumed->before, run, &resumed->all);
	resumed->all.figures.duration_ns = gone_by_ns(resumed, until_ns);
}

/* take and keep only restore the caller's context, as progress needs another. */
static void take(void *context, const struct sample *sample)
{
	const struct resumed *resumed = context;

	resumed->given->take(resumed->given->context, sample);
}

static void keep(void *context)
{
	const struct resumed *resumed = context;

	resumed->given->keep(resumed->given->context);
}

static bool progress(void *context, const struct figures *so_far)
{
	struct resumed *resumed = context;
	const struct sampler_breaks *breaks = resumed->breaks;

	(void)so_far; /* resumed->run has the figures */
	sum_up(resumed);
	return !breaks->progress || breaks->progress(breaks->context, &resumed->all);
}

static bool begin(struct resumed *resumed, const struct sampler_options *options)
{
	resumed->given = options;
	resumed->options = *options;
	resumed->options.take = take;
	resumed->options.progress = progress;
	if (options->keep)
		resumed->options.keep = keep;
	resumed->options.context = resumed;
	resumed->wanted = wanted_new(options->pids, options->pid_count);
	resumed->pids = calloc(options->pid_count + 1, sizeof(*resumed->pids));
	if (!resumed->wanted || !resumed->pids)
		return false;
	return true;
}

/* Options for the processes still there and the time left. False if nothing is left. */
static bool prepare_again(struct resumed *resumed)
{
	struct sampler_options *options = &resumed->options;
	const uint64_t gone_by = gone_by_ns(resumed, clock_now_ns(CLOCK_MONOTONIC));

	options->tell_refused = NULL; /* it has been told */
	options->pids = resumed->pids;
	options->pid_count = wanted_left(resumed->wanted, resumed->pids);
	options->launched_pid = resumed->before.launched ? resumed->before.pid : 0;
	if (options->duration_ns && gone_by >= resumed->given->duration_ns) {
		resumed->run.end = SAMPLER_DURATION_OVER;
		return false;
	}
	if (options->duration_ns)
		options->duration_ns = resumed->given->duration_ns - gone_by;
	resumed->run.end = SAMPLER_TARGETS_ENDED;
	return options->pid_count || options->launch || options->awaits;
}

void sampler_explain_again(struct sampler_result *run)
{
	if (run->end == SAMPLER_FAILED && run->error != -ESRCH && !run->left_out) {
		run->left_out = 1;
		run->left_out_pid = run->pid;
		run->left_out_error = run->error;
	}
	if (run->end == SAMPLER_FAILED || run->end == SAMPLER_NO_LUAJIT)
		run->end = SAMPLER_TARGETS_ENDED;
}

static void run_until_end(struct resumed *resumed)
{
	sampler_run(&resumed->options, &resumed->run);
	sum_up(resumed);
	while (resumed->all.end == SAMPLER_LET_GO) {
		if (!resumed->breaks->stay_away(resumed->breaks->context)) {
			resumed->all.end = SAMPLER_INTERRUPTED;
			break;
		}
		resumed->before = resumed->all;
		resumed->run = (struct sampler_result){ .pid = resumed->before.pid };
		if (prepare_again(resumed))
			sampler_run(&resumed->options, &resumed->run);
		sampler_explain_again(&resumed->run);
		sum_up(resumed);
	}
}

void sampler_run_resumed(const struct sampler_options *options, const struct sampler_breaks *breaks,
			 struct sampler_result *ret_result)
{
	struct resumed *resumed = calloc(1, sizeof(*resumed));

	if (resumed && begin(resumed, options)) {
		resumed->breaks = breaks;
		run_until_end(resumed);
		*ret_result = resumed->all;
	} else {
		*ret_result = (struct sampler_result){ .end = SAMPLER_FAILED, .error = -ENOMEM };
	}
	if (resumed) {
		wanted_free(resumed->wanted);
		free(resumed->pids);
	}
	free(resumed);
}
