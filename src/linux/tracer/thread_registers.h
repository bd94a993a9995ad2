/* SPDX-License-Identifier: MIT */
/* thread_registers: what the kernel tells of a thread besides its general registers. */
#ifndef LJSPY_THREAD_REGISTERS_H
#define LJSPY_THREAD_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "unwind/elf/registers.h"

/*
 * The general registers of a thread in a ptrace stop, of a kernel that has no PTRACE_GETREGSET
 * (Linux has it since 2.6.34). False with errno, ENOTSUP for a 32-bit program.
 */
bool thread_registers_read_old(pid_t tid, struct user_regs_struct *ret_registers);

/*
 * Complete the registers of a thread in a ptrace stop. What the kernel does not tell stays
 * as it is. Each architecture has its own .c file.
 */
void thread_registers_complete(pid_t tid, struct registers *registers);

/*
 * An address in the mapping of the native stack that a thread was created with, whether it
 * runs there or not; 0 if unknown. Not for the first thread of a process. glibc keeps its
 * data about a thread at the end of the thread's stack, and registers a list there with
 * the kernel.
 */
uint64_t own_stack_address(pid_t tid);

#endif
