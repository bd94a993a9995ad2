/* SPDX-License-Identifier: MIT */
/*
 * wait: what a sleeping thread waits for, by its system call.
 */
#ifndef LJSPY_WAIT_H
#define LJSPY_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/memory.h"
#include "output/sample/sample.h"
#include "src/linux/threads/threads.h"

enum wait_kind {
	WAIT_UNKNOWN,   /* the call is unknown */
	WAIT_EVENTS,    /* any event: epoll_wait, poll of several files, accept, a signal */
	WAIT_TIME,      /* a sleep */
	WAIT_CONDITION, /* a signal from another thread: a condition variable, a semaphore */
	WAIT_LOCK,      /* a mutex */
	WAIT_FILE,      /* the file that is open as fd */
	WAIT_POLL,      /* the same, by poll or select of this file only */
	WAIT_PATH,      /* a file that the call names */
	WAIT_CHILD,     /* the end of a process */
	WAIT_OTHER,
};

struct wait {
	enum wait_kind kind;
	const char *call; /* "read"; NULL if unknown */
	int fd;           /* WAIT_FILE and WAIT_POLL; else -1 */
	uint64_t lock;    /* WAIT_LOCK and WAIT_CONDITION: the address of its futex */
	bool is_shared;   /* the futex: other processes may wait for it, too */
	uint64_t path;    /* WAIT_PATH: the address of its name */
};

/* Fill the wait from the call. memory is the process's; it tells which files poll and select wait for. */
void wait_read(struct memory *memory, const struct thread_call *call, struct wait *ret_wait);

/* What is on the stack of a sleeping thread. */
struct wait_stack {
	bool lua;          /* Lua, or code that Lua has called */
	bool lua_function; /* Lua other than a main chunk */
	bool request;      /* it works on a request, while an event loop waits for it */
};

/*
 * THREAD_IDLE if the thread waits for work: as an event loop or a pool of threads does,
 * or in a sleep that no Lua function has asked for. THREAD_BLOCKED if it has work and
 * cannot go on, or if unknown.
 */
enum thread_state wait_state(const struct wait *wait, const struct wait_stack *stack);

/*
 * May an event loop wait like this? Threads of a pool are idle, too, until another thread signals, and
 * programs that work in steps sleep for a time between these.
 */
bool wait_is_for_events(const struct wait *wait);

/* The same of a call alone: does it wait for several files, or for what comes next, whatever memory says? */
bool wait_call_is_for_events(const struct thread_call *call);

#endif
