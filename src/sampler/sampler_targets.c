/* SPDX-License-Identifier: MIT */
/* The processes that are sampled, as they come and go. */
#include "src/sampler/sampler_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory/slow_file.h"
#include "src/linux/proc/proc_file.h"
#include "src/linux/proc/process.h"
#include "src/linux/tracer/tracer_files.h"
#include "src/linux/tracer/tracer_looks.h"
#include "src/sampler/wanted.h"

/* A target is idle after so long without CPU use. One that runs more often is never left to an alarm. */
static const uint64_t idle_ns = UINT64_C(5) * NS_PER_SECOND;

/* CPU time that no target uses while it is sampled: see keep_clock(). */
static const uint64_t never_ns = UINT64_C(100000000) * NS_PER_SECOND;

enum {
	INSPECT_AGAIN_NS = 20 * 1000 * 1000, /* first interval, for a VM that has not started yet */
	/*
	 * A process may be met in its execve() by chance, and soon be gone as many are that ljspy never
	 * meets.
	 */
	UNSEARCHED_LOOKS = 2,
	/* For files, in a search: looks at other targets wait meanwhile. */
	SEARCH_WAITS_NS = 500 * 1000 * 1000,
	/* Of a new target, and those that are open for a moment: mappings, states of threads, names. */
	FILES_FOR_LOOKS = 8,
	/* One that ended so soon might have come and gone without ljspy meeting it. */
	BRIEF_NS = 100 * 1000 * 1000,
};

/*---- Targets ----*/

static void begin_account(struct sampler *sampler, struct target *target)
{
	target->start_cpu_ns = target->cpu_ns;
	target->accounted_ns = 0;
	pace_begin(&target->pace, sampler->period_ns, target->cpu_ns);
}

/*
 * A process that was found is sampled while it runs LuaJIT; the accounts, those of its threads, too, leave
 * out what it uses otherwise.
 */
static void note_luajit(struct sampler *sampler, struct target *target, uint64_t now)
{
	bool runs_luajit = lua_process_module_count(target->process) > 0;

	sampler->result->saw_luajit |= runs_luajit;
	if (!target->attached || target->sampled || !runs_luajit)
		return;
	target->sampled = true;
	target_open_accounts(sampler, target, now);
}

/* What the user means to profile may run another Lua: search what has just been loaded. */
static void note_other_lua(struct sampler *sampler, const struct target *target)
{
	struct sampler_result *result = sampler->result;

	if (!sampler->options->launch || result->saw_luajit || *result->other_lua || target->refusal ||
	    lua_process_lacks_luajit(target->process) == -ENODATA ||
	    !lua_process_has_new_modules(target->process))
		return;
	if (!sampler->start_ns)
		known_files_allow_ns(sampler->files, SEARCH_WAITS_NS);
	puc_lua_find(target->pid, known_files_errands(sampler->files), result->other_lua);
}

/* Note the first VM with an unknown layout, once no more will be found out about it. */
static void note_unknown_layout(struct sampler *sampler, const struct target *target)
{
	struct sampler_result *result = sampler->result;
	const char *verdict = target->process ? lua_process_unknown_layout(target->process) : NULL;

	if (!verdict || result->unknown_pid)
		return;
	result->unknown_pid = target->pid;
	snprintf(result->unknown_reason, sizeof(result->unknown_reason), "%s", verdict);
}

/* LuaJIT may not have started, or ljspy may not inspect yet: try again, less and less often. */
static void inspect_later(struct target *target, uint64_t now)
{
	target->inspect_at_ns = now + target->inspect_interval_ns;
	if (target->inspect_interval_ns < HOUSEKEEPING_NS)
		target->inspect_interval_ns *= 2;
}

void target_hasten_inspection(struct target *target, uint64_t now)
{
	target->is_hasty = true;
	if (now + target->haste_ns < target->inspect_at_ns)
		target->inspect_at_ns = now + target->haste_ns;
}

