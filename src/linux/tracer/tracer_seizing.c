/* SPDX-License-Identifier: MIT */
#include "src/linux/tracer/tracer_parts.h"

#include <errno.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/linux/clocks/clock.h"
#include "src/linux/proc/process.h"
#include "src/linux/tracer/call_watch.h"
#include "src/linux/tracer/tracer_files.h"

/* What has become of a thread that does not answer? */
static enum fate find_out(pid_t tid)
{
	struct process process;

	if (process_read_status(tid, &process))
		return FATE_GONE;
	if (process_thread_is_zombie(&process))
		return FATE_ZOMBIE;
	return process.tracer_pid == gettid() ? FATE_ALIVE : FATE_OTHERS;
}

/* Of ljspy's own threads, another may have it: in an execve(), ids change. */
static bool has_other_tracer(pid_t tid)
{
	struct process process;

	return process_read_status(tid, &process) == 0 && process.tracer_pid != 0 &&
	       process_of_thread(process.tracer_pid) != getpid();
}

/*
 * Why the kernel refuses to seize the thread. Before Linux 3.1, which has no PTRACE_SEIZE, it says ESRCH for
 * a thread that exists: -EIO. It says EPERM for one that has ended but was not reaped: -ESRCH; for one that
 * has a tracer: -EALREADY; and for a tracee of ljspy's that has taken the id by execve(): 0.
 */
static int why_not_seized(pid_t tid, int error)
{
	if (error != -ESRCH && error != -EPERM)
		return error;
	switch (find_out(tid)) {
	case FATE_GONE:
	case FATE_ZOMBIE: return -ESRCH;
	case FATE_ALIVE: return error == -ESRCH ? -EIO : 0;
	case FATE_OTHERS: break;
	}
	if (error == -ESRCH)
		return -EIO;
	return has_other_tracer(tid) ? -EALREADY : -EPERM;
}

/* While the request waits for an execve(), reports are handled. 0 or a negative errno. */
static int ask_kernel(struct tracer *tracer, enum __ptrace_request request, pid_t tid, uintptr_t options)
{
	int error;

	call_watch_begin(&tracer->watch);
	error = ptrace(request, tid, NULL, (void *)options) ? -errno : 0;
	call_watch_end(&tracer->watch);
	return error;
}

static int ask_to_seize(struct tracer *tracer, pid_t tid)
{
	int error = ask_kernel(tracer, PTRACE_SEIZE, tid, PTRACE_O_TRACEEXEC);

	return error ? why_not_seized(tid, error) : 0;
}

/* What refused it may have ended before it was looked for: a tracer, or an execve(). */
static int seize(struct tracer *tracer, pid_t tid)
{
	int error = ask_to_seize(tracer, tid);

	return error == -EPERM ? ask_to_seize(tracer, tid) : error;
}

static int attach(struct tracer *tracer, struct seized *seized)
{
	int error = ask_kernel(tracer, PTRACE_ATTACH, seized->tracee.tid, 0);

	if (!error)
		seized->attached = seized->asked = true;
	return error;
}

/*
 * The kernel seizes no thread before an execve() in its process has ended. If that was of the very thread, it
 * is seized, but has the id of its process by now, and there is none of its own, not even of one that has
 * ended.
 */
static bool has_execed_meanwhile(struct tracer *tracer, const struct seized *seized)
{
	pid_t pid = seized->tracee.pid, tid = seized->tracee.tid;
	struct seized *first;

	if (tid == pid || syscall(SYS_tgkill, pid, tid, 0) == 0 || errno != ESRCH)
		return false;
	first = tracer_find_seized(tracer, pid);
	if (first && first->tracee.state != TRACEE_GONE) {
		first->is_seized = first->tracee.execed = first->tracee.took_id = true;
		first->attached = seized->attached;
		first->asked = seized->asked;
		first->has_stopped = false;
		tracer_note_change(tracer);
	}
	return true;
}

int tracer_seize_now(struct tracer *tracer, struct seized *seized)
{
	pid_t tid = seized->tracee.tid;
	int error = seize(tracer, tid);

	if (error == -EIO && tracer->allow_attach)
		error = attach(tracer, seized);
	if (!error && has_execed_meanwhile(tracer, seized))
		error = -ESRCH;
	seized->is_seized = !error;
	if (!error && seized->reserved)
		seized->stat_fd = seized_open_stat(seized);
	if (seized->stat_fd >= 0)
		tracer_note_opened(tracer);
	seized->tracee.quiet_ns = clock_now_ns(CLOCK_MONOTONIC);
	return error;
}

enum fate tracer_check_fate(struct tracer *tracer, struct tracee *tracee)
{
	enum fate fate = find_out(tracee->tid);

	if (tracee->state != TRACEE_GONE && (fate == FATE_OTHERS || fate == FATE_GONE))
		tracer_mark_gone(tracer, tracee);
	return fate;
}

static int take(struct tracer *tracer, pid_t pid, pid_t tid, bool late, struct tracee **ret_tracee)
{
	struct seized *seized = tracer_find_seized(tracer, tid);
	int error;

	/* One of another process that has ended, which nobody has noticed yet. */
	if (seized && seized->tracee.pid != pid)
		return -ESRCH;
	if (!seized) {
		seized = tracer_add_seized(tracer, pid, tid);
		error = !seized ? -ENOMEM : late ? 0 : tracer_seize_now(tracer, seized);
		if (error) {
			if (seized)
				tracer_free_seized(tracer, seized);
			return error;
		}
	}
	*ret_tracee = &seized->tracee;
	return 0;
}

int tracer_seize(struct tracer *tracer, pid_t pid, pid_t tid, struct tracee **ret_tracee)
{
	return take(tracer, pid, tid, tracer->stays_away, ret_tracee);
}

int tracer_seize_late(struct tracer *tracer, pid_t pid, pid_t tid, struct tracee **ret_tracee)
{
	return take(tracer, pid, tid, tracer->stays_away || !tracer->allow_attach, ret_tracee);
}
