/* SPDX-License-Identifier: MIT */
/*
 * live_memory: the memory of a running process.
 *
 * Reads by process_vm_readv(), or through /proc/PID/mem if that call is missing or
 * refused, whether the process is stopped or not. After the process has run another
 * program (execve), make a new live_memory.
 */
#ifndef LJSPY_LIVE_MEMORY_H
#define LJSPY_LIVE_MEMORY_H

#include <sys/types.h>

#include "memory/errand.h"
#include "memory/memory.h"
#include "src/linux/proc/maps.h"

struct live_memory;

/* NULL when memory is short. Touches the process only at the first read. */
struct live_memory *live_memory_new(pid_t pid);
void live_memory_free(struct live_memory *live);

/*
 * Reading a page that is not in memory waits for its file, or for who has registered
 * it with userfaultfd(2). From now on such reads are errands (errand.h), of memory
 * without files only if the errands serve nobody; if the caller may not wait, they are
 * MEMORY_NOT_CAPTURED. And errands_pause() is called for each megabyte; once it is false, so is all of the
 * rest. maps and errands must outlive live.
 */
void live_memory_beware(struct live_memory *live, const struct maps *maps, struct errands *errands);

/* The maps have changed. */
void live_memory_forget_maps(struct live_memory *live);

/* The memory to read from; owned by live. */
struct memory *live_memory_memory(struct live_memory *live);

#endif
