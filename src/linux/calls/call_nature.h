/* SPDX-License-Identifier: MIT */
/*
 * call_nature: what a stop does to the system call that a thread is in.
 *
 * A ptrace stop wakes a thread that waits in the kernel. If the call has done nothing
 * yet, it begins again: the kernel restarts it, or interrupted_call.h does. But data
 * already transferred cannot be transferred again, so the call returns a part:
 * recv(MSG_WAITALL), large writes to pipes, sockets and terminals, sendfile() and
 * splice(), recvmmsg(). A connect() that begins again is already under way, and
 * returns EALREADY once its time is over. A close() that lingers stops lingering.
 *
 * This module knows which calls bear a stop: calls that wait for one thing, and check
 * at once whether it has come. It assumes that an unknown call does not bear one.
 */
#ifndef LJSPY_CALL_NATURE_H
#define LJSPY_CALL_NATURE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Does this system call of the process end after a stop as it would end without the stop? */
bool call_bears_stop(pid_t pid, int64_t number, const uint64_t arguments[static 6]);

/*
 * A thread was stopped in this call, asleep or not, and the call returns result. May a
 * stop cut such a call short, or keep it from ever ending, if its file lets it? Reads no file.
 */
bool call_may_be_cut(int64_t number, const uint64_t arguments[static 6], int64_t result);

/*
 * The same, and its file does: it blocks, or there is none. Certain only before the thread goes on: then it
 * may close the file, and have another one by that number.
 */
bool call_was_at_risk(pid_t pid, int64_t number, const uint64_t arguments[static 6], int64_t result);

#endif
