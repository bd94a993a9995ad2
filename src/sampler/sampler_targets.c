/* SPDX-License-Identifier: MIT */
/* The processes that are sampled: looks at them, accounts of their CPU time, and their end. */
#include "src/sampler/sampler_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory/slow_file.h"
#include "src/linux/proc/proc_file.h"
#include "src/linux/proc/process.h"
#include "src/linux/tracer/tracer_files.h"
#include "src/sampler/wanted.h"

/* A target is idle after so long without CPU use. One that runs more often is never left to an alarm. */
static const uint64_t idle_ns = UINT64_C(5) * NS_PER_SECOND;

/* CPU time that no target uses while it is sampled: see keep_clock(). */
static const uint64_t never_ns = UINT64_C(100000000) * NS_PER_SECOND;

enum {
	/* Of a new target, and those that are open for a moment: mappings, states of threads, names. */
	FILES_FOR_LOOKS = 8,
};

static void begin_account(struct sampler *sampler, struct target *target)
{
	target->start_cpu_ns = target->cpu_ns;
	target->accounted_ns = 0;
	pace_begin(&target->pace, sampler->period_ns, target->cpu_ns);
}

/* Some of its time no sample stands for. */
static bool has_unsampled(const struct sampler *sampler, const struct target *target,
			  const struct thread *thread)
{
	const struct thread_record *record = target_find_record(target, thread);

	return record && record->on_cpu.pending_ns > (int64_t)(sampler->period_ns / WORTH_TELLING_ONE_IN);
}

/*
 * Does a thread have work, or one of those with time that no sample stands for? In the middle of an execve()
 * the kernel would tell that after its end only.
 */
static bool has_work(const struct sampler *sampler, const struct target *target, bool unsampled)
{
	for (size_t i = 0; i < threads_count(target->threads) && !target->in_exec; i++) {
		struct thread *thread = threads_at(target->threads, i);

		if ((!unsampled || has_unsampled(sampler, target, thread)) &&
		    thread_is_running(target->threads, thread))
			return true;
	}
	return false;
}

/*
 * Why has the time of no sample no stack? What has work has not been looked at in time. To be asked before
 * the records are closed; a program that has been replaced has none.
 */
static enum lost_reason reason_of_unsampled(const struct sampler *sampler, const struct target *target)
{
	if (target->ended)
		return LOST_TARGET_ENDED;
	return has_work(sampler, target, true) ? LOST_NOT_STOPPED : LOST_ASLEEP;
}

/*
 * CPU time that no sample stands for has no stack. The last look's weight includes
 * what ran between reading the clock and that look.
 */
static void close_accounts(struct sampler *sampler, struct target *target, enum lost_reason reason)
{
	uint64_t total = target->cpu_ns - target->start_cpu_ns;

	if (!target->sampled)
		return;
	if (total < target->accounted_ns)
		total = target->accounted_ns;
	else if (!sampler->options->coroutines && !sampler->options->requests &&
		 total - target->accounted_ns > sampler->period_ns / WORTH_TELLING_ONE_IN)
		target_deliver_lost(sampler, target, 0, total - target->accounted_ns, reason);
	sampler->result->figures.target_cpu_ns += total;
	if (!sampler->options->wall_clock)
		sampler_count_missed(sampler, pace_conclude(&target->pace, target->start_cpu_ns + total));
	begin_account(sampler, target);
}

void target_start_over(struct sampler *sampler, struct target *target, uint64_t now)
{
	target_note_unknown_layout(sampler, target);
	target_note_roots(sampler, target);
	lua_process_close(target->process);
	target->process = NULL;
	target->inspect_interval_ns = INSPECT_AGAIN_NS;
	target_close_records(sampler, target);
	target_forget_records(target);
	target_forget_locks(target);
	if (target->found) {
		close_accounts(sampler, target, reason_of_unsampled(sampler, target));
		target->sampled = false;
	}
	target_inspect(sampler, target, now);
}

static void note_execs(struct sampler *sampler, struct target *target, uint64_t now)
{
	const uint64_t changes = threads_changes(target->threads);

	if (changes == target->seen_changes)
		return;
	target->seen_changes = changes;
	for (size_t i = 0; i < threads_count(target->threads); i++) {
		struct thread *thread = threads_at(target->threads, i);

		if (!thread->tracee->execed)
			continue;
		thread->tracee->execed = false;
		if (thread->tracee->took_id)
			thread_begin_anew(target->threads, thread);
		thread->tracee->took_id = false;
		thread_read_name(target->threads, thread);
		target_start_over(sampler, target, now);
	}
}

