/* SPDX-License-Identifier: MIT */
/*
 * tracer: holding single threads of a target for a moment, by ptrace.
 *
 * A thread is PTRACE_SEIZEd once, which neither stops nor wakes it, and is
 * stopped with PTRACE_INTERRUPT only when its registers are wanted. Should
 * ljspy die in whatever way, the kernel lets every seized thread run on.
 *
 * Being seized has one cost: each signal for the thread waits until the tracer
 * passes it on. So whoever owns a tracer waits for SIGCHLD and calls
 * tracer_poll() as soon as one comes. And there is no way to let go of a
 * running thread but to stop it, or to end the *thread of ljspy* that seized
 * it. Therefore run the sampling loop in a thread of its own: when it returns,
 * all targets are free, undisturbed, whatever ljspy does next.
 *
 * All functions on a tracer and its tracees are to be called by the one
 * thread that called tracer_new(). SIGCHLD must be blocked in every thread of
 * ljspy and must not be ignored.
 */
#ifndef LJSPY_TRACER_H
#define LJSPY_TRACER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "output/sample/histogram.h"
#include "src/linux/clocks/own_turn.h"
#include "unwind/elf/registers.h"

enum tracee_state {
	TRACEE_RUNNING,		/* or asleep; not stopped by ptrace */
	TRACEE_AWAITED,		/* was told to stop, has not done so in time; resumed when it does */
	TRACEE_HELD,		/* stopped by tracer_stop() until tracer_resume() */
	TRACEE_JOB_STOPPED,	/* stopped by SIGSTOP and its like, not by us */
	TRACEE_GONE,		/* has ended */
};

/* One seized thread; owned by its tracer, valid until tracer_forget(). */
struct tracee {
	pid_t pid;		/* process */
	pid_t tid;
	enum tracee_state state;
	bool hold_late;		/* hold it when it stops after all; set by you while it is TRACEE_AWAITED */
	bool execed;		/* has run another program since this was last cleared (by you) */
	bool exit_known;	/* TRACEE_GONE: exit_status holds what waitpid() told */
	int exit_status;
	/*
	 * When it has stopped last, CLOCK_MONOTONIC: at the latest moment at which it
	 * is known not to have, if ljspy could not see it at once.
	 */
	uint64_t stopped_ns;
	uint64_t resumed_ns;	/* when it was last let go */

	/* The tracer's own. */
	bool wanted;		/* tracer_stop() waits for this thread */
	bool held_in_job_stop;
	uint64_t quiet_ns;	/* when it was asked last and had nothing to report, or was seized */
};

enum { FILES_OPEN_DEFAULT = 512 };

struct tracer;

/* NULL with errno ENOMEM, or EAGAIN if no timer can be had. Takes WATCH_SIGNAL, see watch.h. */
struct tracer *tracer_new(void);

/*
 * Before the first thread is seized: where the kernel has no PTRACE_SEIZE, use
 * PTRACE_ATTACH. Each thread is then stopped and woken once for it, and by
 * SIGSTOP for each look. Job control waits for ljspy, a SIGCONT may be lost, and
 * a target stays stopped if ljspy is killed after it sent SIGSTOP.
 */
void tracer_allow_attach(struct tracer *tracer);

/*
 * Before the first thread is seized: leave them all alone. "Seized" then means
 * known by its id; nothing is reported of it and it cannot be held.
 */
void tracer_stay_away(struct tracer *tracer);
bool tracer_stays_away(const struct tracer *tracer);

/*
 * From now on be urgent (urgent.h) from telling a thread to stop until it runs
 * on, for those who hold threads only for a moment; and while a look is awaited:
 * from sleeping until it is due to having looked.
 */
void tracer_be_urgent(struct tracer *tracer);
void tracer_await_look(struct tracer *tracer, bool awaited);

/* Whoever sleeps while threads are seized does so by this. */
struct own_turn *tracer_turn(struct tracer *tracer);

/*
 * Count in there how long threads are held in stops that nobody waits for: to
 * deliver a signal, or by a stop that came too late. NULL: do not.
 */