/* Code may stay unknown for good: inspect with less haste each time. */
static void note_haste(struct target *target)
{
	if (!target->is_hasty || lua_process_has_new_modules(target->process))
		target->haste_ns = INSPECT_AGAIN_NS;
	else if (target->haste_ns < HOUSEKEEPING_NS)
		target->haste_ns *= 2;
	target->is_hasty = false;
}

static void note_roots(const struct sampler *sampler, const struct target *target)
{
	if (target->process)
		lua_process_add_roots(target->process, sampler->result->roots,
				      sizeof(sampler->result->roots));
}

static int open_process(struct sampler *sampler, struct target *target)
{
	int error = lua_process_open(target->pid, sampler->options->functions, sampler->files,
				     &sampler->options->namer, &target->process);

	if (!error)
		lua_process_give_layout(target->process, sampler->options->layout);
	return error;
}

static bool inspect(struct sampler *sampler, struct target *target, uint64_t now)
{
	bool is_unsearched;
	int error = target->process ? 0 : open_process(sampler, target);

	if (!error)
		error = lua_process_refresh(target->process, false);
	if (error == -ESRCH)
		return false;
	if (!target->process)
		return true;
	/* Many that are found have nothing to do with LuaJIT, and are large: that is no fault. */
	is_unsearched = !error && lua_process_lacks_luajit(target->process) == -ENODATA;
	/* It ended meanwhile: nothing refuses, there is just no memory to read any more. */
	if ((error || is_unsearched) && process_thread_with_memory(target->pid) == 0)
		return false;
	target->unsearched_looks = is_unsearched ? target->unsearched_looks + 1 : 0;
	target->is_searched |= !error && !is_unsearched;
	if (is_unsearched && !target->found)
		error = -ENODATA;
	target->refusal = error;
	note_haste(target);
	note_luajit(sampler, target, now);
	note_roots(sampler, target);
	note_other_lua(sampler, target);
	if (lua_process_global_count(target->process) && !*sampler->result->layout)
		memcpy(sampler->result->layout, lua_process_global(target->process, 0)->vm->layout.name,
		       LAYOUT_NAME_MAX);
	if (lua_process_global_count(target->process) || lua_process_needs_confirming(target->process))
		target->inspect_at_ns = now + HOUSEKEEPING_NS;
	return true;
}

/*
 * A signal that is to end the recording ends a search. So do, once there is something to sample, files that
 * are slow to read: the next search asks again for what this one has not got.
 */
bool target_inspect(struct sampler *sampler, struct target *target, uint64_t now)
{
	bool is_there;

	/* This takes a while, and may start a process. */
	tracer_take_time(sampler->tracer);
	inspect_later(target, now);
	sampler->searches = true;
	if (sampler->start_ns)
		known_files_allow_ns(sampler->files, SEARCH_WAITS_NS);
	is_there = inspect(sampler, target, now);
	known_files_allow_ns(sampler->files, UINT64_MAX);
	sampler->searches = false;
	return is_there;
}

/*
 * CPU time that no sample stands for has no stack. The last look's weight includes
 * what ran between reading the clock and that look.
 */
static void close_accounts(struct sampler *sampler, struct target *target)
{
	uint64_t total = target->cpu_ns - target->start_cpu_ns;

	if (!target->sampled)
		return;
	if (total < target->accounted_ns)
		total = target->accounted_ns;
	else if (!sampler->options->coroutines && !sampler->options->requests &&
		 total - target->accounted_ns > sampler->period_ns / WORTH_TELLING_ONE_IN)
		target_deliver_lost(sampler, target, 0, total - target->accounted_ns,
				    target->ended ? LOST_TARGET_ENDED : LOST_ASLEEP);
	sampler->result->figures.target_cpu_ns += total;
	if (!sampler->options->wall_clock)
		sampler_count_missed(sampler, pace_conclude(&target->pace, target->start_cpu_ns + total));
	begin_account(sampler, target);
}

