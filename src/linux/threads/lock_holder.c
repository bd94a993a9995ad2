/* SPDX-License-Identifier: MIT */
#include "src/linux/threads/lock_holder.h"

#include <linux/futex.h>
#include <stddef.h>

#include "src/linux/proc/process.h"
#include "src/linux/threads/wait.h"

enum { LOCK_CONTENDED = 2 }; /* glibc's lowlevellock.h */

struct mutex {
	uint32_t lock, count, owner;
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
static bool read_call_elsewhere(pid_t pid, pid_t owner, struct thread_call *ret_call)
{
	return read_own_tid(pid) == pid && read_own_tid(owner) == owner && thread_call_read(owner, ret_call);
}

static bool read_owner(struct memory *memory, uint64_t lock, pid_t *ret_owner)
{
	struct mutex mutex;

	if (memory_read(memory, lock, &mutex, sizeof(mutex)) != MEMORY_OK || mutex.owner == 0 ||
	    mutex.owner > FUTEX_TID_MASK)
		return false;
	*ret_owner = (pid_t)mutex.owner;
	return mutex.lock == LOCK_CONTENDED || (mutex.lock & FUTEX_TID_MASK) == mutex.owner;
}

bool lock_holder_awaits_events(struct threads *threads, pid_t pid, struct memory *memory, uint64_t lock)
{
	struct thread_call call = { .known = false };
	enum thread_state state;
	struct thread *holder;
	pid_t owner;

	if (!read_owner(memory, lock, &owner))
		return false;
	holder = find_own(threads, owner);
	if (holder ? thread_read_state(threads, holder, &state, &call) != 0
		   : !read_call_elsewhere(pid, owner, &call))
		return false;
	return wait_call_is_for_events(&call);
}
