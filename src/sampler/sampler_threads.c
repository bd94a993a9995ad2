/* SPDX-License-Identifier: MIT */
/*
 * What the sampler keeps of threads, and which of them can have run since the last look.
 *
 * A process may have many threads that sleep for good. To ask about each of them at each look
 * would cost more than all else. The process's CPU clock, which is the sum over its threads,
 * tells whether others have run than those that run often.
 */
#include "src/sampler/sampler_state.h"

#include <stdlib.h>
#include <string.h>

enum {
	FEW_THREADS = 8,
	/* A thread is lively for so many times the longest time that it was not seen to run. */
	LIVELY_GAPS = 4,
	FIRST_VISITS = 16, /* of a thread of which nothing is known */
};

static const uint64_t LIVELY_LEAST_NS = UINT64_C(5) * NS_PER_SECOND;
static const uint64_t LIVELY_MOST_NS = UINT64_C(600) * NS_PER_SECOND;

bool target_has_few_threads(const struct target *target)
{
	return threads_count(target->threads) <= FEW_THREADS;
}

/*---- Records ----*/

void target_open_record(struct thread_record *record, const struct thread *thread, uint64_t now)
{
	record->on_cpu = record->waiting = record->woken = record->asleep = (struct time_account){ 0 };
	record->measured_ns = record->last_sample_ns = now;
	record->cpu_ns = thread->cpu_ns;
	record->waited_ns = thread->waited_ns;
	record->runs = thread->runs;
	record->ran_at_ns = now;
	record->lively_ns = 0;
}

struct thread_record *target_find_record(const struct target *target, const struct thread *thread)
{
	struct thread_record *record;

	HASH_FIND(hh, target->records, &thread->serial, sizeof(thread->serial), record);
	return record;
}

struct thread_record *target_record(struct target *target, const struct thread *thread, uint64_t now)
{
	struct thread_record *record = target_find_record(target, thread);

	if (record)
		return record;
	record = calloc(1, sizeof(*record));
	if (!record)
		return NULL;
	record->tid = thread->tid;
	record->serial = thread->serial;
	memcpy(record->name, thread->name, sizeof(record->name));
	target_open_record(record, thread, now);
	record->measured_ns = 0;
	/* It may have begun just now. */
	record->lively_ns = LIVELY_LEAST_NS;
	record->visits_left = FIRST_VISITS;
	HASH_ADD(hh, target->records, serial, sizeof(record->serial), record);
	if (!hash_added(&record->hh)) {
		free(record);
		return NULL;
	}
	return record;
}

static void free_record(struct target *target, struct thread_record *record)
{
	HASH_DEL(target->records, record);
	free(record->sleep.frames);
	free(record);
}

void target_forget_records(struct target *target)
{
	struct thread_record *record, *next;

	free(target->known);
	target->known = NULL;
	target->lively_count = target->known_count = 0;
	target->listed_changes = 0;
	HASH_ITER(hh, target->records, record, next) {
		free_record(target, record);
	}
}

struct thread *target_thread_of(const struct target *target, const struct thread_record *record)
{
	struct thread *thread = threads_find(target->threads, record->tid);

	return thread && thread->serial == record->serial ? thread : NULL;
}

/* A process may have any number of threads, one after the other. */
static void drop_ended(struct sampler *sampler, struct target *target)
{
	struct thread_record *record, *next;

	HASH_ITER(hh, target->records, record, next) {
		if (target_thread_of(target, record))
			continue;
		target_close_record(sampler, target, record);
		free_record(target, record);
	}
}

/*
 * The thread has waited for CPUs, and got them, since the last measurement. If it slept then, and ljspy knows
 * where, the first of these waits was there: something had woken it. The others were where it ran, as far as
 * is known. A turn of an event loop begins with the first one, so there it belongs to what runs next.
 */
static void account_waits(const struct sampler *sampler, const struct thread *thread,
			  struct thread_record *record)
{
	const struct sleep *sleep = &record->sleep;
	const int64_t waited_ns = (int64_t)(thread->waited_ns - record->waited_ns);
	const uint64_t count = thread->runs - record->runs;
	int64_t woken_ns = 0;

	if (sleep->known && sleep->runs == record->runs && !sampler->options->turns)
		woken_ns = count > 1 ? waited_ns / (int64_t)count : waited_ns;
	record->woken.pending_ns += woken_ns;
	record->waiting.pending_ns += waited_ns - woken_ns;
}

bool target_measure(const struct sampler *sampler, struct target *target, struct thread *thread,
		    struct thread_record *record)
{
	uint64_t used, now;

	if (thread_measure(target->threads, thread, &used))
		return false;
	now = clock_now_ns(CLOCK_MONOTONIC);
	record->on_cpu.pending_ns += (int64_t)(thread->cpu_ns - record->cpu_ns);
	account_waits(sampler, thread, record);
	if (record->measured_ns)
		record->asleep.pending_ns += (int64_t)(now - record->measured_ns -
						       (thread->cpu_ns - record->cpu_ns) -
						       (thread->waited_ns - record->waited_ns));
	/* The kernel counts a wait for a CPU when it is over. This one began before ljspy knew the thread. */
	if (record->asleep.pending_ns < 0 && !record->asleep.sample_count) {
		record->waiting.pending_ns += record->asleep.pending_ns;
		record->asleep.pending_ns = 0;
	}
	if (thread->cpu_ns != record->cpu_ns) {
		record->has_run = true;
		target_note_run(record, now);
	}
	record->measured_ns = now;
	record->cpu_ns = thread->cpu_ns;
	record->waited_ns = thread->waited_ns;
	record->runs = thread->runs;
	return true;
}

