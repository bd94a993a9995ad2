/* SPDX-License-Identifier: MIT */
/* The loop of the sampler: it opens the targets, looks at them and closes them. */
#include "src/sampler/sampler_state.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/linux/proc/process.h"
#include "src/linux/tracer/tracer_files.h"
#include "src/linux/tracer/tracer_looks.h"
#include "src/linux/tracer/tracing_thread.h"
#include "src/program/interruption.h"

enum {
	SLICE_NS = 100 * 1000,    /* the shortest there is */
	FUNCTIONS_FULL = 2 << 20, /* bytes; a program may make new ones all the time */
	AWAIT_LAST_NS = 200 * 1000 * 1000,
	LAST_LOOKS_NS = 2 * 1000 * 1000, /* from one to the next, at most */
	REST_NS = 500 * 1000 * 1000,
	POLL_UNASKED_NS = 50 * 1000 * 1000,
	EXEC_MOMENT_NS = 10 * 1000 * 1000,
};

/*---- The loop ----*/

static void take_late(struct sampler *sampler)
{
	if (!tracer_has_held_late(sampler->tracer))
		return;
	for (size_t i = 0; i < sampler->target_count; i++)
		if (sampler->targets[i] && sampler->targets[i]->attached)
			target_take_late(sampler, sampler->targets[i]);
}

/* A thread must not be held while ljspy works on other targets: that may take a while. */
static void take_late_meanwhile(struct sampler *sampler)
{
	if (tracer_awaits_stop(sampler->tracer))
		tracer_take_wakeup(sampler->tracer);
	take_late(sampler);
}

/* Is the process there, and is nothing sampled of it yet? */
static bool is_candidate(const struct target *target)
{
	return target && !target->ended && !target->attached && !target->is_unreadable;
}

/* Do what is due for the target, unless it is a candidate. False if nothing is. */
static bool attend(struct sampler *sampler, struct target *target, uint64_t now)
{
	if (!target || target->ended || is_candidate(target) ||
	    (target->is_unreadable && now < target->inspect_at_ns))
		return false;
	if (target->is_unreadable)
		target_check_unreadable(sampler, target, now);
	else if (!target->sampled && now >= target->inspect_at_ns)
		target_take_look(sampler, target, now);
	else if (target->active && now >= target->due_ns)
		target_tick(sampler, target, now);
	else if (target->sampled && !target->active && now >= target->check_rest_ns)
		target_check_rest(sampler, target, now);
	else
		return false;
	return true;
}

static void tick_all(struct sampler *sampler)
{
	uint64_t now = clock_now_ns(CLOCK_MONOTONIC);

	for (size_t i = 0; i < sampler->target_count; i++) {
		if (!attend(sampler, sampler->targets[i], now))
			continue;
		take_late_meanwhile(sampler);
		now = clock_now_ns(CLOCK_MONOTONIC);
	}
}

/*
 * Search the candidate that has been due for the longest time, and no other: that may take a while. Then
 * looks have as much time for themselves; the first one comes late, and tells nothing.
 */
static void search_next(struct sampler *sampler)
{
	const uint64_t now = clock_now_ns(CLOCK_MONOTONIC);
	struct target *next = NULL;
	uint64_t end_ns;

	if (now < sampler->search_again_ns)
		return;

	for (size_t i = 0; i < sampler->target_count; i++) {
		struct target *target = sampler->targets[i];

		if (is_candidate(target) && now >= target->inspect_at_ns &&
		    (!next || target->inspect_at_ns < next->inspect_at_ns))
			next = target;
	}
	if (!next)
		return;
	target_consider(sampler, next, now);
	end_ns = clock_now_ns(CLOCK_MONOTONIC);
	sampler->search_again_ns = end_ns + (end_ns - now);
}

