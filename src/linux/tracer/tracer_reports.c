/* SPDX-License-Identifier: MIT */
#include "src/linux/tracer/tracer_parts.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "memory/child_wait.h"
#include "memory/hash.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/proc/process.h"

enum {
	/* Events handled in one tracer_poll(), so that a storm of signals cannot keep it for ever. */
	POLL_EVENTS_MAX = 4096,
	/* See restart_after_signal(). */
	RESTART_AGAIN_NS = 1000 * 1000 * 1000,
};

/* __WNOTHREAD: tracees and children of ljspy's other threads are not ours to reap. */
static const int wait_options = __WALL | __WNOTHREAD | WNOHANG;

/* The same for a thread that is not held; counts how long it was stopped. */
static void pass_on(struct tracer *tracer, struct tracee *tracee, int signal)
{
	tracer_continue(tracer, tracee, signal);
	tracer->passed_ns = tracee->resumed_ns;
	if (tracer->holds)
		histogram_add(tracer->holds, tracee->resumed_ns - tracee->stopped_ns);
}

/*
 * When did the stop happen that is reported now? ljspy may have done something else
 * meanwhile, waited for a CPU, or been stopped itself. Errs on the early side.
 */
static uint64_t find_stop(const struct tracer *tracer, const struct tracee *tracee)
{
	uint64_t begin = tracer->turn.woken_ns;

	if (tracer->quiet_ns > begin)
		begin = tracer->quiet_ns;
	return tracee->quiet_ns > begin ? tracee->quiet_ns : begin;
}

static bool find_interrupted_call(struct seized *seized, bool *ret_limited)
{
	const struct user_regs_struct *regs = seized_regs(seized);

	return regs && interrupted_call_find(seized->tracee.tid, regs, ret_limited);
}

static void restart_call(struct seized *seized)
{
	seized->has_regs = false;
	interrupted_call_restart(seized->tracee.tid, &seized->regs, &seized->call);
}

/* Keep a stop by ljspy from ending the call that the thread waits in. */
static void restart_after_interrupt(struct tracee *tracee)
{
	struct seized *seized = seized_of(tracee);
	bool limited;

	seized->job_stopped = seized->call.is_set = false;
	if (find_interrupted_call(seized, &limited))
		restart_call(seized);
}

