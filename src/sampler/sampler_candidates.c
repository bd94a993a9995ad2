/* SPDX-License-Identifier: MIT */
/* Processes that may run LuaJIT, from when they are found until they are sampled or known to be left out. */
#include "src/sampler/sampler_state.h"

#include <errno.h>
#include <sys/wait.h>

#include "src/linux/proc/process.h"
#include "src/sampler/wanted.h"

enum {
	/*
	 * A process may be met in its execve() by chance, and soon be gone as many are that ljspy never
	 * meets.
	 */
	UNSEARCHED_LOOKS = 2,
	/* One that ended so soon might have come and gone without ljspy meeting it. */
	BRIEF_NS = 100 * 1000 * 1000,
};

static struct target *find_target(const struct sampler *sampler, pid_t pid)
{
	for (size_t i = 0; i < sampler->target_count; i++)
		if (sampler->targets[i] && sampler->targets[i]->pid == pid)
			return sampler->targets[i];
	return NULL;
}

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

bool target_is_candidate(const struct target *target)
{
	return target && !target->ended && !target->attached && !target->is_unreadable;
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
		target_inspect_later(target, now);
	} else {
		account_for_beginning(sampler, target);
		if (target_program_has_changed(sampler, target))
			target_start_over(sampler, target, now);
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
			target_inspect_later(target, now);
			return;
		}
	}
	if (target_program_has_changed(sampler, target)) {
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
	target_program_has_changed(sampler, target);
	if (!target_inspect(sampler, target, now))
		return -ESRCH;
	error = target_attach(sampler, target);
	if (!error && target_program_has_changed(sampler, target))
		target_start_over(sampler, target, now);
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

void sampler_note_left_out(struct sampler_result *result, pid_t pid, int error)
{
	if (result->left_out++ == 0) {
		result->left_out_pid = pid;
		result->left_out_error = error;
	}
}

static void note_unsearched(struct sampler_result *result, pid_t pid, size_t count)
{
	if (count && result->unsearched == 0)
		result->unsearched_pid = pid;
	result->unsearched += count;
}

void targets_note_unread(const struct sampler *sampler)
{
	pid_t pid = 0;
	size_t count;

	if (!sampler->follow || sampler->result->end == SAMPLER_LET_GO)
		return;
	count = follow_unread(sampler->follow, &pid);
	note_unsearched(sampler->result, pid, count);
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

void target_note_unsampled(const struct sampler *sampler, const struct target *target)
{
	struct sampler_result *result = sampler->result;

	if (target->is_unreadable || result->end == SAMPLER_LET_GO ||
	    (result->end == SAMPLER_FAILED && result->error == -ESRCH))
		return;
	if (target->refusal && (target->found || !target->ended))
		sampler_note_left_out(result, target->pid, target->refusal);
	else if (is_named(sampler, target))
		sampler_note_left_out(result, target->pid, target->ended ? -ESRCH : 0);
	else if (is_unsearched(sampler, target))
		note_unsearched(result, target->pid, 1);
}
