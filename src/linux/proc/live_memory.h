/* SPDX-License-Identifier: MIT */
/*
 * live_memory: the memory of a running process.
 *
 * Reads by process_vm_readv(), or through /proc/PID/mem where that call is
 * missing or refused. Works whether the process is stopped or not. After the
 * process has run another program (execve), make a new one.
 */
#ifndef LJSPY_LIVE_MEMORY_H
#define LJSPY_LIVE_MEMORY_H

#include <sys/types.h>

#include "memory/errand.h"
#include "memory/memory.h"
#include "src/linux/proc/maps.h"

enum live_memory_method {
	LIVE_MEMORY_CALL,	/* process_vm_readv() */
	LIVE_MEMORY_FILE,	/* /proc/PID/mem */
};

struct live_memory;

/* NULL when memory is short. Nothing is tried before the first read. */
struct live_memory *live_memory_new(pid_t pid);
void live_memory_free(struct live_memory *live);

/*
 * Where a file is mapped, or may be, and the page is not in memory, reading waits for the file.
 * From now on that is an errand (errand.h); if it may not be waited for, nothing is
 * captured. Both must outlive it.
 */
void live_memory_beware(struct live_memory *live, const struct maps *maps, struct errands *errands);

/* They have changed. */
void live_memory_forget_maps(struct live_memory *live);

/* Seen as memory; owned by live. */
struct memory *live_memory_memory(struct live_memory *live);

/* What is in use, for information. */
enum live_memory_method live_memory_method(const struct live_memory *live);

#endif
