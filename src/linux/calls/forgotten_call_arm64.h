/* SPDX-License-Identifier: MIT */
/*
 * forgotten_call_arm64: what the kernel does not tell of a call that a stop has ended.
 *
 * Before it stops a thread for a tracer on its way out of a call, the arm64 kernel forgets that
 * there was one (do_signal(), arch/arm64/kernel/signal.c). x8 still has the call's number, and the
 * pc is behind its instruction. The result lies over the first argument in x0. The kernel has
 * kept that argument in pt_regs.orig_x0, which /proc/TID/syscall shows, but only of a thread that
 * is in a call. A tracer may set the number of a call (NT_ARM_SYSTEM_CALL): so ljspy sets
 * it, reads the file, and sets it back. The kernel uses the number for nothing meanwhile.
 */
#ifndef LJSPY_FORGOTTEN_CALL_ARM64_H
#define LJSPY_FORGOTTEN_CALL_ARM64_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { CALL_INSTRUCTION_BYTES = 4 };

/*
 * The number of the call that a thread in a ptrace stop is about to leave, by its pc and x8; -1 if
 * there is none. Instead, it may be about to begin or to begin again a call (*ret_begins).
 */
int64_t forgotten_call_number(pid_t tid, uint64_t pc, uint64_t x8, bool *ret_begins);

/* The first argument of the last call of a thread in a ptrace stop. False if the kernel does not tell. */
bool forgotten_call_argument(pid_t tid, uint64_t number, uint64_t *ret_argument);

#endif