/* When the next look is due; UINT64_MAX if none is. */
static uint64_t next_due(const struct sampler *sampler)
{
	uint64_t due = sampler->follow ? follow_due(sampler->follow) : UINT64_MAX;

	for (size_t i = 0; i < sampler->target_count; i++) {
		const struct target *target = sampler->targets[i];
		uint64_t next = UINT64_MAX;

		if (!target || target->ended || target->is_unreadable)
			continue;
		if (!target->sampled)
			next = target->inspect_at_ns;
		if (!target->attached && next < sampler->search_again_ns)
			next = sampler->search_again_ns;
		if (target->active && target->due_ns < next)
			next = target->due_ns;
		due = next < due ? next : due;
	}
	return due;
}

/* The CPU to await the next look on; -1: any. */
static int next_cpu(const struct sampler *sampler)
{
	uint64_t due = UINT64_MAX;
	int cpu = -1;

	for (size_t i = 0; i < sampler->target_count; i++) {
		const struct target *target = sampler->targets[i];

		if (!target || target->ended || !target->active || target->due_ns >= due)
			continue;
		due = target->due_ns;
		cpu = target->cpu;
	}
	return cpu;
}

/*
 * Is there nothing left to wait for? A candidate that was found may be
 * anything: wait for it only a moment.
 */
static bool all_ended(const struct sampler *sampler)
{
	for (size_t i = 0; i < sampler->target_count; i++) {
		const struct target *target = sampler->targets[i];

		if (target && !target->ended && !target->is_unreadable &&
		    (target->sampled || !target->found || target->inspect_interval_ns < HOUSEKEEPING_NS))
			return false;
	}
	return true;
}

static void deal_with(struct sampler *sampler, const siginfo_t *info)
{
	int signal = info->si_signo, index = info->si_value.sival_int;

	if (signal == SIGRTMIN) {
		/* The alarm may be of a process that had this place before. */
		if (index >= 0 && (size_t)index < sampler->target_count && sampler->targets[index] &&
		    sampler->targets[index]->attached)
			target_wake(sampler, sampler->targets[index]);
		return;
	}
	if (signal != SIGCHLD)
		sampler->result->end = SAMPLER_INTERRUPTED;
}

/*
 * With many tracees, to ask for reports costs more than a sample. A report comes with SIGCHLD, so ask
 * without one only now and then.
 */
static void poll_tracees(struct sampler *sampler, bool signalled)
{
	uint64_t now = clock_now_ns(CLOCK_MONOTONIC);

	/* The kernel reports nothing of threads that are not seized: look about once a second. */
	bool unseen = sampler->options->no_stop && now >= sampler->progress_ns;

	if (!signalled && !unseen && !tracer_poll_is_due(sampler->tracer) && now < sampler->poll_again_ns)
		return;
	sampler->poll_again_ns = now + POLL_UNASKED_NS;
	if (!tracer_poll(sampler->tracer) && !unseen)
		return;
	for (size_t i = 0; i < sampler->target_count; i++) {
		struct target *target = sampler->targets[i];

		if (target && target->attached && !target->ended)
			target_refresh_threads(sampler, target, now);
	}
}

static bool may_go_on(void *context)
{
	const struct sampler *sampler = context;
	const struct sampler_watch *watch = sampler->options->watch;

	return !watch || watch->may_go_on(watch->context);
}

/* Is it time to end the recording, or has a signal come that is to end it? The loop takes the signal. */
static bool is_to_end(const struct sampler *sampler)
{
	return clock_now_ns(CLOCK_MONOTONIC) >= sampler->until_ns || interruption_is_pending();
}

/* While ljspy works for long or waits. A search that is cut short tells nothing of the process. */
static bool may_work_on(void *context)
{
	const struct sampler *sampler = context;

	return may_go_on(context) && !(sampler->searches && is_to_end(sampler));
}

/* Report whether the sampler waits for long because no target runs. */
static void tell_rest(const struct sampler *sampler, uint64_t wait_ns)
{
	const struct sampler_watch *watch = sampler->options->watch;
	bool rests = wait_ns >= REST_NS;

	for (size_t i = 0; i < sampler->target_count; i++)
		if (sampler->targets[i] && sampler->targets[i]->active)
			rests = false;
	if (watch)
		watch->rests(watch->context, rests, wait_ns);
}

