/* SPDX-License-Identifier: MIT */
/*
 * registers: the general registers of a stopped thread.
 *
 * Each architecture has a header with its own struct registers, in which pc, sp,
 * flags, call_number, thread_pointer and unknown are there for all, its own enum
 * register_set, and the numbers that DWARF gives its registers. unwind/vm knows
 * what the registers mean to LuaJIT's VM.
 */
#ifndef LJSPY_REGISTERS_H
#define LJSPY_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/memory.h"
#include "unwind/elf/machine.h"

#ifdef LJSPY_READS_X86_64
#include "unwind/elf/registers_x86_64.h"
#endif
#ifdef LJSPY_READS_ARM64
#include "unwind/elf/registers_arm64.h"
#endif

/* The arguments of the system call that the thread is in, and its result. */
enum { CALL_ARGUMENTS = 6 };
void registers_call_arguments(const struct registers *registers,
			      uint64_t ret_arguments[static CALL_ARGUMENTS]);
int64_t registers_call_result(const struct registers *registers);

/*
 * Take a thread's registers as the kernel gives them to ptrace and to cores: in each machine's own struct
 * kernel_registers, which is user_regs_struct there.
 */
void registers_take(const struct kernel_registers *regs, struct registers *ret_registers);

/* The code address that a return address in a register or on the stack stands for: without its signature. */
uint64_t registers_code_address(const struct registers *registers, uint64_t value);

/*
 * The registers after the return of a function that was just called, or that has put
 * nothing on the stack: called are its own. False if they cannot be known.
 */
bool registers_returned(const struct registers *called, struct memory *stack, struct registers *ret_caller);

/* The field that holds the register of a number; NULL if there is none. */
uint64_t *registers_locate(struct registers *registers, int number);

/* The value of the register of a number; false if it is unknown. */
bool registers_get(const struct registers *registers, int number, uint64_t *ret_value);

/* The bit of enum register_set for the register of a number; 0 for pc and stack pointer. */
unsigned int registers_set_of(int number);

/* Does a called function keep the register of a number? False for pc and stack pointer. */
bool registers_are_kept(int number);

#endif