void tracer_count_holds(struct tracer *tracer, struct histogram *holds);

/*
 * Keeping files open for each thread saves much time; there may be more threads
 * than files can be opened. So whoever does asks for as many files first: false
 * if they are too many. At first FILES_OPEN_DEFAULT are allowed for.
 */
void tracer_allow_files(struct tracer *tracer, size_t count);
bool tracer_reserve_files(struct tracer *tracer, size_t count);
void tracer_release_files(struct tracer *tracer, size_t count);

/*
 * Resume whatever is held, for good: the thread that called tracer_new() does
 * nothing more with the tracer and ends soon.
 */
void tracer_let_go(struct tracer *tracer);

/* After that in any thread: free everything. Before, let go as well. Threads stay seized, see above. */
void tracer_free(struct tracer *tracer);

/*
 * Seize a thread. 0 and *ret_tracee, or -ESRCH (gone), -EPERM (see
 * permission.h; also for a thread that has ended but was not reaped), -EIO
 * (there is no PTRACE_SEIZE), -ENOMEM. A thread that is seized already, or was
 * and is gone but not forgotten, is given as it is.
 */
int tracer_seize(struct tracer *tracer, pid_t pid, pid_t tid, struct tracee **ret_tracee);

/* The seized thread with that id, or NULL. */
struct tracee *tracer_find(const struct tracer *tracer, pid_t tid);

/* Free a tracee that is TRACEE_GONE, or whose thread is known to be. */
void tracer_forget(struct tracer *tracer, struct tracee *tracee);

/*
 * Hold a thread; it stands in user space or at the entry or exit of a system
 * call. A system call that is ended by that begins again (interrupted_call.h),
 * as far as the kernel lets it; which threads may be stopped tells may_stop.h.
 *
 * 0: the tracee is TRACEE_HELD, resume it as soon as possible.
 * -ETIMEDOUT: it did not stop in time (it waits for a CPU, or for something
 *	uninterruptible). When it does, tracer_poll() resumes it, or holds it if
 *	tracee->hold_late was set.
 * -ESRCH: it has ended.
 * -ECANCELED: it has called execve(); see tracee->execed. It runs.
 */
int tracer_stop(struct tracer *tracer, struct tracee *tracee, uint64_t timeout_ns);

/*
 * The same of a thread that runs, or waits for a CPU; -EAGAIN: it does not, or was
 * told to stop before. Nothing comes between looking and telling it to stop.
 */
int tracer_stop_running(struct tracer *tracer, struct tracee *tracee, uint64_t timeout_ns);

/* The same of a thread that was just seen to be on another CPU: at once, without looking. */
int tracer_stop_seen(struct tracer *tracer, struct tracee *tracee, uint64_t timeout_ns);

/* Of a held thread. 0, or -ESRCH when it was killed while being held, -ENOTSUP of a 32-bit program. */
int tracer_registers(struct tracee *tracee, struct registers *ret_registers);

/* Let a held thread go on; one that was job-stopped stays stopped. No effect if it was killed meanwhile. */
void tracer_resume(struct tracer *tracer, struct tracee *tracee);

/*
 * Deal with everything that tracees have reported: pass signals on, let late
 * stops and new programs go on, note the dead. Never blocks and never reaps a
 * process that is not a tracee. True if a tracee has ended or execed.
 */
bool tracer_poll(struct tracer *tracer);

/*
 * The same while something else keeps the caller from looking at threads, such as
 * a question to another process: those that stop late are not held, or no longer, and
 * what has ended is told of by the next tracer_poll().
 */
void tracer_pass_on(struct tracer *tracer);

/* Is a thread held whose registers were asked for, as somebody is reading it? */
bool tracer_holds(const struct tracer *tracer);

/* Has a thread been held late since the last call? */
bool tracer_has_held_late(struct tracer *tracer);

/*
 * tracer_stop() takes SIGCHLD off the queue; true if one of those may have
 * been about another thread, so that tracer_poll() is due now although no
 * signal is pending.
 */
bool tracer_poll_is_due(const struct tracer *tracer);

#endif
