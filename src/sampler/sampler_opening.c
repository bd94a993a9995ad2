/* SPDX-License-Identifier: MIT */
/* What a recording begins with: the processes that are there, or a command that ljspy starts. */
#include "src/sampler/sampler_state.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/linux/proc/process.h"
#include "src/linux/tracer/tracer_files.h"

enum {
	EXEC_MOMENT_NS = 10 * 1000 * 1000,
};

bool sampler_fail(struct sampler *sampler, pid_t pid, int error)
{
	sampler->result->end = SAMPLER_FAILED;
	sampler->result->pid = pid;
	sampler->result->error = error;
	return false;
}

static bool end_before_beginning(struct sampler *sampler)
{
	sampler->result->end = SAMPLER_INTERRUPTED;
	return false;
}

/* Half of the files that ljspy may open are for threads, the rest for everything else. */
static void raise_file_limit(struct sampler *sampler)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	if (limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	tracer_allow_files(sampler->tracer, limit.rlim_cur / 2);
}

/* As /proc tells when a process started. */
static uint64_t ticks_now(void)
{
	return clock_now_ns(CLOCK_BOOTTIME) / (NS_PER_SECOND / (uint64_t)sysconf(_SC_CLK_TCK));
}

void sampler_begin(struct sampler *sampler)
{
	sampler->start_ticks = ticks_now();
	sampler->start_ns = sampler->result->begin_ns = clock_now_ns(CLOCK_MONOTONIC);
	if (sampler->options->duration_ns)
		sampler->until_ns = sampler->start_ns + sampler->options->duration_ns;
}

/* ljspy becomes the parent of the command's orphans, which tells them from others. */
static int launch(struct sampler *sampler)
{
	const struct sampler_options *options = sampler->options;

	if (options->subprocesses)
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	return launch_start(options->launch, options->launch_mask, options->launch_group, &sampler->launch);
}

/* Attach to a process that must be sampled; failure ends the run. */
static bool open_target(struct sampler *sampler, pid_t pid)
{
	struct target *target = target_add(sampler, pid);
	int error = target ? target_attach(sampler, target) : -ENOMEM;

	return error ? sampler_fail(sampler, pid, error) : true;
}

/* The command of an earlier run; it may have ended while ljspy was away. */
static bool open_launched(struct sampler *sampler)
{
	struct sampler_result *result = sampler->result;
	pid_t ended;

	sampler->launch.pid = sampler->options->launched_pid;
	result->launched = true;
	result->pid = sampler->launch.pid;
	raise_file_limit(sampler);
	ended = waitpid(result->pid, &result->exit_status, WNOHANG);
	if (ended == 0)
		return open_target(sampler, sampler->launch.pid);
	result->exit_known = ended == result->pid; /* else the earlier run knows it */
	return sampler->options->subprocesses || sampler_fail(sampler, result->pid, -ESRCH);
}

/*
 * A parent in another group of the same session ties the command's group to that session. When the
 * command ends and was the only such tie, the kernel sends SIGHUP to all of the group if any process
 * of it is stopped (Linux 6.1, kernel/exit.c, kill_orphaned_pgrp()). A parent in another session is
 * no tie.
 */
static void leave_session(void)
{
	setsid();
}

static bool open_command(struct sampler *sampler)
{
	int error = launch(sampler);

	if (error)
		return sampler_fail(sampler, 0, error);
	raise_file_limit(sampler); /* not the command's */
	if (!open_target(sampler, sampler->launch.pid)) {
		launch_cancel(&sampler->launch);
		return false;
	}
	/* Its samples, too, begin with its start. */
	sampler_begin(sampler);
	error = launch_go(&sampler->launch, sampler->tracer);
	if (error) {
		sampler->result->begin_ns = 0;
		return sampler_fail(sampler, sampler->launch.pid, error);
	}
	if (sampler->options->launch_group)
		leave_session();
	sampler->result->launched = true;
	sampler->result->pid = sampler->launch.pid;
	return true;
}

/*
 * Only the program that comes then tells what there is to sample. Before, what is read of the process may
 * never come, so false ends the run.
 */
static bool await_exec(struct sampler *sampler, pid_t pid)
{
	const struct timespec moment = { .tv_nsec = EXEC_MOMENT_NS };
	const uint64_t begin_ns = clock_now_ns(CLOCK_MONOTONIC);
	const uint64_t most_ns = sampler->options->duration_ns ? sampler->options->duration_ns : UINT64_MAX;

	while (process_is_in_exec(pid)) {
		if (sampler_is_to_end(sampler))
			return end_before_beginning(sampler);
		if (!sampler_may_go_on(sampler)) {
			sampler->result->end = SAMPLER_LET_GO;
			return false;
		}
		if (clock_now_ns(CLOCK_MONOTONIC) - begin_ns >= most_ns)
			return sampler_fail(sampler, pid, -ETIMEDOUT);
		nanosleep(&moment, NULL);
	}
	return true;
}

