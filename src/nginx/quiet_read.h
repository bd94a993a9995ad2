/* SPDX-License-Identifier: MIT */
/*
 * quiet_read: read a worker of nginx while it sleeps, without stopping it.
 *
 * A worker sleeps most of the time, and what it has in memory does not change while it sleeps. If
 * it runs meanwhile, ljspy reads again, some times.
 */
#ifndef LJSPY_QUIET_READ_H
#define LJSPY_QUIET_READ_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Call read() until the process slept all the while, or some times within about a second. read() begins anew
 * each time; 0 or a negative errno, which ends this. *ret_asleep: did it sleep during the last one?
 */
int quiet_read(pid_t pid, int (*read)(void *context), void *context, bool *ret_asleep);

#endif
