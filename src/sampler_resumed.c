#include "src/sampler_resumed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/clock.h"
#include "src/target/process.h"

/* A process that was asked for. */
struct wanted {
	pid_t pid;
	uint64_t start_ticks;	/* with the pid it never recurs; 0 if not known */
};

struct sampler_resumed {
	struct sampler_options given, options;	/* the latter of the run at hand */
	sampler_so_far *so_far;
	struct wanted *wanted;
	pid_t *pids;				/* of those that are still there */
	bool has_run;
	uint64_t start_ns;			/* of the first run */
	struct sampler_result run, before, all;	/* the one at hand; those before; together */
};

static uint64_t start_of(pid_t pid)
{
	struct process process;
	uint64_t ticks = 0;

	if (process_read(pid, &process))
		return 0;
	if (!process_is_zombie(&process))
		ticks = process.start_ticks;
	process_clear(&process);
	return ticks;
}

/* The time that the samples stand for, by their clock. */
static uint64_t clocked_ns(const struct figures *figures)
{
	return figures->rate_reached_hz > 0
		? (uint64_t)((double)figures->samples * 1e9 / figures->rate_reached_hz) : 0;
}

/* Of two runs, one after the other. */
static void add_results(const struct sampler_result *before, const struct sampler_result *run,
			struct sampler_result *ret_sum)
{
	struct sampler_result sum = *run;

	if (*before->layout)
		memcpy(sum.layout, before->layout, sizeof(sum.layout));
	sum.saw_luajit |= before->saw_luajit;
	if (before->unknown_pid) {
		sum.unknown_pid = before->unknown_pid;
		memcpy(sum.unknown_reason, before->unknown_reason, sizeof(sum.unknown_reason));
	}
	sum.launched |= before->launched;
	if (before->left_out) {
		sum.left_out += before->left_out;
		sum.left_out_pid = before->left_out_pid;
		sum.left_out_error = before->left_out_error;
	}
	figures_add(&sum.figures, &before->figures);
	figures_set_rate(&sum.figures, clocked_ns(&before->figures) + clocked_ns(&run->figures));
	*ret_sum = sum;
}

static void sum_up(struct sampler_resumed *resumed)
{
	struct figures *figures = &resumed->all.figures;

	add_results(&resumed->before, &resumed->run, &resumed->all);
	figures->duration_ns = clock_now_ns(CLOCK_MONOTONIC) - resumed->start_ns;
}

/* The callbacks of the caller get the caller's context. */
static void take(void *context, const struct sample *sample)
{
	const struct sampler_resumed *resumed = context;

	resumed->given.take(resumed->given.context, sample);
}

static bool may_go_on(void *context)
{
	const struct sampler_resumed *resumed = context;

	return !resumed->given.may_go_on || resumed->given.may_go_on(resumed->given.context);
}

static void rests(void *context, bool rests)
{
	const struct sampler_resumed *resumed = context;

	if (resumed->given.rests)
		resumed->given.rests(resumed->given.context, rests);
}

static bool pulse(void *context, const struct figures *so_far)
{
	struct sampler_resumed *resumed = context;

	(void)so_far;	/* in the result of the run */
	sum_up(resumed);
	return !resumed->so_far || resumed->so_far(resumed->given.context, &resumed->all);
}

struct sampler_resumed *sampler_resumed_new(const struct sampler_options *options, sampler_so_far *so_far)
{
	struct sampler_resumed *resumed = calloc(1, sizeof(*resumed));

	if (!resumed)
		return NULL;
	resumed->given = resumed->options = *options;
	resumed->so_far = so_far;
	resumed->wanted = calloc(options->pid_count + 1, sizeof(*resumed->wanted));
	resumed->pids = calloc(options->pid_count + 1, sizeof(*resumed->pids));
	if (!resumed->wanted || !resumed->pids) {
		sampler_resumed_free(resumed);
		return NULL;
	}
	for (size_t i = 0; i < options->pid_count; i++)
		resumed->wanted[i] = (struct wanted){ options->pids[i], start_of(options->pids[i]) };
	resumed->options.take = take;
	resumed->options.pulse = pulse;
	resumed->options.may_go_on = may_go_on;
	resumed->options.rests = rests;
	resumed->options.context = resumed;
	return resumed;
}

void sampler_resumed_free(struct sampler_resumed *resumed)
{
	if (!resumed)
		return;
	free(resumed->wanted);
	free(resumed->pids);
	free(resumed);
}

/* Those that are still there, and what is left of the time. False if nothing is. */
static bool prepare_again(struct sampler_resumed *resumed)
{
	struct sampler_options *options = &resumed->options;
	uint64_t gone_by = clock_now_ns(CLOCK_MONOTONIC) - resumed->start_ns;
	size_t count = 0;

	for (size_t i = 0; i < resumed->given.pid_count; i++)
		if (start_of(resumed->wanted[i].pid) == resumed->wanted[i].start_ticks)
			resumed->pids[count++] = resumed->wanted[i].pid;
	options->pids = resumed->pids;
	options->pid_count = count;
	options->launched_pid = resumed->before.launched ? resumed->before.pid : 0;
	if (options->duration_ns && gone_by >= resumed->given.duration_ns) {
		resumed->run.end = SAMPLER_DURATION_OVER;
		return false;
	}
	if (options->duration_ns)
		options->duration_ns = resumed->given.duration_ns - gone_by;
	resumed->run.end = SAMPLER_TARGETS_ENDED;
	return count || options->launch;
}

/* What was there at first may have gone, or be another's to trace: the others' samples count. */
static void explain_again(struct sampler_result *run)
{
	if (run->end == SAMPLER_FAILED && run->error != ESRCH) {
		run->left_out++;
		run->left_out_pid = run->pid;
		run->left_out_error = run->error;
	}
	if (run->end == SAMPLER_FAILED || run->end == SAMPLER_NO_LUAJIT)
		run->end = SAMPLER_TARGETS_ENDED;
}

bool sampler_resumed_run(struct sampler_resumed *resumed)
{
	bool again = resumed->has_run;

	if (!again)
		resumed->start_ns = clock_now_ns(CLOCK_MONOTONIC);
	resumed->has_run = true;
	resumed->before = resumed->all;
	resumed->run = (struct sampler_result){ .pid = resumed->before.pid };
	if (!again || prepare_again(resumed))
		sampler_run(&resumed->options, &resumed->run);
	if (again)
		explain_again(&resumed->run);
	sum_up(resumed);
	return resumed->run.end == SAMPLER_LET_GO;
}

const struct sampler_result *sampler_resumed_result(const struct sampler_resumed *resumed)
{
	return &resumed->all;
}
