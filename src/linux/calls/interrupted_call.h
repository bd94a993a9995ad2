/* SPDX-License-Identifier: MIT */
/*
 * interrupted_call: restart system calls that a stop has ended, so that they go on as
 * if it had not. ljspy does not stop calls that cannot restart: may_stop.h.
 *
 * A ptrace stop wakes a thread from any wait in the kernel. Most calls then begin
 * again by themselves, with the rest of their time, unless a signal handler is to run.
 * Some return EINTR in any case (signal(7), "Interruption of system calls"). For
 * those, ljspy changes the thread's result from -EINTR to -ERESTARTNOHAND while the
 * thread is stopped on its way out of the kernel. Then the kernel decides as for other
 * calls: it restarts the call if no handler runs, and returns EINTR if one does. The
 * kernel reads the result after the stop and never shows it to the program. On arm64 the
 * kernel has decided before the stop, so ljspy does there what the kernel does for other
 * calls. Long reads of random bytes and zeroes end with what they have so far: ljspy
 * starts these over.
 *
 * A call with a time limit that begins again has its full time again. If ljspy only
 * stops running threads, the call takes longer by the time that the stop takes. The
 * exceptions are recv() on a stream socket of AF_UNIX and accept(): they look for
 * signals first, so if their time ends at just that moment, they wait once more.
 *
 * Some calls whose limit the kernel counts in its ticks, as it does for sockets, end
 * up to a tick early: a thread woken in the last tick has no time left
 * (schedule_timeout() in the kernel), and returns EAGAIN as if it had not been woken.
 * ljspy cannot see whether it would have done so anyway.
 */
#ifndef LJSPY_INTERRUPTED_CALL_H
#define LJSPY_INTERRUPTED_CALL_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/user.h>

#include "unwind/elf/registers.h"

/* A call that begins again when its thread goes on. */
struct restarted_call {
	bool is_set;
	struct user_regs_struct ended; /* the registers with which it would have ended */
};

/*
 * Is a thread in a ptrace stop, with these registers, about to leave a call that can
 * restart: with EINTR, or a long call with a part that it can just as well do again?
 * If so, *ret_limited tells whether the call may have a time limit.
 */
bool interrupted_call_find(pid_t tid, const struct user_regs_struct *regs, bool *ret_limited);

/* Is a thread that is held with these registers on its way out of a call that was interrupted? */
bool interrupted_call_has_ended(const struct registers *registers);

/* May a thread that is or was held with these registers be at the end of a call? */
bool interrupted_call_may_be(pid_t tid, const struct registers *registers);

/*
 * Restart the call when the thread goes on. The thread is in a ptrace stop with these
 * registers. Keep *ret_call until the next stop.
 */
void interrupted_call_restart(pid_t tid, const struct user_regs_struct *regs,
			      struct restarted_call *ret_call);

/*
 * The thread, in a ptrace stop, gets a signal next. If it has a handler, and the last stop
 * has restarted a call that has not begun yet, the call ends with EINTR after all.
 */
void interrupted_call_deliver(pid_t tid, int signal, struct restarted_call *call);

#endif
