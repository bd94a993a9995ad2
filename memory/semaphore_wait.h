/* SPDX-License-Identifier: MIT */
/*
 * semaphore_wait: wait for a semaphore until a time of the monotonic clock.
 */
#ifndef LJSPY_SEMAPHORE_WAIT_H
#define LJSPY_SEMAPHORE_WAIT_H

#include <semaphore.h>
#include <time.h>

/* Like sem_clockwait() with CLOCK_MONOTONIC, which glibc has since 2.30 and musl has not. */
int semaphore_wait_until(sem_t *semaphore, const struct timespec *end);

#endif
