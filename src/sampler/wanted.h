/* SPDX-License-Identifier: MIT */
/*
 * wanted: the processes that the user asked for, from one run of the sampler to the next.
 *
 * A process that ends meanwhile may leave its id to another one: the time at which each
 * started tells them apart.
 */
#ifndef LJSPY_WANTED_H
#define LJSPY_WANTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/sampler/sampler.h"

struct wanted;

/*
 * When a process started, in ticks of CLOCK_BOOTTIME: unique together with its id; 0 if it has ended,
 * UINT64_MAX if it is in the middle of an execve(). This never waits for its memory.
 */
uint64_t wanted_start(pid_t pid);
/* Is the process that wanted_start() was of still there? */
bool wanted_is_left(pid_t pid, uint64_t start_ticks);
/* Is the process with this id one of options->unreadable? */
bool wanted_is_unreadable(const struct sampler_options *options, pid_t pid);

/* Look when the processes started. NULL when memory is short. */
struct wanted *wanted_new(const pid_t *pids, size_t count);
void wanted_free(struct wanted *wanted);

/*
 * Fill in the ids of those that are still there, in their order, and return how many. There is
 * room for all. One that was not there in the beginning is not left out for that. Any thread may call it.
 */
size_t wanted_left(const struct wanted *wanted, pid_t *ret_pids);

/* How many there are, whether or not they are still there. */
size_t wanted_count(const struct wanted *wanted);

#endif
