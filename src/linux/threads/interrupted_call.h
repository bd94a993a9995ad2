/* SPDX-License-Identifier: MIT */
/*
 * interrupted_call: system calls that a stop has ended, and that go on as if
 * it had not. Those that cannot are not to be stopped: may_stop.h.
 *
 * Being stopped by ptrace wakes a thread from whatever it waits for in the
 * kernel. Most calls begin again by themselves then, with what is left of their
 * time, unless a signal's handler is to run. Some return EINTR in any case
 * (signal(7), "Interruption of system calls"). For those, the thread's result
 * is changed from -EINTR to -ERESTARTNOHAND while it is stopped on its way out
 * of the kernel, so that the kernel decides for them as for the others: begun
 * again if no handler runs, EINTR if one does. The kernel reads the result after
 * the stop and never shows it to the program. The same is done with long reads of random
 * bytes and zeroes, which end with what they have so far: they begin from the start.
 *
 * A call with a limit in time that begins again has it in full. Whoever stops
 * running threads only makes it longer by as much as it takes them to stop; but
 * for recv() on a stream socket of AF_UNIX and accept(): they look for signals
 * first, so where their time is over in just that moment, they wait once more.
 *
 * Of calls whose limit the kernel counts in its ticks, as it does for sockets,
 * some end up to a tick early: whoever is woken in the last one is told that
 * nothing is left of its time (schedule_timeout() in the kernel), and returns
 * EAGAIN as if it had not been woken. Whether it would have in any case cannot be seen.
 */
#ifndef LJSPY_INTERRUPTED_CALL_H
#define LJSPY_INTERRUPTED_CALL_H

#include <stdbool.h>
#include <sys/types.h>

#include "unwind/elf/registers.h"

struct user_regs_struct;

/*
 * Is a thread in a stop of ptrace, with these registers, about to leave a call with
 * EINTR that may begin again, or a long one with a part that it can as well do again?
 * And does the call last for some time at most?
 */
bool interrupted_call_find(pid_t tid, const struct user_regs_struct *regs, bool *ret_limited);

/* Is a thread that is held with these registers on its way out of a call that was ended like that? */
bool interrupted_call_has_ended(const struct registers *registers);

/* Let it begin again when the thread goes on. */
void interrupted_call_restart(pid_t tid);

#endif
