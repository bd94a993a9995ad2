/* SPDX-License-Identifier: MIT */
/*
 * launch: start the command that ljspy profiles.
 *
 * The child exists before it runs the command, so ljspy can seize it and profile it
 * from its first instruction:
 *
 *	launch_start(), tracer_seize(), launch_go()
 *
 * Its exit status comes with its tracee.
 */
#ifndef LJSPY_LAUNCH_H
#define LJSPY_LAUNCH_H

#include <signal.h>
#include <sys/types.h>

#include "src/linux/tracer/tracer.h"

struct launch {
	pid_t pid;
	int go_fd;    /* the child waits for a byte from here, */
	int error_fd; /* ... and writes here why it could not run the command */
};

/*
 * Fork a child that will run the command, found along PATH, with that signal mask and
 * in that process group, or in ljspy's own if it is 0. It inherits the files that ljspy was
 * started with; all of ljspy's own descriptors must be close-on-exec. 0 or a negative errno.
 */
int launch_start(char *const command[], const sigset_t *mask, pid_t group, struct launch *ret_launch);

/*
 * Let the child, which the tracer has seized, run the command, and wait until it does;
 * the tracee is then marked as execed. 0, or a negative errno of execvp(), or -ESRCH
 * if a signal killed the child before. On an error the child is gone.
 */
int launch_go(struct launch *launch, struct tracer *tracer);

/* Instead of launch_go(): end the child before it has run anything, and reap it. */
void launch_cancel(struct launch *launch);

#endif
