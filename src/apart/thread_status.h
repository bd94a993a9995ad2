/* SPDX-License-Identifier: MIT */
/*
 * thread_status: what the kernel says of a thread of this process that does not come on.
 */
#ifndef LJSPY_THREAD_STATUS_H
#define LJSPY_THREAD_STATUS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { THREAD_STATUS_SIZE = 1 << 16 }; /* it lists all groups of the user before the switches */

/*
 * Is the thread in this state, a letter as in /proc/PID/status (proc(5))? Then that file's text is in text,
 * and *ret_switches is how often it had left its CPU. False if it is in another state, or that is unknown.
 */
bool thread_status_is(pid_t tid, char state, char text[static THREAD_STATUS_SIZE], uint64_t *ret_switches);

#endif
