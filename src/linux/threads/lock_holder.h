/* SPDX-License-Identifier: MIT */
/*
 * lock_holder: who holds a lock, and whether that thread waits for events.
 *
 * Threads of some servers (uWSGI's, for example) wait in turn: one holds a mutex and waits
 * for events, the others wait for the mutex. What keeps these waiting is the lack of work.
 *
 * The holder is what glibc's mutexes say (struct __pthread_mutex_s, sysdeps/nptl/bits/struct_mutex.h):
 * a lock word, a count, the thread id of the owner, how many use it, and its kind, 32 bits each. The word is
 * 2 while others wait; in a robust or priority-inheriting mutex it has the owner's id instead. musl's mutexes
 * have no owner, or another form, and other locks have none either: the lock of an arena of malloc(), for
 * example, is 2 as well, and a flag is where a mutex has its owner.
 */
#ifndef LJSPY_LOCK_HOLDER_H
#define LJSPY_LOCK_HOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "memory/memory.h"
#include "src/linux/threads/threads.h"

struct lock_holder {
	struct thread *thread; /* NULL: it is of another process */
	pid_t tid;
};

/*
 * A thread of the process pid waits for the lock at this address; is_shared: other processes may, too.
 * False if it is no mutex that says who holds it, or if that cannot be known.
 */
bool lock_holder_find(struct threads *threads, pid_t pid, struct memory *memory, uint64_t lock,
		      bool is_shared, struct lock_holder *ret_holder);

/*
 * Does it wait for events, by the call that it sleeps in? memory is that of the process that threads is of.
 * False also if that cannot be known.
 */
bool lock_holder_awaits_events(struct threads *threads, struct memory *memory,
			       const struct lock_holder *holder);

#endif