/* Drop functions that nothing refers to; they are named anew when they are seen again. */
static void drop_functions(struct sampler *sampler)
{
	const struct sampler_options *options = sampler->options;

	if (!options->keep || functions_size(options->functions) < FUNCTIONS_FULL)
		return;
	for (size_t i = 0; i < sampler->target_count; i++)
		if (sampler->targets[i])
			target_keep_functions(sampler->targets[i]);
	options->keep(options->context);
	functions_drop_others(options->functions);
	sampler->wait_name_bytes = 0;
}

/* False if the recording is to end. */
static bool progress(struct sampler *sampler, uint64_t now)
{
	if (now < sampler->progress_ns)
		return true;
	sampler->progress_ns = now + NS_PER_SECOND;
	drop_functions(sampler);
	return !sampler->options->progress ||
	       sampler->options->progress(sampler->options->context, &sampler->result->figures);
}

/* Is there work that takes its time, and need not be urgent? */
static bool housekeeping_is_due(const struct sampler *sampler, uint64_t now)
{
	return now >= sampler->progress_ns || (sampler->follow && now >= follow_due(sampler->follow));
}

static void fill_signals(sigset_t *signals)
{
	sigemptyset(signals);
	sigaddset(signals, SIGRTMIN);
	sigaddset(signals, SIGCHLD);
	sigaddset(signals, SIGINT);
	sigaddset(signals, SIGTERM);
	sigaddset(signals, SIGHUP);
	sigaddset(signals, SIGQUIT);
}

/* How long may the loop wait for a signal? */
static uint64_t time_to_wait(struct sampler *sampler, uint64_t now)
{
	const uint64_t due = next_due(sampler);
	uint64_t wait_ns = HOUSEKEEPING_NS;

	if (tracer_poll_is_due(sampler->tracer) || due <= now)
		return 0;
	if (sampler->until_ns - now < wait_ns)
		wait_ns = sampler->until_ns - now;
	return due - now < wait_ns ? due - now : wait_ns;
}

static void loop(struct sampler *sampler)
{
	sigset_t wanted;

	fill_signals(&wanted);
	sampler->result->end = SAMPLER_DURATION_OVER;
	for (;;) {
		const uint64_t now = clock_now_ns(CLOCK_MONOTONIC);
		struct timespec timeout;
		uint64_t wait_ns;
		siginfo_t info;
		int signal;

		if (now >= sampler->until_ns)
			return;
		if (housekeeping_is_due(sampler, now))
			tracer_take_time(sampler->tracer);
		if (sampler->follow &&
		    (now >= follow_due(sampler->follow) || (!sampler->options->awaits && all_ended(sampler))))
			follow_search(sampler->follow, now, targets_take_found, sampler);
		targets_drop_ended(sampler);
		if (!sampler->options->awaits && all_ended(sampler)) {
			sampler->result->end = SAMPLER_TARGETS_ENDED;
			return;
		}
		if (!progress(sampler, now)) {
			sampler->result->end = SAMPLER_TOLD_TO_END;
			return;
		}
		wait_ns = time_to_wait(sampler, now);
		timeout = (struct timespec){ .tv_sec = (time_t)(wait_ns / NS_PER_SECOND),
					     .tv_nsec = (long)(wait_ns % NS_PER_SECOND) };
		tell_rest(sampler, wait_ns);
		/*
		 * Also without a look: a thread that gets a signal stops, and waits until ljspy lets it go
		 * on.
		 */
		tracer_await_look(sampler->tracer, wait_ns ? next_cpu(sampler) : -1);
		signal = own_turn_wait(tracer_turn(sampler->tracer), &wanted, &info, &timeout);
		if (signal > 0)
			deal_with(sampler, &info);
		else if (errno == EAGAIN)
			tracer_note_quiet(sampler->tracer, now);
		if (!may_go_on(sampler))
			sampler->result->end = SAMPLER_LET_GO;
		if (sampler->result->end == SAMPLER_INTERRUPTED || sampler->result->end == SAMPLER_LET_GO)
			return;
		poll_tracees(sampler, signal > 0);
		take_late(sampler);
		tick_all(sampler);
		take_late(sampler);
		search_next(sampler);
		take_late(sampler);
	}
}

