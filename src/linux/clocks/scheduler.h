/* SPDX-License-Identifier: MIT */
/*
 * scheduler: what the kernel's scheduler says of a thread, in files of /proc.
 */
#ifndef LJSPY_SCHEDULER_H
#define LJSPY_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

enum {
	/* With the NUL; what is longer is cut. */
	SCHEDSTAT_MAX = 128,
	SCHED_MAX = 8192,
};

/* Of schedstat: all since the thread began. */
struct schedstat {
	uint64_t cpu_ns;	/* lags by up to a tick while the thread is on a CPU */
	uint64_t waited_ns;	/* wanting a CPU */
	uint64_t runs;		/* how often it was given one; 0 where the kernel does not count */
};

struct schedstat schedstat_parse(const char *text);

/* Of sched, or of status, which does not tell when. */
struct switches {
	uint64_t count;		/* how often the thread has left its CPU */
	uint64_t sleeps;	/* of these, to go to sleep; a stop is one, too */
	uint64_t left_at;	/* when it was on a CPU last, by the scheduler's clock; 0: not told */
	uint64_t cpu_ns;	/* as in schedstat; 0: not told */
};

/* False if the text is of neither. */
bool switches_parse(const char *text, struct switches *ret_switches);

#endif
