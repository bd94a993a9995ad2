/* SPDX-License-Identifier: MIT */
/*
 * Loaded before libc: the wall clock is ahead by the number of seconds in the file $CLOCK_AHEAD. A second
 * number there is for how long the machine was suspended.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	int error = (int)syscall(SYS_clock_gettime, clock, ret_time);
	long ahead = 0, suspended = 0;
	FILE *file;

	if (error || (clock != CLOCK_REALTIME && clock != CLOCK_BOOTTIME))
		return error;
	file = fopen(getenv("CLOCK_AHEAD"), "re");
	if (file && fscanf(file, "%ld %ld", &ahead, &suspended) >= 1)
		ret_time->tv_sec += clock == CLOCK_REALTIME ? ahead : suspended;
	if (file)
		fclose(file);
	return 0;
}
