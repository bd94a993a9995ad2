/* SPDX-License-Identifier: MIT */
/*
 * own_turn: the time that ljspy's own thread has on its CPU.
 *
 * A look is worth something only at the moment at which it was due. Whoever
 * has to wait for a CPU looks later, and mostly just when somebody else has left
 * his. And what is held waits with ljspy, if its time is used up meanwhile. So a turn,
 * from a sleep to the next, knows how long it had to wait before it began, how
 * much has been used of it, and whose CPU it has taken.
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
	uint64_t late_ns;	/* how long it had to wait for a CPU, once it was to begin */
	/*
	 * Up to then nobody had anything to tell: CLOCK_MONOTONIC. 0 if that is not
	 * known, as it did not sleep, or ljspy was stopped meanwhile.
	 */
	uint64_t woken_ns;

	/* The module's own. */
	int schedstat_fd, sched_fd;	/* -1 if not open */
	uint64_t waited_ns, runs;	/* as the kernel had counted when the last sleep began, or ended */
	uint64_t begin_cpu_ns;
	uint64_t began_at;		/* by the scheduler's clock; 0: not asked yet */
};

/* Where the kernel does not tell, nothing is ever late. */
void own_turn_open(struct own_turn *turn);
void own_turn_close(struct own_turn *turn);

/* As sigtimedwait(); a new turn begins if it has slept. */
int own_turn_wait(struct own_turn *turn, const sigset_t *signals, siginfo_t *ret_info,
		  const struct timespec *timeout);

/* Has as much been used of it that it may end any moment? */
bool own_turn_is_used_up(const struct own_turn *turn);

/* End it and begin another one. */
void own_turn_renew(struct own_turn *turn);

/*
 * Did the turn begin when somebody left his CPU, at that time by the scheduler's
 * clock? Then it is this CPU, and ljspy has put him off it.
 */
bool own_turn_began_at(struct own_turn *turn, uint64_t left_at);

#endif