static bool stops_the_job(int signal)
{
	return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

/*
 * A traced thread is woken even by signals that it ignores; an untraced one is not. If the
 * signal is not ignored, the kernel ends the call in any case. ljspy does not know how
 * long the thread has waited so far: so that ignored signals cannot keep a time limit
 * from ever being reached, a signal that comes soon after another one ends the call.
 */
static void restart_after_signal(struct tracee *tracee, int signal)
{
	struct seized *seized = seized_of(tracee);
	uint64_t now = clock_now_ns(CLOCK_MONOTONIC);
	bool limited;

	if (stops_the_job(signal) || seized->job_stopped) {
		seized->job_stopped = signal != SIGCONT;
		return;
	}
	if (!find_interrupted_call(seized, &limited) ||
	    (limited && now - seized->restarted_ns < RESTART_AGAIN_NS))
		return;
	if (limited)
		seized->restarted_ns = now;
	restart_call(seized);
}

static void handle_trap(struct tracer *tracer, struct tracee *tracee, int signal)
{
	/* SIGTRAP: an interrupt by ljspy, or the end of a job stop; else the signal that began one. */
	bool job_stop = signal != SIGTRAP;

	if (!job_stop && tracee->state != TRACEE_JOB_STOPPED)
		restart_after_interrupt(tracee);
	if (tracer->only_passes_on)
		tracee->hold_late = false;
	if (tracee->wanted || tracee->hold_late) {
		tracer->held_late |= !tracee->wanted;
		tracee->state = TRACEE_HELD;
		tracee->held_in_job_stop = job_stop;
		tracee->wanted = tracee->hold_late = false;
	} else if (job_stop) {
		tracer_leave_job_stopped(tracer, tracee);
	} else {
		pass_on(tracer, tracee, 0);
	}
}

/*
 * The thread that called execve() now has the id of its process; all others have ended,
 * some of them without a report.
 */
static void handle_exec(struct tracer *tracer, struct tracee *tracee)
{
	unsigned long former_tid = 0;
	struct tracee *former;

	ptrace(PTRACE_GETEVENTMSG, tracee->tid, NULL, &former_tid);
	former = tracer_find(tracer, (pid_t)former_tid);
	if (former && former != tracee) {
		/* With the id, it keeps how it is traced. */
		seized_of(tracee)->attached = seized_of(former)->attached;
		seized_of(tracee)->has_stopped = seized_of(former)->has_stopped;
		tracer_mark_gone(tracer, former);
	}
	if (former != tracee && seized_of(tracee)->attached) {
		/*
		 * Which one a SIGSTOP went to while ids changed is not known: now one is on its way, and only
		 * one.
		 */
		seized_of(tracee)->asked = false;
		tracee_ask_to_stop(tracee);
	}
	tracee->execed = true;
	tracee->took_id |= former != tracee;
	tracee->wanted = tracee->hold_late = false;
	tracer_note_change(tracer);
	pass_on(tracer, tracee, 0);
}

/*
 * A signal is about to be delivered. Entering any stop cancels an interrupt that ljspy
 * has asked for and the thread has not yet answered (ptrace_stop() in the kernel). So
 * ask again, before the thread goes on: afterwards it might just have answered the first
 * one, and would stop twice.
 */
static void handle_signal(struct tracer *tracer, struct tracee *tracee, int signal)
{
	if (tracee->wanted || tracee->hold_late)
		tracee_ask_to_stop(tracee);
	restart_after_signal(tracee, signal);
	interrupted_call_deliver(tracee->tid, signal, &seized_of(tracee)->call);
	pass_on(tracer, tracee, signal);
}

/* SIGCONT cancels each SIGSTOP of the process that is on its way: send those again. */
static void ask_again(struct tracer *tracer, pid_t pid)
{
	struct seized *seized, *next;

	HASH_ITER(hh, tracer->seized, seized, next) {
		if (!seized->attached || seized->tracee.pid != pid)
			continue;
		seized->asked = false;
		if (seized->tracee.wanted || seized->tracee.state == TRACEE_AWAITED)
			tracee_ask_to_stop(&seized->tracee);
	}
}

/* Is there a thread of the process that has not stopped since ljspy attached to it? */
static bool has_unstopped(const struct tracer *tracer, pid_t pid)
{
	struct seized *seized, *next;

	HASH_ITER(hh, tracer->seized, seized, next)
		if (seized->tracee.pid == pid && seized->attached && !seized->has_stopped &&
		    seized->tracee.state != TRACEE_GONE)
			return true;
	return false;
}

/*
 * Is the SIGSTOP that of attaching, which the kernel sends, or one of tracee_ask_to_stop()? It comes after
 * execve(), too, when it may not be known any more to whom ljspy had sent it.
 */
static bool is_own_stop(const struct seized *seized, const siginfo_t *info)
{
	if (seized->asked)
		return info->si_code != SI_USER;
	return info->si_code == SI_KERNEL || (info->si_code == SI_TKILL && info->si_pid == getpid());
}

/* A thread that is attached, not seized, has stopped with this signal. */
static void handle_attached(struct tracer *tracer, struct seized *seized, int signal)
{
	/* execve() gives a thread the id of the first one, which may have stopped. */
	const bool may_be_first = !seized->has_stopped ||
				  (signal == SIGTRAP && has_unstopped(tracer, seized->tracee.pid));
	struct tracee *tracee = &seized->tracee;
	siginfo_t info = { .si_code = SI_USER };
	bool job_stop = ptrace(PTRACE_GETSIGINFO, tracee->tid, NULL, &info) && errno == EINVAL;

	if (may_be_first)
		ptrace(PTRACE_SETOPTIONS, tracee->tid, NULL, (void *)PTRACE_O_TRACEEXEC);
	seized->has_stopped = true;
	if (job_stop) {
		handle_trap(tracer, tracee, signal);
	} else if (signal == SIGSTOP && is_own_stop(seized, &info)) {
		seized->asked = false;
		handle_trap(tracer, tracee, SIGTRAP);
	} else if (signal == SIGTRAP && info.si_code == SI_USER && may_be_first) {
		/*
		 * It called execve() before ljspy could set PTRACE_O_TRACEEXEC, which suppresses this
		 * SIGTRAP. The SIGSTOP of attaching is still on its way.
		 */
		seized->asked = true;
		tracee->execed = true;
		tracer_note_change(tracer);
		pass_on(tracer, tracee, 0);
	} else {
		handle_signal(tracer, tracee, signal);
		if (signal == SIGCONT)
			ask_again(tracer, tracee->pid);
	}
}

static void handle_status(struct tracer *tracer, struct tracee *tracee, int status)
{
	if (WIFEXITED(status) || WIFSIGNALED(status)) {
		tracee->exit_known = true;
		tracee->exit_status = status;
		tracer_mark_gone(tracer, tracee);
		return;
	}
	if (!WIFSTOPPED(status))
		return;
	switch (status >> 16) {
	case PTRACE_EVENT_STOP: handle_trap(tracer, tracee, WSTOPSIG(status)); break;
	case PTRACE_EVENT_EXEC: handle_exec(tracer, tracee); break;
	default:
		if (seized_of(tracee)->attached)
			handle_attached(tracer, seized_of(tracee), WSTOPSIG(status));
		else
			handle_signal(tracer, tracee, WSTOPSIG(status));
		break;
	}
}

static bool is_interrupt(int status)
{
	return WIFSTOPPED(status) && status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) == SIGTRAP;
}