/* The process runs another program now: forget all that is known of it. */
static void start_over(struct sampler *sampler, struct target *target, uint64_t now)
{
	note_unknown_layout(sampler, target);
	note_roots(sampler, target);
	lua_process_close(target->process);
	target->process = NULL;
	target->inspect_interval_ns = INSPECT_AGAIN_NS;
	target_close_records(sampler, target);
	target_forget_records(target);
	if (target->found) {
		close_accounts(sampler, target);
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
		start_over(sampler, target, now);
	}
}

void target_note_end(struct sampler *sampler, struct target *target)
{
	const struct tracee *leader = tracer_find(sampler->tracer, target->pid);

	if (leader && leader->exit_known && sampler->result->launched) {
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

/* Does the process run another program than at the last call? */
static bool program_has_changed(const struct sampler *sampler, struct target *target)
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
	if (now >= target->inspect_at_ns && sampler->options->no_stop && program_has_changed(sampler, target))
		start_over(sampler, target, now);
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
		program_has_changed(sampler, target); /* note the program, to compare with */
	note_name(target);
	target_open_accounts(sampler, target, now);
	/* Find out now whether an alarm can be had. */
	error = rest(sampler, target);
	if (!error && !target->active)
		stop_resting(sampler, target, now);
	return error;
}

static struct target *find_target(const struct sampler *sampler, pid_t pid)
{
	for (size_t i = 0; i < sampler->target_count; i++)
		if (sampler->targets[i] && sampler->targets[i]->pid == pid)
			return sampler->targets[i];
	return NULL;
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

/*---- Candidates ----*/

/* ljspy is the parent of the command's orphans: reap one that has ended. */
static void reap_orphan(const struct sampler *sampler, const struct target *target)
{
	if (sampler->options->launch && target->found)
		waitpid(target->pid, NULL, WNOHANG);
}

/*
 * From how much CPU time on may what it used have been LuaJIT's? A new process may have been LuaJIT from its
 * start on; one that was there before has no part in the recording until that begins, or until ljspy last saw
 * no LuaJIT.
 */
static uint64_t unseen_from(const struct target *target)
{
	if (target->is_new)
		return 0;
	return target->searched_cpu_ns > target->begin_cpu_ns ? target->searched_cpu_ns
							      : target->begin_cpu_ns;
}

/* It used CPU time before ljspy attached: deliver it as lost. */
static void account_for_beginning(struct sampler *sampler, struct target *target)
{
	const uint64_t from_ns = unseen_from(target);
	/* A clock that went back is another process's, which has just got the id; at 0, it has ended. */
	const uint64_t unseen_ns = target->start_cpu_ns - (target->start_cpu_ns < from_ns ? 0 : from_ns);

	if (!sampler->start_ns || unseen_ns <= sampler->period_ns / WORTH_TELLING_ONE_IN)
		return;
	sampler->result->figures.target_cpu_ns += unseen_ns;
	target_deliver_lost(sampler, target, 0, unseen_ns, LOST_NOT_ATTACHED);
	target->accounted_ns = 0; /* accounts begin now */
}

/* The CPU time of a candidate. 0 or a negative errno. */
static int read_cpu_time(const struct target *target, uint64_t *ret_ns)
{
	struct cpu_clock clock;
	int error = cpu_clock_open(target->pid, &clock);

	return error ? error : cpu_clock_now(&clock, ret_ns);
}

void target_begin_candidate(struct target *target)
{
	if (read_cpu_time(target, &target->begin_cpu_ns))
		target->begin_cpu_ns = 0;
}

/* Those of a command that ljspy started are part of the recording from their start on. */
static void begin_found(const struct sampler *sampler, struct target *target)
{
	const uint64_t start = wanted_start(target->pid);

	target->is_new = (sampler->options->launch && !sampler->options->launched_pid) ||
			 (start >= sampler->start_ticks && start != UINT64_MAX);
	if (!target->is_new)
		target_begin_candidate(target);
}

/* Did the last search of the candidate come to its end? LuaJIT is not in it then. */
static bool was_searched(const struct target *target)
{
	return target->process && !target->refusal && !target->unsearched_looks;
}

/* If its clock went back, the candidate's id is another process's by now. */
static void note_other_process(struct target *target, uint64_t cpu_ns)
{
	if (cpu_ns >= target->begin_cpu_ns && cpu_ns >= target->searched_cpu_ns)
		return;
	if (cpu_ns < target->begin_cpu_ns) {
		target->is_new = true;
		target->begin_cpu_ns = 0;
	}
	target->searched_cpu_ns = 0;
	target->is_searched = false;
	target->unsearched_looks = 0;
	target->inspect_interval_ns = INSPECT_AGAIN_NS;
	lua_process_close(target->process);
	target->process = NULL;
}

/* Without having run, it can neither have loaded LuaJIT nor have run another program. */
static bool is_as_searched(const struct target *target, uint64_t cpu_ns)
{
	return was_searched(target) && cpu_ns == target->searched_cpu_ns;
}

/* It is in an execve(): only the program that comes then tells whether it runs LuaJIT. */
static void consider_after_exec(struct target *target, uint64_t now)
{
	target->unsearched_looks++;
	target->refusal = target->found ? 0 : -ENODATA;
	target->inspect_at_ns = now + INSPECT_AGAIN_NS;
}

/* LuaJIT is in the candidate: attach, or come back later. */
static void take_up(struct sampler *sampler, struct target *target, uint64_t now)
{
	int error = target_attach(sampler, target);

	if (error == -ESRCH) {
		target->ended = true;
	} else if (error) {
		threads_free(target->threads);
		target->threads = NULL;
		if (error == -EMFILE) { /* its files are wanted elsewhere */
			lua_process_close(target->process);
			target->process = NULL;
		}
		if (error == -EBUSY) {
			consider_after_exec(target, now);
			return;
		}
		target->refusal = error;
		inspect_later(target, now);
	} else {
		account_for_beginning(sampler, target);
		if (program_has_changed(sampler, target))
			start_over(sampler, target, now);
	}
}

void target_consider(struct sampler *sampler, struct target *target, uint64_t now)
{
	uint64_t cpu_ns = 0;

	if (target->is_unreadable)
		return;
	if (process_is_in_exec(target->pid)) {
		consider_after_exec(target, now);
		return;
	}
	if (read_cpu_time(target, &cpu_ns) == 0) {
		note_other_process(target, cpu_ns);
		if (is_as_searched(target, cpu_ns)) {
			inspect_later(target, now);
			return;
		}
	}
	if (program_has_changed(sampler, target)) {
		lua_process_close(target->process);
		target->process = NULL;
	}
	if (!target_inspect(sampler, target, now)) {
		reap_orphan(sampler, target);
		target->ended = true;
		return;
	}
	if (target->process && lua_process_module_count(target->process) > 0)
		take_up(sampler, target, now);
	else if (was_searched(target))
		target->searched_cpu_ns = cpu_ns;
}

/* Another process may get its id. */
void target_check_unreadable(const struct sampler *sampler, struct target *target, uint64_t now)
{
	target->ended = !wanted_is_unreadable(sampler->options, target->pid);
	target->inspect_at_ns = now + HOUSEKEEPING_NS;
}

int target_open(struct sampler *sampler, struct target *target, uint64_t now)
{
	int error;

	if (target->is_unreadable)
		return -ETIMEDOUT;
	program_has_changed(sampler, target);
	if (!target_inspect(sampler, target, now))
		return -ESRCH;
	error = target_attach(sampler, target);
	if (!error && program_has_changed(sampler, target))
		start_over(sampler, target, now);
	return error;
}

void targets_take_found(void *context, pid_t pid)
{
	struct sampler *sampler = context;
	struct target *target = find_target(sampler, pid);

	if (target && !target->ended)
		return;
	target = target_add(sampler, pid);
	if (!target)
		return;
	target->found = true;
	/* Those found earlier have waited for longer to be searched. */
	target->found_ns = target->inspect_at_ns = clock_now_ns(CLOCK_MONOTONIC);
	if (sampler->start_ns)
		begin_found(sampler, target);
}

static void note_left_out(struct sampler_result *result, pid_t pid, int error)
{
	if (result->left_out++ == 0) {
		result->left_out_pid = pid;
		result->left_out_error = error;
	}
}

static void note_unsearched(struct sampler_result *result, pid_t pid)
{
	if (result->unsearched++ == 0)
		result->unsearched_pid = pid;
}

/* The user has named this one; others may be anything. */
static bool is_named(const struct sampler *sampler, const struct target *target)
{
	return !target->found && !sampler->follow && !sampler->options->launch;
}

/*
 * The user has named it, or a process to begin from: of those, the master of an nginx has no LuaJIT, which is
 * no fault.
 */
static bool is_missed(const struct sampler *sampler, const struct target *target)
{
	return is_named(sampler, target) || (target->refusal && !target->found && !sampler->options->launch);
}

void targets_note_refused(struct sampler *sampler)
{
	for (size_t i = 0; i < sampler->target_count; i++) {
		const struct target *target = sampler->targets[i];

		if (!target->attached && !target->is_unreadable && is_missed(sampler, target))
			sampler_note(&sampler->result->refused, target->pid,
				     target->ended ? -ESRCH : target->refusal);
	}
}

/*
 * Has it not come out whether LuaJIT is in the candidate? One that has not run has no part in the recording,
 * but by the wall clock, which counts sleeps, too.
 */
static bool is_unsearched(const struct sampler *sampler, const struct target *target)
{
	const bool is_brief = target->is_new && clock_now_ns(CLOCK_MONOTONIC) - target->found_ns < BRIEF_NS;
	uint64_t cpu_ns;

	if (target->unsearched_looks >= UNSEARCHED_LOOKS)
		return true;
	if (target->is_searched && !target->unsearched_looks)
		return false;
	if (target->ended || read_cpu_time(target, &cpu_ns))
		return !target->unsearched_looks && !is_brief;
	return sampler->options->wall_clock || cpu_ns > target->begin_cpu_ns;
}

/*
 * A target that was never sampled; the front counts those that are unreadable. After a break, the next run
 * tells of those that are there yet; where the only one has ended, that is why the run failed.
 */
static void note_unsampled(const struct sampler *sampler, const struct target *target)
{
	struct sampler_result *result = sampler->result;

	if (target->is_unreadable || result->end == SAMPLER_LET_GO ||
	    (result->end == SAMPLER_FAILED && result->error == -ESRCH))
		return;
	if (target->refusal && (target->found || !target->ended))
		note_left_out(result, target->pid, target->refusal);
	else if (is_named(sampler, target))
		note_left_out(result, target->pid, target->ended ? -ESRCH : 0);
	else if (is_unsearched(sampler, target))
		note_unsearched(result, target->pid);
}

void target_close(struct sampler *sampler, struct target *target)
{
	if (target->statm >= 0)
		close(target->statm);
	if (target->attached) {
		cpu_clock_close(&target->clock);
		note_unknown_layout(sampler, target);
		if (sampler->options->launch && target->refusal)
			note_left_out(sampler->result, target->pid, target->refusal);
	} else {
		note_unsampled(sampler, target);
	}
	target_forget_records(target);
	note_roots(sampler, target);
	lua_process_close(target->process);
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
	if (!target->attached)
		return;
	target_close_records(sampler, target);
	close_accounts(sampler, target);
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
