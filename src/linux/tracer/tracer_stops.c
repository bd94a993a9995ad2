/* SPDX-License-Identifier: MIT */
#include "src/linux/tracer/tracer_parts.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "memory/hash.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/tracer/thread_registers.h"

enum {
	/*
	 * A thread that runs on another CPU stops within microseconds: polling
	 * for this long is quicker than sleeping and being woken up.
	 */
	STOP_SPIN_NS = 25 * 1000,
};

/*
 * Wait until some tracee may have reported; until spin_end return true at once. False if
 * nothing came before the deadline. SIGCHLD does not reliably tell from which tracee.
 */
static bool await_report(struct tracer *tracer, uint64_t spin_end, uint64_t deadline)
{
	uint64_t now = clock_now_ns(CLOCK_MONOTONIC);
	struct timespec left;
	sigset_t child;

	if (now >= deadline)
		return false;
	if (now < spin_end)
		return true;
	/* The thread itself may wait until others that have ended are reaped (execve() does). */
	if (tracer->poll_is_due) {
		tracer_handle_reports(tracer);
		return true;
	}
	left.tv_sec = (time_t)((deadline - now) / 1000000000u);
	left.tv_nsec = (long)((deadline - now) % 1000000000u);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	if (own_turn_wait(&tracer->turn, &child, NULL, &left) == SIGCHLD)
		tracer->poll_is_due = true;
	else if (errno == EAGAIN)
		return false;
	return true;
}

/* The thread did not stop in time: -ESRCH if it is gone, else -ETIMEDOUT. */
static int give_up(struct tracer *tracer, struct tracee *tracee)
{
	enum fate fate = tracer_check_fate(tracer, tracee);

	tracee->wanted = false;
	if (tracee->state == TRACEE_GONE || fate != FATE_ALIVE)
		return -ESRCH;
	tracee->state = TRACEE_AWAITED;
	return -ETIMEDOUT;
}

/* on_other_cpu: poll for STOP_SPIN_NS before sleeping. */
static int stop(struct tracer *tracer, struct tracee *tracee, uint64_t timeout_ns, bool on_other_cpu)
{
	uint64_t start = clock_now_ns(CLOCK_MONOTONIC);
	uint64_t spin_end = on_other_cpu ? start + STOP_SPIN_NS : start;
	bool in_time = true;
	int error = seized_of(tracee)->is_seized ? 0 : tracer_seize_now(tracer, seized_of(tracee));

	if (error == -ESRCH)
		tracer_mark_gone(tracer, tracee);
	if (error)
		return error;
	tracee->wanted = true;
	tracer_expect(tracer, tracee, true);
	/* Ask only once: a second interrupt may cause a second stop. */
	if (tracee->state != TRACEE_AWAITED && tracee_ask_to_stop(tracee)) {
		tracer_wait_once(tracer, tracee);
		return give_up(tracer, tracee);
	}
	while (tracee->wanted) {
		if (tracer_wait_once(tracer, tracee))
			continue;
		/* Ask once more at the end: the thread may have stopped without waking ljspy. */
		if (!in_time)
			return give_up(tracer, tracee);
		/* A thread that has been held late meanwhile must not wait with ljspy. */
		in_time = await_report(tracer, spin_end, start + timeout_ns) && !tracer->held_late;
	}
	switch (tracee->state) {
	case TRACEE_HELD: return 0;
	case TRACEE_GONE: return -ESRCH;
	case TRACEE_RUNNING:
	case TRACEE_AWAITED:
	case TRACEE_JOB_STOPPED: break;
	}
	return -ECANCELED;
}

int tracer_stop(struct tracer *tracer, struct tracee *tracee, uint64_t timeout_ns)
{
	struct seized *seized = seized_of(tracee);
	struct stat_line line;

	if (tracee->state == TRACEE_GONE)
		return -ESRCH;
	if (tracee->state == TRACEE_HELD)
		return 0;
	if (tracee->state == TRACEE_JOB_STOPPED && seized->attached) {
		tracee->state = TRACEE_HELD;
		tracee->held_in_job_stop = true;
		tracee->stopped_ns = clock_now_ns(CLOCK_MONOTONIC);
		return 0;
	}
	return stop(tracer, tracee, timeout_ns, seized_read_stat(seized, &line) && line.on_other_cpu);
}

int tracer_stop_running(struct tracer *tracer, struct tracee *tracee, uint64_t timeout_ns)
{
	struct stat_line line;

	if (tracee->state != TRACEE_RUNNING || !seized_read_stat(seized_of(tracee), &line))
		return -EAGAIN;
	return line.state == 'R' ? stop(tracer, tracee, timeout_ns, line.on_other_cpu) : -EAGAIN;
}

int tracer_stop_seen(struct tracer *tracer, struct tracee *tracee, uint64_t timeout_ns, bool on_other_cpu)
{
	return tracee->state == TRACEE_RUNNING ? stop(tracer, tracee, timeout_ns, on_other_cpu) : -EAGAIN;
}

int tracer_registers(struct tracee *tracee, struct registers *ret_registers)
{
	struct seized *seized = seized_of(tracee);
	const struct user_regs_struct *regs = seized_regs(seized);
	struct kernel_registers kernel;

	seized->is_read = tracee->state == TRACEE_HELD;
	if (!regs)
		return -errno;
	_Static_assert(sizeof(kernel) == sizeof(*regs), "the same by another name");
	memcpy(&kernel, regs, sizeof(kernel));
	registers_take(&kernel, ret_registers);
	thread_registers_complete(tracee->tid, ret_registers);
	return 0;
}

void tracer_resume(struct tracer *tracer, struct tracee *tracee)
{
	if (tracee->state != TRACEE_HELD)
		return;
	if (tracee->held_in_job_stop)
		tracer_leave_job_stopped(tracer, tracee);
	else
		tracer_continue(tracer, tracee, 0);
}

bool tracer_holds(const struct tracer *tracer)
{
	struct seized *seized, *next;

	HASH_ITER(hh, tracer->seized, seized, next)
		if (seized->is_read && seized->tracee.state == TRACEE_HELD)
			return true;
	return false;
}

bool tracer_awaits_stop(const struct tracer *tracer)
{
	return tracer->expected > 0;
}
