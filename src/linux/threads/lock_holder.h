/* SPDX-License-Identifier: MIT */
/*
 * lock_holder: whether who holds a lock waits for events.
 *
 * Threads of some servers (uWSGI's, for example) wait in turn: one holds a mutex and waits
 * for events, the others wait for the mutex. What keeps these waiting is the lack of work.
 *
 * The holder is what glibc's mutexes say (struct __pthread_mutex_s, sysdeps/nptl/bits/struct_mutex.h):
 * a lock word, a count and the thread id of the owner, 32 bits each. The word is 2 while others wait;
 * in a robust or priority-inheriting mutex it has the owner's id, too. musl's mutexes have no owner,
 * or another form, and other locks have none either.
 */
#ifndef LJSPY_LOCK_HOLDER_H
#define LJSPY_LOCK_HOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "memory/memory.h"
#include "src/linux/threads/threads.h"

/*
 * A thread of the process pid waits for the lock at this address. Is it a mutex that says who holds it, and
 * does that thread, of this or another process, wait for events? False also if that cannot be known.
 */
bool lock_holder_awaits_events(struct threads *threads, pid_t pid, struct memory *memory, uint64_t lock);

#endif
