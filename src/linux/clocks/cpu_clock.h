/* SPDX-License-Identifier: MIT */
/*
 * cpu_clock: the CPU time of a process, and a timer on it.
 *
 * The clock counts the CPU time of all threads of the process, living and dead.
 * The kernel checks the timer once per tick (usually 1 to 4 ms) on which the
 * process runs: an expiry comes up to one tick late and can stand for several
 * periods.
 */
#ifndef LJSPY_CPU_CLOCK_H
#define LJSPY_CPU_CLOCK_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct cpu_clock {
	clockid_t id;
	timer_t timer;
	bool armed;
};

/* Open the clock of a process. Needs no privilege. 0 or -ESRCH. Free with cpu_clock_close(). */
int cpu_clock_open(pid_t pid, struct cpu_clock *ret_clock);
void cpu_clock_close(struct cpu_clock *clock);

/* The CPU time so far in *ret_ns. 0, or -ESRCH when the process has ended. */
int cpu_clock_now(const struct cpu_clock *clock, uint64_t *ret_ns);

/*
 * Send signal, with si_value.sival_int = index, to the calling thread after each
 * period of CPU time of the process. The signal must be blocked in every thread
 * of ljspy; take it with sigwaitinfo() or sigtimedwait(). A second call changes
 * the period. 0 or a negative errno, -ESRCH when the process has ended.
 */
int cpu_clock_start(struct cpu_clock *clock, int signal, int index, uint64_t period_ns);
void cpu_clock_stop(struct cpu_clock *clock);

#endif
