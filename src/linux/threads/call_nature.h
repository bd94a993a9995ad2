/* SPDX-License-Identifier: MIT */
/*
 * call_nature: what a stop does to the system call that a thread is in.
 *
 * Being stopped by ptrace wakes a thread that waits in the kernel. Where nothing of a
 * call has been done yet, it begins again: the kernel sees to that, or
 * interrupted_call.h does. But what has been transferred cannot be transferred again,
 * so the call returns a part: recv(MSG_WAITALL), writes of much to pipes, sockets
 * and terminals, sendfile() and splice(), recvmmsg(). A connect() that begins again is
 * under way already, and will say so (EALREADY) once its time is over. And a
 * close() that lingers does so no longer.
 *
 * Told here is what is known to bear a stop: calls that wait for one thing, and that look
 * at once whether it has come. Whatever is not known counts as if it did not.
 */
#ifndef LJSPY_CALL_NATURE_H
#define LJSPY_CALL_NATURE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Does a call of the process's, with which number and arguments, end as it would have if it is stopped? */
bool call_bears_stop(pid_t pid, int64_t number, const uint64_t arguments[static 6]);

/*
 * A thread was stopped in this call, which it need not have slept in, and which returns that:
 * may a stop cut it short, or keep it from ever coming to its end?
 */
bool call_was_at_risk(pid_t pid, int64_t number, const uint64_t arguments[static 6], int64_t result);

#endif
