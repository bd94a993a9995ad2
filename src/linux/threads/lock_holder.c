/* SPDX-License-Identifier: MIT */
#include "src/linux/threads/lock_holder.h"

#include <linux/futex.h>
#include <stddef.h>

#include "src/linux/proc/process.h"
#include "src/linux/threads/wait.h"

enum { LOCK_CONTENDED = 2 }; /* glibc's lowlevellock.h */

/* Of pthreadP.h. Those with a priority ceiling have it in their lock words, which are no such words then. */
enum mutex_kind {
	MUTEX_TYPE = 3, /* normal, recursive, error-checking, adaptive */
	MUTEX_ROBUST = 0x10,
	MUTEX_PRIO_INHERIT = 0x20,
	MUTEX_SHARED = 0x80,
	MUTEX_ELISION = 0x300, /* allowed, or forbidden */
	MUTEX_KINDS = MUTEX_TYPE | MUTEX_ROBUST | MUTEX_PRIO_INHERIT | MUTEX_SHARED | MUTEX_ELISION,
};

struct mutex {
	uint32_t lock, count, owner, users, kind;
};

/* Its id in its own pid namespace; 0 if it cannot be read. */
static pid_t read_own_tid(pid_t tid)
{
	struct process status;

	return process_read_status(tid, &status) == 0 ? status.own_pid : 0;
}

/* By the id that its own process knows it by. */
static struct thread *find_own(struct threads *threads, pid_t own_tid)
{
	for (size_t i = 0; i < threads_count(threads); i++) {
		struct thread *thread = threads_at(threads, i);

		if (!thread->own_tid)
			thread->own_tid = read_own_tid(thread->tid);
		if (thread->own_tid == own_tid)
			return thread;
	}
	return NULL;
}

/* A mutex in shared memory. Ids tell only within ljspy's own view: there they are the same in and outside. */
static bool is_in_own_view(pid_t pid, pid_t owner)
{
	return read_own_tid(pid) == pid && read_own_tid(owner) == owner;
}

/* While others wait for it. */
static bool is_held(const struct mutex *mutex)
{
	if (mutex->owner == 0 || mutex->owner > FUTEX_TID_MASK || mutex->users == 0 ||
	    (mutex->kind & ~(uint32_t)MUTEX_KINDS))
		return false;
	if (mutex->kind & (MUTEX_ROBUST | MUTEX_PRIO_INHERIT))
		return (mutex->lock & FUTEX_TID_MASK) == mutex->owner;
	return mutex->lock == LOCK_CONTENDED;
}

bool lock_holder_find(struct threads *threads, pid_t pid, struct memory *memory, uint64_t lock,
		      bool is_shared, struct lock_holder *ret_holder)
{
	struct thread *thread;
	struct mutex mutex;
	pid_t owner;

	if (memory_read(memory, lock, &mutex, sizeof(mutex)) != MEMORY_OK || !is_held(&mutex))
		return false;
	owner = (pid_t)mutex.owner;
	thread = find_own(threads, owner);
	*ret_holder = (struct lock_holder){ .thread = thread, .tid = thread ? thread->tid : owner };
	return thread || (is_shared && is_in_own_view(pid, owner));
}

/* Of a poll of one file, its stack would have to tell whether it has work. */
bool lock_holder_awaits_events(struct threads *threads, struct memory *memory,
			       const struct lock_holder *holder)
{
	struct thread_call call = { .known = false };
	enum thread_state state;
	struct wait wait;

	if (!holder->thread)
		return !process_is_in_exec(holder->tid) && thread_call_read(holder->tid, &call) &&
		       wait_call_is_for_events(&call);
	if (thread_read_state(threads, holder->thread, &state, &call) != 0 || state != THREAD_BLOCKED)
		return false;
	wait_read(memory, &call, &wait);
	return wait.kind == WAIT_EVENTS;
}
