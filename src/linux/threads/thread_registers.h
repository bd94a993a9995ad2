/* SPDX-License-Identifier: MIT */
/* thread_registers: what ptrace tells of a stopped thread besides its general registers. */
#ifndef LJSPY_THREAD_REGISTERS_H
#define LJSPY_THREAD_REGISTERS_H

#include <sys/types.h>

#include "unwind/elf/registers.h"

/* Complete the registers of a thread in a ptrace stop. What the kernel does not tell stays as it is. */
void thread_registers_complete(pid_t tid, struct registers *registers);

#endif
