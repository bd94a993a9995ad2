/* SPDX-License-Identifier: MIT */
/* traced_process: the threads of one process, seized, and the means to hold them all. */
#ifndef LJSPY_TRACED_PROCESS_H
#define LJSPY_TRACED_PROCESS_H

#include "src/inspect/known_files.h"
#include "src/inspect/patience.h"
#include "src/linux/threads/hold.h"
#include "src/linux/threads/threads.h"

struct traced_process {
	struct patience patience; /* given, with its tracer */
	const struct known_files *files;
	struct threads *threads;
	struct hold *hold;
};

/*
 * Seize the threads of a process, and be patient about its files until traced_process_end(). Call it
 * from the tracer's thread; traced must stay where it is. 0 or a negative errno. End it in any case.
 */
int traced_process_begin(struct traced_process *traced, pid_t pid, const struct known_files *files);
void traced_process_end(struct traced_process *traced);

#endif
