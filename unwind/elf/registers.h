/* SPDX-License-Identifier: MIT */
/*
 * registers: the general registers of a stopped thread.
 *
 * Each architecture has its own structure. unwind/vm knows what the registers
 * mean to LuaJIT's VM.
 */
#ifndef LJSPY_REGISTERS_H
#define LJSPY_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>

struct user_regs_struct;

/* Registers that are unknown after a look without a stop, or in a lost caller. */
enum register_set {
	REGISTER_RBP = 1 << 0,
	REGISTER_RBX = 1 << 1,
	REGISTER_R12 = 1 << 2,
	REGISTER_R13 = 1 << 3,
	REGISTER_R14 = 1 << 4,
	REGISTER_R15 = 1 << 5,
	REGISTER_OTHERS = 1 << 6, /* those that a called function need not keep */
	REGISTERS_ALL_BUT_PC_AND_SP = (1 << 7) - 1,
};

struct registers {
	uint64_t rax, rbx, rcx, rdx, rsi, rdi, rbp, sp;
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
	uint64_t pc;
	uint64_t flags;
	uint64_t call_number;    /* of the system call; -1 outside of one */
	uint64_t thread_pointer; /* address of its thread-local storage; 0 if not known */
	unsigned int unknown;    /* enum register_set: these hold no value */
};

/* DWARF's numbers of registers (System V ABI for x86-64, figure 3.36), which libunwind uses, too. */
enum {
	REGISTER_NUMBER_RBX = 3,
	REGISTER_NUMBER_RSP = 7,
	REGISTER_NUMBER_PC = 16, /* the return address */
	REGISTER_NUMBERS = 17,
};

/* The arguments of the system call that the thread is in, and its result. */
enum { CALL_ARGUMENTS = 6 };
void registers_call_arguments(const struct registers *registers,
			      uint64_t ret_arguments[static CALL_ARGUMENTS]);
int64_t registers_call_result(const struct registers *registers);

/* Take a thread's registers as the kernel gives them to ptrace and to cores. */
void registers_take(const struct user_regs_struct *regs, struct registers *ret_registers);

/* The field that holds the register of a number; NULL if there is none. */
uint64_t *registers_locate(struct registers *registers, int number);

/* The value of the register of a number; false if it is unknown. */
bool registers_get(const struct registers *registers, int number, uint64_t *ret_value);

/* The bit of enum register_set for the register of a number; 0 for pc and stack pointer. */
unsigned int registers_set_of(int number);

#endif
