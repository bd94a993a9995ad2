/* SPDX-License-Identifier: MIT */
/* Locks that threads sleep for: is it their turn next, or do they wait for one with work? */
#include "src/sampler/sampler_state.h"

#include <stdlib.h>

#include "src/linux/threads/lock_holder.h"

/* Does it sleep where ljspy has seen it asleep, and is that known? */
static bool sleeps_where_seen(const struct target *target, struct thread *thread,
			      const struct thread_record *record)
{
	uint64_t runs;

	return record->sleep.known && thread_count_runs(target->threads, thread, &runs) == 0 &&
	       runs == record->sleep.runs && !thread_is_running(target->threads, thread);
}

/*
 * What ljspy says of the holder's own sleep counts, if it knows it: its stack may show work. One that
 * waits for a lock itself has no events to wait for.
 */
static bool holder_awaits_events(struct target *target, const struct sleep *waiting)
{
	struct memory *memory = lua_process_memory(target->process);
	const struct thread_record *record = NULL;
	struct lock_holder holder;

	if (!lock_holder_find(target->threads, target->pid, memory, waiting->lock, waiting->lock_is_shared,
			      &holder))
		return false;
	if (holder.thread)
		record = target_record(target, holder.thread, clock_now_ns(CLOCK_MONOTONIC));
	if (record && sleeps_where_seen(target, holder.thread, record))
		return !record->sleep.lock && record->sleep.thread_state == THREAD_IDLE &&
		       record->sleep.awaits_events;
	return lock_holder_awaits_events(target->threads, memory, &holder);
}

/* NULL when memory is short. */
static struct lock_seen *find_lock(struct target *target, uint64_t address)
{
	struct lock_seen *seen;

	HASH_FIND(hh, target->locks_seen, &address, sizeof(address), seen);
	if (seen)
		return seen;
	seen = calloc(1, sizeof(*seen));
	if (!seen)
		return NULL;
	seen->address = address;
	HASH_ADD(hh, target->locks_seen, address, sizeof(seen->address), seen);
	if (!hash_added(&seen->hh)) {
		free(seen);
		return NULL;
	}
	return seen;
}

/*
 * Several threads may wait for the lock. Between two turns nobody holds it, or one whose events have come:
 * one look that finds it so says nothing yet.
 */
static bool lock_is_for_turn(struct target *target, const struct sleep *sleep)
{
	struct lock_seen *seen = find_lock(target, sleep->lock);

	if (!seen)
		return holder_awaits_events(target, sleep);
	if (seen->look == target->looks)
		return seen->is_for_turn;
	seen->is_for_turn = seen->look + 1 == target->looks && seen->awaits_events;
	seen->look = target->looks;
	seen->awaits_events = holder_awaits_events(target, sleep);
	seen->is_for_turn |= seen->awaits_events;
	return seen->is_for_turn;
}

void target_judge_lock(struct target *target, struct sleep *sleep)
{
	if (!sleep->lock)
		return;
	sleep->awaits_events = lock_is_for_turn(target, sleep);
	sleep->thread_state = sleep->awaits_events ? THREAD_IDLE : THREAD_BLOCKED;
}

static void forget_lock(struct target *target, struct lock_seen *seen)
{
	HASH_DEL(target->locks_seen, seen);
	free(seen);
}

void target_forget_old_locks(struct target *target)
{
	struct lock_seen *seen, *next;

	HASH_ITER(hh, target->locks_seen, seen, next) {
		if (seen->look != target->looks)
			forget_lock(target, seen);
	}
}

void target_forget_locks(struct target *target)
{
	struct lock_seen *seen, *next;

	HASH_ITER(hh, target->locks_seen, seen, next) {
		forget_lock(target, seen);
	}
}