void target_note_end(struct sampler *sampler, struct target *target)
{
	const struct tracee *leader = tracer_find(sampler->tracer, target->pid);

	if (leader && leader->exit_known && sampler->result->launched && target->pid == sampler->launch.pid) {
		sampler->result->exit_known = true;
		sampler->result->exit_status = leader->exit_status;
	}
	target->ended = true;
}

/* A process has the name of its first thread. */
static void note_name(struct target *target)
{
	struct thread *first;

	if (threads_count(target->threads) == 0)
		return;
	first = threads_at(target->threads, 0);
	if (first->tid != target->pid)
		return;
	thread_refresh_name(target->threads, first);
	memcpy(target->name, first->name, sizeof(target->name));
}

/* The caller has just read target->cpu_ns. */
static void refresh_threads(struct sampler *sampler, struct target *target, uint64_t now)
{
	target->in_exec = process_is_in_exec_by(target->statm, target->pid);
	if (target->in_exec)
		return;
	if (threads_refresh(target->threads, now, target->cpu_ns) == -ESRCH)
		target_note_end(sampler, target);
	else
		note_execs(sampler, target, now);
	note_name(target);
}

void target_refresh_threads(struct sampler *sampler, struct target *target, uint64_t now)
{
	if (cpu_clock_now(&target->clock, &target->cpu_ns) == 0)
		refresh_threads(sampler, target, now);
	else
		target_note_end(sampler, target);
}

/* xorshift64 */
uint64_t sampler_random(struct sampler *sampler, uint64_t below)
{
	sampler->random ^= sampler->random << 13;
	sampler->random ^= sampler->random >> 7;
	sampler->random ^= sampler->random << 17;
	return sampler->random % below;
}

/* From a look to the next. */
static uint64_t random_gap(struct sampler *sampler, const struct target *target)
{
	return pace_gap(&target->pace, sampler_random(sampler, UINT64_MAX));
}

void sampler_count_missed(struct sampler *sampler, uint64_t count)
{
	sampler->result->figures.missed_ticks += count;
}

void sampler_note_missed(struct sampler *sampler, uint64_t count)
{
	if (sampler->options->wall_clock)
		sampler_count_missed(sampler, count);
}

bool target_program_has_changed(const struct sampler *sampler, struct target *target)
{
	char path[sizeof("/proc//exe") + 3 * sizeof(int)];
	struct stat status;
	bool changed;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)target->pid);
	if (!slow_stat(known_files_errands(sampler->files), path, &status))
		return false;
	changed = status.st_dev != target->program_device || status.st_ino != target->program_inode;
	target->program_device = status.st_dev;
	target->program_inode = status.st_ino;
	return changed;
}

/* Look at what runs now; the caller has just refreshed the threads. */
static void look_at_threads(struct sampler *sampler, struct target *target, uint64_t now)
{
	if (target->ended || target->in_exec)
		return;
	/* The kernel reports no execve() of threads that are not seized. */
	if (now >= target->inspect_at_ns && sampler->options->no_stop &&
	    target_program_has_changed(sampler, target))
		target_start_over(sampler, target, now);
	if (now >= target->inspect_at_ns && !target_inspect(sampler, target, now)) {
		target_note_end(sampler, target);
		return;
	}
	if (target->process && target->sampled)
		target_sample(sampler, target);
}

void target_take_look(struct sampler *sampler, struct target *target, uint64_t now)
{
	target_refresh_threads(sampler, target, now);
	look_at_threads(sampler, target, now);
}

/* Look at it once in a period, on average, from now on. */
static void activate(struct sampler *sampler, struct target *target, uint64_t now)
{
	target->active = true;
	target->idle_since_ns = now;
	target->active_cpu_ns = target->cpu_ns;
	target->due_ns = now + random_gap(sampler, target);
}

static void stop_resting(struct sampler *sampler, struct target *target, uint64_t now)
{
	cpu_clock_stop(&target->clock);
	target->clock_is_kept = false;
	activate(sampler, target, now);
}

void target_wake(struct sampler *sampler, struct target *target)
{
	uint64_t now = clock_now_ns(CLOCK_MONOTONIC);

	if (target->ended || target->active)
		return;
	target->is_late = false;
	target_take_look(sampler, target, now);
	stop_resting(sampler, target, now);
}

