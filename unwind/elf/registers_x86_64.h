/* SPDX-License-Identifier: MIT */
/* registers_x86_64: the general registers of x86-64, and their numbers. */
#ifndef LJSPY_REGISTERS_X86_64_H
#define LJSPY_REGISTERS_X86_64_H

#include <elf.h>
#include <stdint.h>

enum { MACHINE_OWN = EM_X86_64 }; /* e_machine of the processes that run here */

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

/* struct user_regs_struct (asm/user_64.h) */
struct kernel_registers {
	uint64_t r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi;
	uint64_t orig_rax, rip, cs, eflags, rsp, ss, fs_base, gs_base, ds, es, fs, gs;
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

enum { CALL_PUSHES = 8 }; /* bytes: its return address */

/* DWARF's numbers of registers (System V ABI for x86-64, figure 3.36), which libunwind uses, too. */
enum {
	/*
	 * rbx. For registers without a rule, libdw uses a list of those that calls keep, which has rax
	 * in its place (elfutils 0.188, backends/x86_64_cfi.c).
	 */
	REGISTER_NUMBER_LIBDW_MISSES = 3,
	REGISTER_NUMBER_SP = 7,
	REGISTER_NUMBER_PC = 16,
	REGISTER_NUMBER_RETURN = REGISTER_NUMBER_PC, /* the column of the return address */
	REGISTER_NUMBERS = 17,
	REGISTER_COLUMNS = 17, /* of unwind tables, that ljspy follows */
	REGISTER_NUMBERS_IN_TABLES = REGISTER_NUMBERS,
};

enum { TABLE_OP_NEGATES_SIGNATURE = 0 }; /* return addresses have no signature: DW_CFA_nop */

/* sizeof(MCode) (lj_jit.h), in which LuaJIT counts its machine code: SnapShot.mcofs. */
enum { MCODE_BYTES = 1 };

#endif
