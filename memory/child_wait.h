/* SPDX-License-Identifier: MIT */
/*
 * child_wait: waitpid() that a signal does not end.
 *
 * A seccomp filter, or a program that traces ljspy, can make each call fail with EINTR. So ljspy
 * tries it a number of times, and not for ever.
 */
#ifndef LJSPY_CHILD_WAIT_H
#define LJSPY_CHILD_WAIT_H

#include <errno.h>
#include <sys/wait.h>

enum { CHILD_WAIT_TRIES = 100 };

/* As waitpid(); -1 with EINTR only if it is of no use to go on. */
static inline pid_t child_wait(pid_t pid, int *ret_status, int options)
{
	pid_t waited = -1;

	for (int i = 0; i < CHILD_WAIT_TRIES; i++) {
		waited = waitpid(pid, ret_status, options);
		if (waited >= 0 || errno != EINTR)
			break;
	}
	return waited;
}

#endif