void target_name_thread(struct target *target, struct thread *thread, struct thread_record *record)
{
	thread_refresh_name(target->threads, thread);
	memcpy(record->name, thread->name, sizeof(record->name));
}

/*---- Lively threads ----*/

void target_note_run(struct thread_record *record, uint64_t now)
{
	uint64_t lively_ns = LIVELY_GAPS * (now - record->ran_at_ns);

	if (lively_ns < LIVELY_LEAST_NS)
		lively_ns = LIVELY_LEAST_NS;
	if (lively_ns > LIVELY_MOST_NS)
		lively_ns = LIVELY_MOST_NS;
	if (lively_ns > record->lively_ns)
		record->lively_ns = lively_ns;
	record->ran_at_ns = now;
}

static bool is_lively(const struct thread_record *record, uint64_t now)
{
	return now - record->ran_at_ns < record->lively_ns;
}

/* By the wall clock, threads that sleep have samples, too. */
static bool all_count_as_lively(const struct sampler *sampler, const struct target *target)
{
	return sampler->options->wall_clock || sampler->closing || target_has_few_threads(target);
}

/* Add those threads that are lively, or those that are not. */
static void add_threads(struct target *target, bool lively, bool all, uint64_t now)
{
	for (size_t i = 0; i < threads_count(target->threads); i++) {
		struct thread *thread = threads_at(target->threads, i);
		struct thread_record *record = target_record(target, thread, now);

		if (record && (all || is_lively(record, now)) == lively)
			target->known[target->known_count++] = (struct known_thread){ thread, record };
	}
}

void target_list_threads(struct sampler *sampler, struct target *target)
{
	uint64_t now = clock_now_ns(CLOCK_MONOTONIC), changes = threads_changes(target->threads);
	bool all = all_count_as_lively(sampler, target);
	size_t count = threads_count(target->threads);
	struct known_thread *list;

	if (target->known && changes == target->listed_changes && now < target->list_again_ns &&
	    !sampler->closing)
		return;
	target->lively_count = target->known_count = 0;
	if (changes != target->listed_changes)
		drop_ended(sampler, target);
	list = realloc(target->known, (count + 1) * sizeof(*list));
	if (!list)
		return;
	target->known = list;
	add_threads(target, true, all, now);
	target->lively_count = target->known_count;
	add_threads(target, false, all, now);
	for (size_t i = target->lively_count; i < target->known_count; i++)
		target->known[i].record->presence = PRESENCE_OFF_CPU;
	target->listed_changes = changes;
	target->list_again_ns = now + HOUSEKEEPING_NS;
}

bool target_others_may_have_run(const struct sampler *sampler, const struct target *target)
{
	if (target->lively_count == target->known_count)
		return false;
	return clock_now_ns(CLOCK_MONOTONIC) >= target->all_again_ns || sampler->closing ||
	       threads_unaccounted_ns(target->threads, target->cpu_ns) > target->unseen_ns;
}

void target_note_all_seen(struct target *target)
{
	uint64_t now = clock_now_ns(CLOCK_MONOTONIC);
	uint64_t unseen_ns = threads_unaccounted_ns(target->threads, target->cpu_ns);

	/* A thread that went on while others were measured makes this too little, never too much. */
	if (unseen_ns > target->unseen_ns)
		target->unseen_ns = unseen_ns;
	target->all_again_ns = now + LIVELY_LEAST_NS;
	for (size_t i = target->lively_count; i < target->known_count; i++)
		if (is_lively(target->known[i].record, now))
			target->list_again_ns = 0;
}

/*---- Threads without a CPU ----*/

/* At the last look, it had no CPU, nor had it had one since the look before. */
static bool is_at_rest(const struct thread *thread, const struct thread_record *record)
{
	return record->presence == PRESENCE_OFF_CPU && record->has_rested && thread->runs &&
	       thread->runs == thread->runs_left && thread->tracee->state == TRACEE_RUNNING;
}

static bool may_be_still(const struct sampler *sampler, const struct target *target, uint64_t now)
{
	const struct sampler_options *options = sampler->options;

	if (options->wall_clock || options->coroutines || options->requests || target->in_exec ||
	    now >= target->inspect_at_ns || now >= target->list_again_ns || !target_has_few_threads(target) ||
	    target->listed_changes != threads_changes(target->threads))
		return false;
	for (size_t i = 0; i < target->known_count; i++)
		if (!is_at_rest(target->known[i].thread, target->known[i].record))
			return false;
	return target->known_count > 0;
}

bool target_is_still(const struct sampler *sampler, const struct target *target, uint64_t now)
{
	uint64_t runs;

	if (!may_be_still(sampler, target, now))
		return false;
	for (size_t i = 0; i < target->known_count; i++) {
		struct thread *thread = target->known[i].thread;

		if (thread_count_runs(target->threads, thread, &runs) || runs != thread->runs)
			return false;
	}
	return true;
}