void target_check_rest(struct sampler *sampler, struct target *target, uint64_t now)
{
	uint64_t cpu_ns;

	target->check_rest_ns = now + HOUSEKEEPING_NS;
	if (cpu_clock_now(&target->clock, &cpu_ns) == 0 && cpu_ns != target->active_cpu_ns)
		stop_resting(sampler, target, now);
}

/*
 * Wait for the target to run again, except by the wall clock. A user may have as many timers as
 * pending signals (RLIMIT_SIGPENDING); without a timer, looks at the target go on all the time.
 */
static int rest(struct sampler *sampler, struct target *target)
{
	int error = sampler->options->wall_clock
			    ? -EAGAIN
			    : cpu_clock_start(&target->clock, SIGRTMIN, target->index,
					      1 + sampler_random(sampler, sampler->period_ns));

	target->active = false;
	target->check_rest_ns = clock_now_ns(CLOCK_MONOTONIC) + HOUSEKEEPING_NS;
	if (error == -EAGAIN) {
		activate(sampler, target, clock_now_ns(CLOCK_MONOTONIC));
		return 0;
	}
	return error;
}

/* When no thread has run for a while, leave it to the target's CPU clock to report the next. */
static void note_idle(struct sampler *sampler, struct target *target, uint64_t now)
{
	if (now - target->idle_since_ns >= idle_ns && rest(sampler, target))
		target_note_end(sampler, target);
}

/*
 * To tell a process's CPU time, the kernel adds up its threads', unless a timer is set on it: then
 * it keeps the sum. So set one that never expires where there are many threads. Without it all is
 * the same, but for what it costs.
 */
static void keep_clock(struct target *target)
{
	if (target->clock_is_kept || target_has_few_threads(target))
		return;
	target->clock_is_kept = true;
	cpu_clock_start(&target->clock, SIGRTMIN, target->index, never_ns);
}

/* Of looks that were due, only one takes place now; the others count as missed. */
void target_tick(struct sampler *sampler, struct target *target, uint64_t now)
{
	uint64_t not_held = 0;
	bool has_run;

	do {
		target->is_late = target_is_late(sampler, target->due_ns, now);
		target->due_ns += random_gap(sampler, target);
	} while (target->due_ns <= now && ++not_held);
	if (target_is_still(sampler, target, now))
		return;
	keep_clock(target);
	if (cpu_clock_now(&target->clock, &target->cpu_ns) != 0) {
		target_note_end(sampler, target);
		return;
	}
	/*
	 * This clock may lag by a tick of the kernel. So look at a few threads in any case,
	 * and at all of them at once: if a second look needed a first one, ljspy would see
	 * too little of what runs right after a sleep.
	 */
	has_run = target->cpu_ns != target->active_cpu_ns || sampler->options->wall_clock;
	if (!has_run && !target_has_few_threads(target)) {
		note_idle(sampler, target, now);
		return;
	}
	refresh_threads(sampler, target, now);
	look_at_threads(sampler, target, now);
	if (target->ended)
		return;
	if (!has_run && !target_is_up(target)) {
		note_idle(sampler, target, now);
		return;
	}
	sampler_note_missed(sampler, not_held);
	if (!sampler->options->wall_clock)
		sampler_count_missed(sampler, pace_compare(&target->pace, target->cpu_ns));
	/* A look that comes late tells nothing of a target that has used no CPU time. */
	if (has_run || !target->is_late)
		target->idle_since_ns = now;
	target->active_cpu_ns = target->cpu_ns;
}

void target_open_accounts(struct sampler *sampler, struct target *target, uint64_t now)
{
	/* If it has just ended, its next look tells. */
	const bool is_there = cpu_clock_now(&target->clock, &target->cpu_ns) == 0;

	begin_account(sampler, target);
	if (is_there && target->allocations)
		allocations_open(target->allocations, target->cpu_ns);
	for (size_t i = 0; i < threads_count(target->threads); i++) {
		struct thread *thread = threads_at(target->threads, i);
		struct thread_record *record;
		uint64_t used;

		thread_measure(target->threads, thread, &used);
		record = target_record(target, thread, now);
		if (record)
			target_open_record(record, thread, now);
	}
}

