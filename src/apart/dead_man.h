/* SPDX-License-Identifier: MIT */
/*
 * dead_man: timers by which the kernel continues a process that is stopped, with SIGCONT.
 *
 * Who sets them anew in time is never signalled. There are two, for one that has run out runs again only once
 * its signal is taken, and a stop in between discards that signal: the timer is lost then until it is set
 * anew. The second one runs out so much later that a stop rarely finds both so. If it does, nothing continues
 * the process.
 */
#ifndef LJSPY_DEAD_MAN_H
#define LJSPY_DEAD_MAN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum { DEAD_MAN_LATER_NS = 250 * 1000 * 1000 }; /* the second one, than the first */

struct dead_man {
	struct dead_man_timer {
		timer_t timer;
		bool is_there;
	} first, second;
	_Atomic uint64_t second_set_ns; /* by dead_man_put_off(); CLOCK_MONOTONIC */
};

/*
 * The calling thread is to take the signals. A user may have only as many timers as pending signals
 * (RLIMIT_SIGPENDING): without any, nobody continues the process.
 */
void dead_man_open(struct dead_man *dead_man);

/*
 * From now on, the process goes on each ns, below a second less DEAD_MAN_LATER_NS; never if that is 0. Once
 * would not do: on a busy machine, the time may be over before the process is stopped, and before somebody
 * sets the timers anew.
 */
void dead_man_set(struct dead_man *dead_man, long ns);

/* The same in a system call less mostly, for who does it often, and with an ns that is not 0. */
void dead_man_put_off(struct dead_man *dead_man, long ns, uint64_t now_ns);

#endif