/* It must be sampled. */
static bool open_only(struct sampler *sampler, struct target *target)
{
	int error;

	if (sampler->options->awaits_exec && !await_exec(sampler, target->pid))
		return false;
	error = target_open(sampler, target, clock_now_ns(CLOCK_MONOTONIC));
	if (!error)
		return true;
	if (sampler_is_to_end(sampler))
		return end_before_beginning(sampler);
	target->refusal = error;
	return sampler_fail(sampler, target->pid, error);
}

/* Of several, those that cannot be sampled, or not yet, are left out: the samples of the others count. */
static bool open_processes(struct sampler *sampler)
{
	const struct sampler_options *options = sampler->options;
	const bool is_only = options->pid_count == 1 && !sampler->follow;

	raise_file_limit(sampler);
	for (size_t i = 0; i < options->pid_count; i++) {
		struct target *target = target_add(sampler, options->pids[i]);

		if (!target)
			return sampler_fail(sampler, 0, -ENOMEM);
		if (sampler_is_to_end(sampler))
			return end_before_beginning(sampler);
		if (!is_only)
			target_consider(sampler, target, clock_now_ns(CLOCK_MONOTONIC));
		else if (!open_only(sampler, target))
			return false;
	}
	return true;
}

static bool open_follow(struct sampler *sampler)
{
	const struct sampler_options *options = sampler->options;
	const struct errands_waiter waiter = patience_waiter(&sampler->patience);
	struct follow_options follow_options = {
		.descendants = options->subprocesses,
		.orphans = options->subprocesses && options->launch,
		.pattern = options->pattern,
		.own_pids = options->own_pids,
		.own_pid_count = options->own_pid_count,
		.waiter = &waiter,
	};
	int error = 0;

	if (!options->subprocesses && !options->pattern)
		return true;
	sampler->follow = follow_new(&follow_options);
	if (!sampler->follow)
		return sampler_fail(sampler, 0, -ENOMEM);
	for (size_t i = 0; i < options->pid_count && !error; i++)
		error = follow_add(sampler->follow, options->pids[i]);
	return error ? sampler_fail(sampler, 0, error) : true;
}

/*
 * Can anything be sampled? Of processes that the user has named, one has to be attached by now; others may be
 * found later.
 */
static bool has_work(const struct sampler *sampler)
{
	const struct sampler_result *result = sampler->result;

	return result->saw_luajit && (sampler->follow || result->has_attached);
}

/* No process that the user asked for can be sampled: name one that refuses, if there is one. */
static bool explain_no_work(struct sampler *sampler)
{
	pid_t unreadable = 0;

	for (size_t i = 0; i < sampler->target_count; i++) {
		const struct target *target = sampler->targets[i];

		if (target && target->is_unreadable)
			unreadable = target->pid;
		else if (target && target->refusal)
			return sampler_fail(sampler, target->pid, target->refusal);
	}
	if (unreadable)
		return sampler_fail(sampler, unreadable, -ETIMEDOUT);
	sampler->result->end = SAMPLER_NO_LUAJIT;
	sampler->result->pid = sampler->options->pids[0];
	return false;
}

/*
 * Search what was found until one can be sampled, and leave the rest to the loop: what that one runs
 * meanwhile would have no samples.
 */
static void search_until_attached(struct sampler *sampler)
{
	for (size_t i = 0;
	     i < sampler->target_count && !sampler->result->has_attached && !sampler_is_to_end(sampler); i++)
		if (sampler->targets[i]->found && target_is_candidate(sampler->targets[i]))
			target_consider(sampler, sampler->targets[i], clock_now_ns(CLOCK_MONOTONIC));
}

bool sampler_open_targets(struct sampler *sampler)
{
	const struct sampler_options *options = sampler->options;
	uint64_t now;

	if (!open_follow(sampler) || !(options->launched_pid ? open_launched(sampler)
				       : options->launch     ? open_command(sampler)
							     : open_processes(sampler)))
		return false;
	now = clock_now_ns(CLOCK_MONOTONIC);
	if (sampler->follow) {
		if (options->launch)
			follow_add(sampler->follow, sampler->launch.pid);
		follow_search(sampler->follow, now, targets_take_found, sampler);
		search_until_attached(sampler);
	}
	for (size_t i = 0; i < sampler->target_count; i++) {
		struct target *target = sampler->targets[i];

		if (target->attached && !target->process && !target_inspect(sampler, target, now))
			target_note_end(sampler, target);
	}
	/* What was not searched is unknown: it is no reason that nothing can be sampled. */
	return options->launch || options->awaits || has_work(sampler) ||
	       (sampler_is_to_end(sampler) ? end_before_beginning(sampler) : explain_no_work(sampler));
}

void sampler_open_accounts(struct sampler *sampler)
{
	if (sampler->options->launch && !sampler->options->launched_pid)
		return;
	for (size_t i = 0; i < sampler->target_count; i++) {
		struct target *target = sampler->targets[i];

		if (target && target->attached)
			target_open_accounts(sampler, target, sampler->start_ns);
		else if (target_is_candidate(target))
			target_begin_candidate(target);
	}
}
