/* SPDX-License-Identifier: MIT */
/*
 * ticking_clock: CLOCK_MONOTONIC of a test's own. It goes on whenever it is read, as code that waits for a
 * time without sleeping must have it.
 */
#ifndef LJSPY_TICKING_CLOCK_H
#define LJSPY_TICKING_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "tests/unit/instead_of.h"

enum { TICK_NS = 10 };

static uint64_t now_ns;

INSTEAD_OF(clock_gettime);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	if (clock != CLOCK_MONOTONIC)
		return __real_clock_gettime(clock, ret_time);
	now_ns += TICK_NS;
	*ret_time = (struct timespec){ .tv_sec = (time_t)(now_ns / 1000000000),
				       .tv_nsec = (long)(now_ns % 1000000000) };
	return 0;
}

#endif
