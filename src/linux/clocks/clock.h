/* SPDX-License-Identifier: MIT */
/*
 * clock: the kernel's clocks in nanoseconds.
 */
#ifndef LJSPY_CLOCK_H
#define LJSPY_CLOCK_H

#include <stdint.h>
#include <time.h>

enum { NS_PER_SECOND = 1000000000 };

/* The time of a clock that every Linux has; errors are not reported. */
static inline uint64_t clock_now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

/* Let the time pass without giving the CPU away: to sleep takes longer than some microseconds. */
static inline void clock_spin_until(clockid_t clock, uint64_t time_ns)
{
	while (clock_now_ns(clock) < time_ns)
		continue;
}

#endif
