/* SPDX-License-Identifier: MIT */
/*
 * tracer: hold single threads of a target for a moment, by ptrace.
 *
 * ljspy seizes a thread once (PTRACE_SEIZE), which neither stops nor wakes it, and
 * stops it with PTRACE_INTERRUPT only to read its registers. However ljspy dies, the
 * kernel lets every seized thread run on.
 *
 * Seizing has one cost: each signal for the thread waits until the tracer passes it on.
 * So the owner of a tracer waits for SIGCHLD and calls tracer_poll() as soon as one
 * comes. And there are only two ways to let go of a running thread: stop it, or end the
 * *thread of ljspy* that seized it. So run the sampling loop in a separate thread: when
 * it returns, all targets are free, undisturbed, whatever ljspy does next.
 *
 * Only the thread that called tracer_new() may call functions on the tracer and its
 * tracees. SIGCHLD must be blocked in every thread of ljspy and must not be ignored.
 */
#ifndef LJSPY_TRACER_H
#define LJSPY_TRACER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "output/sample/histogram.h"
#include "src/linux/clocks/own_turn.h"
#include "unwind/elf/registers.h"

enum tracee_state {
	TRACEE_RUNNING,     /* or asleep; not stopped by ptrace */
	TRACEE_AWAITED,     /* told to stop, but did not in time; resumed when it stops */
	TRACEE_HELD,        /* stopped by tracer_stop() until tracer_resume() */
	TRACEE_JOB_STOPPED, /* stopped by SIGSTOP, SIGTSTP, SIGTTIN or SIGTTOU, not by ljspy */
	TRACEE_GONE,        /* has ended */
};

/* One seized thread; owned by its tracer, valid until tracer_forget(). */
struct tracee {
	pid_t pid; /* process */
	pid_t tid;
	enum tracee_state state;
	bool hold_late;  /* the caller sets this while TRACEE_AWAITED: hold it if it stops after all */
	bool execed;     /* it has run another program; the caller clears this */
	bool took_id;    /* the same, and it had another id until then; the caller clears this */
	bool exit_known; /* TRACEE_GONE: exit_status is the status from waitpid() */
	int exit_status;
	/*
	 * When it last stopped, CLOCK_MONOTONIC. If ljspy could not see that at once, the
	 * latest time at which it is known not to have stopped.
	 */
	uint64_t stopped_ns;
	uint64_t resumed_ns; /* when ljspy last let it go */

	/* The tracer's own. */
	bool wanted; /* tracer_stop() waits for this thread */
	bool held_in_job_stop;
	uint64_t quiet_ns; /* when it was known, seized, or last had nothing to report */
};

struct tracer;

/* NULL with errno ENOMEM, or EAGAIN if there is no timer. Takes CALL_WATCH_SIGNAL, see call_watch.h. */
struct tracer *tracer_new(void);

/*
 * Before the first thread is seized: use PTRACE_ATTACH if the kernel has no
 * PTRACE_SEIZE. This stops and wakes each thread once, and each look sends it a SIGSTOP.
 * Job control waits for ljspy, a SIGCONT may be lost, and a target stays stopped if ljspy
 * is killed after it sent SIGSTOP.
 */
void tracer_allow_attach(struct tracer *tracer);

/*
 * Before the first thread is seized: leave all threads alone. "Seized" then means known by
 * its id; the kernel reports nothing about the thread, and it cannot be held.
 */
void tracer_stay_away(struct tracer *tracer);
bool tracer_stays_away(const struct tracer *tracer);

/* Use this to sleep while threads are seized; owned by the tracer. */
struct own_turn *tracer_turn(struct tracer *tracer);

/*
 * The report of a stop that the caller waited for leaves a signal behind, for which ljspy's
 * next sleep would end at once. Take that signal, and handle what else it stands for: ask the
 * kernel for reports, also where the sleep of tracer_stop() has taken the signal. So call this
 * when the thread runs on.
 */
void tracer_take_wakeup(struct tracer *tracer);

/*
 * Count in holds how long threads stay stopped when no caller waits for the stop: to
 * deliver a signal, or by a stop that came too late. NULL: do not count.
 */
void tracer_count_holds(struct tracer *tracer, struct histogram *holds);

/*
 * Resume all held threads, for good: then the thread that called tracer_new() does nothing
 * more with the tracer and ends soon.
 */
void tracer_let_go(struct tracer *tracer);

/*
 * Free everything: after tracer_let_go() in any thread. Without it, let go first. Threads
 * stay seized, see above.
 */
void tracer_free(struct tracer *tracer);