bool tracer_wait_once(struct tracer *tracer, struct tracee *tracee)
{
	int status;
	pid_t pid = child_wait(tracee->tid, &status, wait_options);

	if (pid == 0) {
		tracee->quiet_ns = clock_now_ns(CLOCK_MONOTONIC);
		return false;
	}
	tracee->stopped_ns = find_stop(tracer, tracee);
	/* Only ljspy makes a tracee stop so. */
	if (pid > 0 && is_interrupt(status) && seized_of(tracee)->asked_ns > tracee->stopped_ns)
		tracee->stopped_ns = seized_of(tracee)->asked_ns;
	if (pid > 0)
		handle_status(tracer, tracee, status);
	else
		tracer_mark_gone(tracer, tracee); /* ECHILD: another thread's execve() took it away */
	return true;
}

/*
 * A tracee reports with an unknown id: a thread whose process's first thread is not
 * seized (it had ended) has called execve() and now has its id. In any case the tracee
 * must not stay stopped.
 */
static void handle_stranger(struct tracer *tracer, pid_t tid)
{
	struct seized stranger = { .tracee = { .pid = tid, .tid = tid } };
	struct seized *seized;
	int status;

	if (child_wait(tid, &status, wait_options) <= 0)
		return;
	stranger.tracee.stopped_ns = find_stop(tracer, &stranger.tracee);
	seized = WIFSTOPPED(status) ? tracer_add_seized(tracer, tid, tid) : NULL;
	if (seized) {
		seized->is_seized = true;
		seized->tracee.stopped_ns = stranger.tracee.stopped_ns;
	}
	handle_status(tracer, seized ? &seized->tracee : &stranger.tracee, status);
}

static void poll_each(struct tracer *tracer)
{
	struct seized *seized, *next;

	HASH_ITER(hh, tracer->seized, seized, next)
		if (seized->is_seized && seized->tracee.state != TRACEE_GONE)
			tracer_wait_once(tracer, &seized->tracee);
}

