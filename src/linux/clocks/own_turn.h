/* SPDX-License-Identifier: MIT */
/*
 * own_turn: the time that ljspy's own thread has on its CPU.
 *
 * A look is only worth something at the moment at which it was due. If ljspy
 * waits for a CPU, it looks later, mostly just after another thread has left its
 * CPU. And held threads wait with ljspy if its time slice ends during the hold.
 * So a turn, from one sleep to the next, records how long ljspy waited before it
 * began, how much CPU time ljspy has used in it, and whose CPU ljspy took.
 *
 * Belongs to one thread.
 */
#ifndef LJSPY_OWN_TURN_H
#define LJSPY_OWN_TURN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct own_turn {
	uint64_t late_ns; /* how long it waited for a CPU before it began */
	/*
	 * When it was woken, CLOCK_MONOTONIC: until then there was nothing to
	 * report. 0 if unknown: it did not sleep, or ljspy was stopped meanwhile.
	 */
	uint64_t woken_ns;

	/* The module's own. */
	int schedstat_fd, sched_fd; /* -1 if not open */
	uint64_t waited_ns, runs;   /* of schedstat, when the last sleep began or ended */
	uint64_t begin_cpu_ns;
	uint64_t begin_raw_ns;                 /* CLOCK_MONOTONIC_RAW */
	int begin_cpu;                         /* where it began; -1: unknown */
	int64_t credit_ns;                     /* of CPU time */
	uint64_t credit_cpu_ns, credit_raw_ns; /* its clocks, as of then */
	uint64_t began_at;                     /* by the scheduler's clock; 0: not read yet */
	struct {
		uint64_t ns;    /* what the scheduler's clock is ahead of CLOCK_MONOTONIC_RAW */
		int cpu;        /* on this CPU */
		uint64_t until; /* by CLOCK_MONOTONIC_RAW; 0: unknown */
	} ahead;
};

/* Without schedstat, late_ns is always 0. */
void own_turn_open(struct own_turn *turn);
void own_turn_close(struct own_turn *turn);

/* Like sigtimedwait(). If the thread slept, a new turn begins. */
int own_turn_wait(struct own_turn *turn, const sigset_t *signals, siginfo_t *ret_info,
		  const struct timespec *timeout);

/* Has the turn used so much CPU time that it may end at any moment? */
bool own_turn_is_used_up(const struct own_turn *turn);

/*
 * Has ljspy used so little CPU time lately, an eighth of a CPU, that others hardly miss it? The answer may be
 * a millisecond old.
 */
bool own_turn_is_modest(struct own_turn *turn);

/* End the turn by a short sleep and begin another one. */
void own_turn_renew(struct own_turn *turn);

/* How long ljspy has waited for a CPU since the turn began, in ns. */
uint64_t own_turn_waited(const struct own_turn *turn);

/*
 * A thread left its CPU at left_at by the scheduler's clock. Did the turn begin
 * just then? If so, ljspy has taken this very CPU from the thread.
 */
bool own_turn_began_at(struct own_turn *turn, uint64_t left_at);

#endif