int target_attach(struct sampler *sampler, struct target *target)
{
	uint64_t now = clock_now_ns(CLOCK_MONOTONIC), begin;
	/* Without files, ljspy sees threads neither run nor sleep. */
	int error = tracer_leave_files(sampler->tracer, FILES_FOR_LOOKS);

	if (error)
		return error;
	error = cpu_clock_open(target->pid, &target->clock);
	if (error)
		return error;
	target->threads = threads_new(sampler->tracer, target->pid);
	if (!target->threads)
		return -ENOMEM;
	threads_seize_late(target->threads);
	error = cpu_clock_now(&target->clock, &begin);
	if (error)
		return error;
	error = threads_refresh(target->threads, now, begin);
	if (error)
		return error;
	if (sampler->options->alloc) {
		target->allocations = allocations_new(target->pid, target->name, begin);
		if (!target->allocations)
			return -ENOMEM;
	}
	target->attached = target->sampled = sampler->result->has_attached = true;
	target->statm = proc_file_open(target->pid, "statm");
	if (!target->process)
		target_program_has_changed(sampler, target); /* note the program, to compare with */
	note_name(target);
	target_open_accounts(sampler, target, now);
	/* Find out now whether an alarm can be had. */
	error = rest(sampler, target);
	if (!error && !target->active)
		stop_resting(sampler, target, now);
	return error;
}

struct target *target_add(struct sampler *sampler, pid_t pid)
{
	struct target *target = calloc(1, sizeof(*target)), **bigger;
	size_t place = 0;

	if (!target)
		return NULL;
	while (place < sampler->target_count && sampler->targets[place])
		place++;
	if (place == sampler->target_count) {
		bigger = realloc(sampler->targets, (place + 1) * sizeof(struct target *));
		if (!bigger) {
			free(target);
			return NULL;
		}
		sampler->targets = bigger;
		sampler->target_count++;
	}
	target->pid = pid;
	target->is_unreadable = wanted_is_unreadable(sampler->options, pid);
	target->refusal = target->is_unreadable ? -ETIMEDOUT : 0;
	target->cpu = target->statm = -1;
	target->index = (int)place;
	target->inspect_interval_ns = target->haste_ns = INSPECT_AGAIN_NS;
	sampler->targets[place] = target;
	return target;
}

void target_close(struct sampler *sampler, struct target *target)
{
	if (target->statm >= 0)
		close(target->statm);
	if (target->attached) {
		cpu_clock_close(&target->clock);
		target_note_unknown_layout(sampler, target);
		if (sampler->options->launch && target->refusal)
			sampler_note_left_out(sampler->result, target->pid, target->refusal);
	} else {
		target_note_unsampled(sampler, target);
	}
	target_forget_records(target);
	target_note_roots(sampler, target);
	lua_process_close(target->process);
	target_forget_locks(target);
	allocations_free(target->allocations);
	threads_free(target->threads);
	sampler->targets[target->index] = NULL;
	free(target);
}

void target_keep_functions(struct target *target)
{
	const struct thread_record *record;

	if (target->process)
		lua_process_forget_functions(target->process);
	if (target->allocations)
		allocations_keep_functions(target->allocations);
	for (record = target->records; record; record = record->hh.next) {
		for (size_t i = 0; i < record->sleep.frame_count; i++)
			functions_keep(record->sleep.frames[i].function);
		functions_keep(record->sleep.wait);
	}
}

void target_take_last_look(struct sampler *sampler, struct target *target)
{
	if (!target->attached)
		return;
	if (!target->ended)
		target_refresh_threads(sampler, target, clock_now_ns(CLOCK_MONOTONIC));
	if (!target->ended && !target->in_exec && target->process && target->sampled)
		target_sample(sampler, target);
}

void target_close_accounts(struct sampler *sampler, struct target *target)
{
	enum lost_reason reason;

	if (!target->attached)
		return;
	reason = reason_of_unsampled(sampler, target);
	target_close_records(sampler, target);
	close_accounts(sampler, target, reason);
	if (sampler->result->figures.samples == 0 && !target->ended)
		sampler->result->wants_cpu |= has_work(sampler, target, false);
	target_deliver_allocations(sampler, target, true);
}

void targets_drop_ended(struct sampler *sampler)
{
	for (size_t i = 0; i < sampler->target_count; i++) {
		struct target *target = sampler->targets[i];

		if (!target || !target->ended || (target->threads && !threads_are_gone(target->threads)))
			continue;
		target_take_last_look(sampler, target);
		target_close_accounts(sampler, target);
		target_close(sampler, target);
	}
}
