/* SPDX-License-Identifier: MIT */
/*
 * own_stack: the native stack that a thread was made with, whether it runs there or not.
 */
#ifndef LJSPY_OWN_STACK_H
#define LJSPY_OWN_STACK_H

#include <stdint.h>
#include <sys/types.h>

/*
 * An address in the mapping of the stack of a thread other than its process's first;
 * 0 if it is not known. glibc keeps what it has of a thread at the end of its stack,
 * and tells the kernel of a list there.
 */
uint64_t own_stack_address(pid_t tid);

#endif