/* Does a thread wait for a CPU, with its sample due once it has one? */
static bool awaits_sample(const struct sampler *sampler)
{
	for (size_t i = 0; i < sampler->target_count; i++) {
		const struct target *target = sampler->targets[i];

		for (size_t j = 0; target && target->attached && j < threads_count(target->threads); j++)
			if (threads_at(target->threads, j)->tracee->state == TRACEE_AWAITED)
				return true;
	}
	return false;
}

/* Look at all targets. True if a thread waits for a CPU, and so could not be looked at. */
static bool look_at_all(struct sampler *sampler)
{
	bool wants_look = false;

	for (size_t i = 0; i < sampler->target_count; i++) {
		if (!sampler->targets[i])
			continue;
		sampler->targets[i]->wants_look = false;
		target_take_last_look(sampler, sampler->targets[i]);
		wants_look |= sampler->targets[i]->wants_look;
		take_late_meanwhile(sampler);
	}
	return wants_look;
}

/* Sleep at most ns; then deal with what tracees have reported. */
static void await_tracees(struct sampler *sampler, uint64_t ns)
{
	const struct timespec time = { .tv_nsec = (long)ns };
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	own_turn_wait(tracer_turn(sampler->tracer), &child, NULL, &time);
	poll_tracees(sampler, true);
	take_late(sampler);
}

/*
 * Look at all that runs a last time. Where CPUs are scarce, a runnable thread most
 * likely waits for one; its time since its last sample has no other stack.
 */
static void take_last_looks(struct sampler *sampler)
{
	uint64_t now = clock_now_ns(CLOCK_MONOTONIC), end = now + AWAIT_LAST_NS;

	sampler->closing = true;
	tracer_end_look(sampler->tracer);
	if (sampler->result->end == SAMPLER_LET_GO)
		return;
	while (look_at_all(sampler) && now < end) {
		await_tracees(sampler, sampler_random(sampler, LAST_LOOKS_NS));
		now = clock_now_ns(CLOCK_MONOTONIC);
	}
	sampler->last_chance = true;
	look_at_all(sampler);
	end = now + AWAIT_LAST_NS;
	while (now < end && awaits_sample(sampler)) {
		await_tracees(sampler, end - now);
		now = clock_now_ns(CLOCK_MONOTONIC);
	}
}

static bool is_stopped(const struct target *target)
{
	struct thread *first = threads_find(target->threads, target->pid);
	enum thread_state state;

	return first && thread_read_state(target->threads, first, &state, NULL) == 0 && first->is_job_stopped;
}

/* Once they have no tracer, stopped threads run until they have stopped again: look before that. */
static void note_stopped(struct sampler *sampler)
{
	for (size_t i = 0; i < sampler->target_count; i++) {
		struct target *target = sampler->targets[i];

		if (target && target->attached && !target->in_exec)
			target->is_stopped = is_stopped(target);
	}
}

void sampler_note(struct sampler_noted *noted, pid_t pid, int why)
{
	if (noted->count == NOTED_MAX)
		noted->more++;
	else
		noted->at[noted->count++] = (struct sampler_note){ pid, why };
}