/*
 * Seize a thread. 0 and *ret_tracee, or -ESRCH (gone, or has ended and was not reaped),
 * -EALREADY (another traces it), -EPERM (see permission.h), -EIO (there is no PTRACE_SEIZE), -ENOMEM. If the
 * thread is already a tracee, even one that is gone but not forgotten, *ret_tracee is that tracee, unchanged.
 * If a thread of another process had the id and is not forgotten: -ESRCH until it is.
 */
int tracer_seize(struct tracer *tracer, pid_t pid, pid_t tid, struct tracee **ret_tracee);

/*
 * The same, but leave the thread alone until it is to be held for the first time: one that sleeps all
 * the time costs nothing then, and its signals do not wait for ljspy. Until it is seized, the kernel
 * reports nothing about it. With tracer_allow_attach(), seizes at once.
 */
int tracer_seize_late(struct tracer *tracer, pid_t pid, pid_t tid, struct tracee **ret_tracee);

/* Does the kernel report what becomes of the thread? */
bool tracer_has_seized(const struct tracee *tracee);

/* The caller has found that a thread that is not seized has ended. */
void tracer_note_end(struct tracer *tracer, struct tracee *tracee);

/* The seized thread with that id, or NULL. */
struct tracee *tracer_find(const struct tracer *tracer, pid_t tid);

/* Free a tracee that is TRACEE_GONE, or whose thread is known to be gone. */
void tracer_forget(struct tracer *tracer, struct tracee *tracee);

/*
 * Hold a thread; it stops in user space or at the entry or exit of a system call. A system
 * call that the stop ends begins again (interrupted_call.h), as far as the kernel allows;
 * may_stop.h tells which threads may be stopped.
 *
 * 0: the tracee is TRACEE_HELD, resume it as soon as possible.
 * -ETIMEDOUT: it did not stop in time (it waits for a CPU, or sleeps uninterruptibly).
 *	When it stops, tracer_poll() resumes it, or holds it if tracee->hold_late is set.
 * -ESRCH: it has ended.
 * -ECANCELED: it has called execve(); see tracee->execed. It runs.
 * -EALREADY, -EPERM: it could not be seized (late), for the reasons of tracer_seize().
 */
int tracer_stop(struct tracer *tracer, struct tracee *tracee, uint64_t timeout_ns);

/*
 * The same for a thread that runs or waits for a CPU; -EAGAIN: it does not, or was told
 * to stop before. Tells it to stop right after looking.
 */
int tracer_stop_running(struct tracer *tracer, struct tracee *tracee, uint64_t timeout_ns);

/*
 * The same for a thread that was just seen to run, or to have run until ljspy took its CPU: at once, without
 * looking. on_other_cpu: it has another CPU than ljspy.
 */
int tracer_stop_seen(struct tracer *tracer, struct tracee *tracee, uint64_t timeout_ns, bool on_other_cpu);

/* Read a held thread's registers. 0, -ESRCH if it was killed while held, -ENOTSUP for a 32-bit program. */
int tracer_registers(struct tracee *tracee, struct registers *ret_registers);

/* Let a held thread run on; a job-stopped one stays stopped. No effect if it was killed meanwhile. */
void tracer_resume(struct tracer *tracer, struct tracee *tracee);

/*
 * Handle all reports of tracees: pass signals on, let late stops and new programs run on,
 * note the dead. Never blocks and never reaps a process that is not a tracee. True if a
 * tracee has ended or execed since the last call.
 */
bool tracer_poll(struct tracer *tracer);

/*
 * The same for one tracee. A thread that is not seized calls execve() without a report, and takes the id of
 * its process's first thread: only by asking for that one, ljspy learns that it has gone.
 */
void tracer_poll_one(struct tracer *tracer, struct tracee *tracee);

/* How many tracees have ended or execed so far. */
uint64_t tracer_changes(const struct tracer *tracer);

/*
 * The same while the caller cannot look at threads, for example while it waits for another
 * process. Threads that stop late are not held, or no longer; the next tracer_poll()
 * reports what has ended.
 */
void tracer_pass_on(struct tracer *tracer);

/* Is a thread held whose registers the caller has asked for, as it is being read? */
bool tracer_holds(const struct tracer *tracer);

/* Has ljspy told a thread to stop that has not stopped yet, or is held? */
bool tracer_awaits_stop(const struct tracer *tracer);

/* Has a thread been held late since the last call? */
bool tracer_has_held_late(struct tracer *tracer);

/* No report was pending at this time: a wait for SIGCHLD that began then ended without it. */
void tracer_note_quiet(struct tracer *tracer, uint64_t time_ns);

/*
 * tracer_stop() takes SIGCHLD off the queue. True if one of those may have been about
 * another thread, or if a report was dealt with that tracer_poll() has not told of: then
 * call tracer_poll() now although no signal is pending.
 */
bool tracer_poll_is_due(const struct tracer *tracer);

#endif
