/* SPDX-License-Identifier: MIT */
/*
 * blocked: does a thread of this process wait in the kernel for what may never come?
 *
 * To read a target's memory or files in /proc, the kernel may have to wait: for a page that another program
 * is to deliver (userfaultfd(2), swap by network), for a lock of that memory, or for the end of an execve().
 * No signal but SIGKILL ends this wait, and the thread's tracees stand still meanwhile. Errands may wait so
 * (memory/errand.h).
 */
#ifndef LJSPY_BLOCKED_H
#define LJSPY_BLOCKED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { BLOCKED_THREADS_MAX = 16 };

/* Threads that waited at the last look, and since when; all zero before the first one. */
struct blocked {
	uint64_t looked_ns;
	unsigned int count;
	struct blocked_thread {
		pid_t tid;
		uint64_t switches; /* how often it had left its CPU */
		uint64_t since_ns;
	} threads[BLOCKED_THREADS_MAX];
};

/*
 * Has a thread waited for seconds? Call this every now and then, at now_ns by CLOCK_MONOTONIC: most calls
 * return false at once. rests: no samples are taken; then it looks once a second, until a thread waits. False
 * also where /proc tells nothing. *ret_pid: the process whose memory, or file in /proc, it waits for; 0 if it
 * waits for something else, or the kernel does not tell.
 */
bool blocked_for_long(struct blocked *blocked, bool rests, uint64_t now_ns, pid_t *ret_pid);

#endif