/* Of what keeps targets from running, signals are seen while they have a tracer, all else without one. */
static void note_halted(struct sampler *sampler)
{
	for (size_t i = 0; i < sampler->target_count; i++) {
		const struct target *target = sampler->targets[i];
		enum process_halt why = HALT_NONE;

		if (!target || !target->attached || target->ended || target->in_exec)
			continue;
		if (target->is_stopped && !sampler->options->no_stop)
			why = HALT_SIGNAL;
		else
			why = process_halt(target->pid);
		if (why != HALT_NONE)
			sampler_note(&sampler->result->halted, target->pid, (int)why);
	}
}

static bool fail(struct sampler *sampler, pid_t pid, int error)
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

static void begin(struct sampler *sampler)
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

	return error ? fail(sampler, pid, error) : true;
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
	return sampler->options->subprocesses || fail(sampler, result->pid, -ESRCH);
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
		return fail(sampler, 0, error);
	raise_file_limit(sampler); /* not the command's */
	if (!open_target(sampler, sampler->launch.pid)) {
		launch_cancel(&sampler->launch);
		return false;
	}
	/* Its samples, too, begin with its start. */
	begin(sampler);
	error = launch_go(&sampler->launch, sampler->tracer);
	if (error) {
		sampler->result->begin_ns = 0;
		return fail(sampler, sampler->launch.pid, error);
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
		if (is_to_end(sampler))
			return end_before_beginning(sampler);
		if (!may_go_on(sampler)) {
			sampler->result->end = SAMPLER_LET_GO;
			return false;
		}
		if (clock_now_ns(CLOCK_MONOTONIC) - begin_ns >= most_ns)
			return fail(sampler, pid, -ETIMEDOUT);
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
	if (is_to_end(sampler))
		return end_before_beginning(sampler);
	target->refusal = error;
	return fail(sampler, target->pid, error);
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
			return fail(sampler, 0, -ENOMEM);
		if (is_to_end(sampler))
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
		return fail(sampler, 0, -ENOMEM);
	for (size_t i = 0; i < options->pid_count && !error; i++)
		error = follow_add(sampler->follow, options->pids[i]);
	return error ? fail(sampler, 0, error) : true;
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
			return fail(sampler, target->pid, target->refusal);
	}
	if (unreadable)
		return fail(sampler, unreadable, -ETIMEDOUT);
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
	for (size_t i = 0; i < sampler->target_count && !sampler->result->has_attached && !is_to_end(sampler);
	     i++)
		if (sampler->targets[i]->found && is_candidate(sampler->targets[i]))
			target_consider(sampler, sampler->targets[i], clock_now_ns(CLOCK_MONOTONIC));
}

static bool open_targets(struct sampler *sampler)
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
	       (is_to_end(sampler) ? end_before_beginning(sampler) : explain_no_work(sampler));
}

/*
 * Processes that were there already ran on while ljspy got to know them: begin
 * their accounts now. Those of a command that ljspy started begin with its start.
 */
static void open_accounts(struct sampler *sampler)
{
	if (sampler->options->launch && !sampler->options->launched_pid)
		return;
	for (size_t i = 0; i < sampler->target_count; i++) {
		struct target *target = sampler->targets[i];

		if (target && target->attached)
			target_open_accounts(sampler, target, sampler->start_ns);
		else if (is_candidate(target))
			target_begin_candidate(target);
	}
}

/*
 * Get a CPU when a look is due, also where the target has it: a thread that
 * asks for short slices may begin one early. Without it, ljspy would hardly ever
 * see what a target does in the first milliseconds after a sleep. Linux before
 * 6.12 has no slices, glibc no struct for it (sched_setattr(2)).
 */
static void ask_for_short_slices(void)
{
	const struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime_ns, deadline_ns, period_ns;
	} attributes = {
		.size = sizeof(attributes),
		.policy = SCHED_OTHER,
		.nice = getpriority(PRIO_PROCESS, 0),
		.runtime_ns = SLICE_NS,
	};

	if (sched_getscheduler(0) == SCHED_OTHER)
		syscall(SYS_sched_setattr, 0, &attributes, 0);
}

