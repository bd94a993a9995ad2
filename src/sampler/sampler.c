/* SPDX-License-Identifier: MIT */
/* The loop of the sampler: it looks at the targets, and closes them. */
#include "src/sampler/sampler_state.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/linux/proc/process.h"
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

/* Do what is due for the target, unless it is a candidate. False if nothing is. */
static bool attend(struct sampler *sampler, struct target *target, uint64_t now)
{
	if (!target || target->ended || target_is_candidate(target) ||
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

		if (target_is_candidate(target) && now >= target->inspect_at_ns &&
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

bool sampler_may_go_on(const struct sampler *sampler)
{
	const struct sampler_watch *watch = sampler->options->watch;

	return !watch || watch->may_go_on(watch->context);
}

bool sampler_is_to_end(const struct sampler *sampler)
{
	return clock_now_ns(CLOCK_MONOTONIC) >= sampler->until_ns || interruption_is_pending();
}

/* While ljspy works for long or waits. A search that is cut short tells nothing of the process. */
static bool may_work_on(void *context)
{
	const struct sampler *sampler = context;

	return sampler_may_go_on(sampler) && !(sampler->searches && sampler_is_to_end(sampler));
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
		if (!sampler_may_go_on(sampler))
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
		sampler_fail(sampler, 0, -errno);
		return NULL;
	}
	set_up_tracer(sampler);
	if (sampler_open_targets(sampler)) {
		if (sampler->options->tell_refused)
			targets_note_refused(sampler);
		/* Done after the start of a command, so that it inherits nothing of this. */
		ask_for_short_slices();
		note_binding(sampler, gettid());
		tracer_be_urgent(sampler->tracer);
		if (!sampler->start_ns)
			sampler_begin(sampler);
		sampler->progress_ns = clock_now_ns(CLOCK_MONOTONIC);
		sampler_open_accounts(sampler);
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
		sampler_fail(sampler, 0, error);
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
