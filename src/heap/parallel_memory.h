/* SPDX-License-Identifier: MIT */
/*
 * parallel_memory: reads much of a process's memory at once, with a thread on each CPU.
 *
 * One CPU copies some gigabytes a second; while the process is held, its CPUs have nothing
 * else to do. Threads take one range after the other, so that one that does not get a CPU
 * has at most one to finish. Memory that a file is mapped to is read by the caller's thread.
 */
#ifndef LJSPY_PARALLEL_MEMORY_H
#define LJSPY_PARALLEL_MEMORY_H

#include <sys/types.h>

#include "memory/memory.h"
#include "src/linux/proc/maps.h"

struct parallel_memory;

/* plain reads what is not worth sharing. plain and maps must outlive it. NULL when memory is short. */
struct parallel_memory *parallel_memory_new(pid_t pid, struct memory *plain, const struct maps *maps);
void parallel_memory_free(struct parallel_memory *parallel); /* NULL is allowed */

/*
 * Start the threads, if there is more than one CPU to run on. From now on large reads are shared.
 * Not while a thread is held: it takes a while.
 */
void parallel_memory_start(struct parallel_memory *parallel);

/* The memory to read from; owned by parallel. One thread reads at a time. */
struct memory *parallel_memory_memory(struct parallel_memory *parallel);

#endif