static void set_up_tracer(struct sampler *sampler)
{
	const struct sampler_options *options = sampler->options;

	if (options->no_stop)
		tracer_stay_away(sampler->tracer);
	if (options->allow_attach)
		tracer_allow_attach(sampler->tracer);
	tracer_count_holds(sampler->tracer, &sampler->result->figures.pause_ns);
	sampler->patience = (struct patience){ sampler->tracer, may_work_on, sampler };
	patience_begin(&sampler->patience, sampler->files);
}

static void note_binding(const struct sampler *sampler, pid_t tid)
{
	const struct sampler_watch *watch = sampler->options->watch;

	if (watch && watch->binds)
		watch->binds(watch->context, tid);
}

/* All that needs the targets. This thread ends as soon as it can; the caller's does the rest. */
static void *trace(void *context)
{
	struct sampler *sampler = context;

	sampler->tracer = tracer_new();
	if (!sampler->tracer) {
		fail(sampler, 0, -errno);
		return NULL;
	}
	set_up_tracer(sampler);
	if (open_targets(sampler)) {
		if (sampler->options->tell_refused)
			targets_note_refused(sampler);
		/* Done after the start of a command, so that it inherits nothing of this. */
		ask_for_short_slices();
		note_binding(sampler, gettid());
		tracer_be_urgent(sampler->tracer);
		if (!sampler->start_ns)
			begin(sampler);
		sampler->progress_ns = clock_now_ns(CLOCK_MONOTONIC);
		open_accounts(sampler);
		loop(sampler);
		take_last_looks(sampler);
		note_stopped(sampler);
		sampler->end_ns = clock_now_ns(CLOCK_MONOTONIC);
	}
	tracer_let_go(sampler->tracer);
	note_binding(sampler, 0);
	patience_end(sampler->files);
	return NULL;
}

static void run(struct sampler *sampler)
{
	int error = sampler->files ? tracing_thread_run(trace, sampler) : -ENOMEM;

	if (error)
		fail(sampler, 0, error);
	if (sampler->end_ns)
		note_halted(sampler);
}

static void close_sampler(struct sampler *sampler)
{
	struct figures *figures = &sampler->result->figures;

	for (size_t i = 0; i < sampler->target_count && sampler->end_ns; i++)
		if (sampler->targets[i])
			target_close_accounts(sampler, sampler->targets[i]);
	figures->duration_ns = sampler->end_ns ? sampler->end_ns - sampler->start_ns : 0;
	figures->rate_asked_hz = sampler->options->rate_hz;
	figures->lost_cpu_unknown = sampler->options->alloc;
	if (!sampler->options->alloc) /* a look at an allocation is a sample, most looks are none */
		figures_set_rate(figures,
				 sampler->options->wall_clock ? sampler->wall_ns : figures->target_cpu_ns);
	for (size_t i = 0; i < sampler->target_count; i++)
		if (sampler->targets[i])
			target_close(sampler, sampler->targets[i]);
	free(sampler->targets);
	targets_note_unread(sampler);
	follow_free(sampler->follow);
	tracer_free(sampler->tracer);
	if (sampler->files) /* ljspy's cost includes reading symbols */
		figures->self_cpu_ns += symbol_files_cpu_ns(known_files_symbols(sampler->files));
	known_files_free(sampler->files);
}

void sampler_run(const struct sampler_options *options, struct sampler_result *ret_result)
{
	uint64_t self_start_ns = clock_now_ns(CLOCK_PROCESS_CPUTIME_ID);
	struct sampler sampler = {
		.options = options,
		.result = ret_result,
		.files = known_files_new(),
		.until_ns = UINT64_MAX,
		.period_ns = NS_PER_SECOND / options->rate_hz,
		.random = self_start_ns | 1,
	};

	*ret_result = (struct sampler_result){ 0 };
	run(&sampler);
	close_sampler(&sampler);
	ret_result->figures.self_cpu_ns += clock_now_ns(CLOCK_PROCESS_CPUTIME_ID) - self_start_ns;
}
