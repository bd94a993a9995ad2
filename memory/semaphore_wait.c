/* SPDX-License-Identifier: MIT */
#include "memory/semaphore_wait.h"

#ifdef __GLIBC__

int semaphore_wait_until(sem_t *semaphore, const struct timespec *end)
{
	return sem_clockwait(semaphore, CLOCK_MONOTONIC, end);
}

#else

enum { NS_PER_SECOND = 1000000000 };

static struct timespec sum(struct timespec a, struct timespec b)
{
	struct timespec result = { .tv_sec = a.tv_sec + b.tv_sec, .tv_nsec = a.tv_nsec + b.tv_nsec };

	if (result.tv_nsec >= NS_PER_SECOND) {
		result.tv_sec++;
		result.tv_nsec -= NS_PER_SECOND;
	} else if (result.tv_nsec < 0) {
		result.tv_sec--;
		result.tv_nsec += NS_PER_SECOND;
	}
	return result;
}

/* musl's sem_timedwait() turns the time into a span at once, so that the clock may be set meanwhile. */
int semaphore_wait_until(sem_t *semaphore, const struct timespec *end)
{
	struct timespec wall, steady;

	clock_gettime(CLOCK_REALTIME, &wall);
	clock_gettime(CLOCK_MONOTONIC, &steady);
	steady.tv_sec = -steady.tv_sec;
	steady.tv_nsec = -steady.tv_nsec;
	wall = sum(sum(*end, steady), wall);
	return sem_timedwait(semaphore, &wall);
}

#endif
