/* SPDX-License-Identifier: MIT */
/*
 * own_stack: the native stack that a thread was created with, whether it runs there or not.
 */
#ifndef LJSPY_OWN_STACK_H
#define LJSPY_OWN_STACK_H

#include <stdint.h>
#include <sys/types.h>

/*
 * An address in the mapping of a thread's stack; 0 if unknown. Not for the first thread
 * of a process. glibc keeps its data about a thread at the end of the thread's stack, and
 * registers a list there with the kernel.
 */
uint64_t own_stack_address(pid_t tid);

#endif