void tracer_handle_reports(struct tracer *tracer)
{
	tracer->poll_is_due = false;
	for (int i = 0;; i++) {
		siginfo_t info = { .si_pid = 0 };
		struct tracee *tracee;

		if (i == POLL_EVENTS_MAX) {
			tracer->poll_is_due = true;
			break;
		}
		if (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOWAIT | wait_options)) {
			/*
			 * Before Linux 4.7, waitid() takes no __WALL; it may also be forbidden. Whatever it
			 * says, the signal for a report may be taken already, and not come again.
			 */
			poll_each(tracer);
			break;
		}
		if (info.si_pid == 0) {
			tracer->quiet_ns = clock_now_ns(CLOCK_MONOTONIC);
			break;
		}
		tracee = tracer_find(tracer, info.si_pid);
		if (tracee && tracee->state != TRACEE_GONE) {
			tracer_wait_once(tracer, tracee);
		} else if (info.si_code == CLD_TRAPPED) {
			handle_stranger(tracer, info.si_pid);
		} else {
			/* A child that is no tracee is first in the queue; leave it there. */
			poll_each(tracer);
			break;
		}
	}
}

/* The kernel does not report the end of a job stop of an attached thread: a pending SIGCONT shows it. */
static void continue_job(struct tracer *tracer, struct seized *seized)
{
	struct process process;

	if (!seized->attached || seized->tracee.state != TRACEE_JOB_STOPPED ||
	    process_read_status(seized->tracee.tid, &process))
		return;
	if (process.pending_signals & (UINT64_C(1) << (SIGCONT - 1)))
		tracer_continue(tracer, &seized->tracee, 0);
}

bool tracer_poll(struct tracer *tracer)
{
	struct seized *seized, *next;
	bool changed;

	tracer_handle_reports(tracer);
	if (tracer->allow_attach) {
		HASH_ITER(hh, tracer->seized, seized, next) {
			continue_job(tracer, seized);
		}
	}
	changed = tracer->changed;
	tracer->changed = false;
	return changed;
}

void tracer_poll_one(struct tracer *tracer, struct tracee *tracee)
{
	/* With nothing to report, it may be none, but a child of ljspy's. */
	if (seized_of(tracee)->is_seized && tracee->state != TRACEE_GONE && !tracer_wait_once(tracer, tracee))
		tracer_check_fate(tracer, tracee);
}

uint64_t tracer_changes(const struct tracer *tracer)
{
	return tracer->changes;
}

/* Resume held threads whose registers the caller has not read: those that stopped late. */
static void resume_late(struct tracer *tracer)
{
	struct seized *seized, *next;

	HASH_ITER(hh, tracer->seized, seized, next) {
		if (!seized->is_read)
			tracer_resume(tracer, &seized->tracee);
	}
}

void tracer_pass_on(struct tracer *tracer)
{
	tracer->only_passes_on = true;
	tracer_handle_reports(tracer);
	tracer->only_passes_on = false;
	resume_late(tracer);
}

void tracer_take_wakeup(struct tracer *tracer)
{
	const struct timespec at_once = { 0 };
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	/* The signal may stand for other reports, too, as may the one for which the stop was noticed. */
	if (sigtimedwait(&child, NULL, &at_once) == SIGCHLD || tracer->poll_is_due)
		tracer_handle_reports(tracer);
	tracer->poll_is_due |= tracer->changed || tracer->held_late;
}

bool tracer_has_held_late(struct tracer *tracer)
{
	bool held_late = tracer->held_late;

	tracer->held_late = false;
	return held_late;
}

bool tracer_poll_is_due(const struct tracer *tracer)
{
	return tracer->poll_is_due || tracer->changed;
}

void tracer_note_quiet(struct tracer *tracer, uint64_t time_ns)
{
	if (!tracer->poll_is_due)
		tracer->quiet_ns = time_ns;
}
