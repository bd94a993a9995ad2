/* SPDX-License-Identifier: MIT */
/*
 * wait: what a sleeping thread waits for, as its system call tells.
 */
#ifndef LJSPY_WAIT_H
#define LJSPY_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/memory.h"
#include "output/sample/sample.h"
#include "src/linux/threads/threads.h"

enum wait_kind {
	WAIT_UNKNOWN,	/* the call is not known */
	WAIT_EVENTS,	/* whatever comes: epoll_wait, poll of several files, accept, a signal */
	WAIT_TIME,	/* a sleep */
	WAIT_CONDITION,	/* another thread's word: a condition variable, a semaphore */
	WAIT_LOCK,	/* a mutex */
	WAIT_FILE,	/* what is open as fd */
	WAIT_POLL,	/* the same, asked for by poll or select of nothing else */
	WAIT_PATH,	/* a file that has a name only */
	WAIT_CHILD,	/* the end of a process */
	WAIT_OTHER,
};

struct wait {
	enum wait_kind kind;
	const char *call;	/* "read"; NULL if it is not known */
	int fd;			/* WAIT_FILE and WAIT_POLL; else -1 */
	uint64_t path;		/* WAIT_PATH: the address of its name */
};

/* The memory is that of the process; it tells which files poll and select wait for. */
void wait_read(struct memory *memory, const struct thread_call *call, struct wait *ret_wait);

/* What is on the stack of a sleeping thread. */
struct wait_stack {
	bool lua;		/* Lua, or what it has called */
	bool lua_function;	/* other Lua than a main chunk */
	bool request;		/* it is at work on a request: an event loop waits for it */
};

/*
 * THREAD_IDLE if it waits for work: where an event loop or a pool of threads
 * does, or in a sleep that no Lua function has asked for. THREAD_BLOCKED if it
 * is at work and cannot go on, or if that is not known.
 */
enum thread_state wait_state(const struct wait *wait, const struct wait_stack *stack);

#endif
