/* SPDX-License-Identifier: MIT */
/* registers_arm64: the general registers of arm64, and their numbers. */
#ifndef LJSPY_REGISTERS_ARM64_H
#define LJSPY_REGISTERS_ARM64_H

#include <elf.h>
#include <stdint.h>

enum { MACHINE_OWN = EM_AARCH64 }; /* e_machine of the processes that run here */

enum {
	REGISTER_X0 = 0,
	REGISTER_X8 = 8, /* the number of a system call */
	REGISTER_X19 = 19,
	REGISTER_FP = 29,
	REGISTER_LR = 30,
	X_REGISTERS = 31,
};

/* Registers that are unknown after a look without a stop, or in a lost caller. */
enum register_set {
	REGISTER_FIRST_KEPT = 1 << 0, /* x19; x20 is the next bit, and so on to x29 */
	REGISTER_OTHERS = 1 << 11,    /* those that a called function need not keep, and x30 */
	REGISTERS_ALL_BUT_PC_AND_SP = (1 << 12) - 1,
};

/* struct user_pt_regs (asm/ptrace.h) */
struct kernel_registers {
	uint64_t regs[X_REGISTERS], sp, pc, pstate;
};

struct registers {
	uint64_t x[X_REGISTERS];
	uint64_t sp;
	uint64_t pc;
	uint64_t flags;          /* PSTATE */
	uint64_t call_number;    /* of the system call; -1 outside of one */
	uint64_t call_argument;  /* its first; x0 may have its result */
	uint64_t thread_pointer; /* TPIDR_EL0: address of its thread-local storage; 0 if not known */
	uint64_t signed_bits;    /* those of a code address that may hold a pointer authentication code */
	unsigned int unknown;    /* enum register_set: these hold no value */
};

enum { CALL_PUSHES = 0 }; /* bytes: nothing: there is a link register */

/* DWARF's numbers of registers (DWARF for the Arm 64-bit Architecture, 4.1), which libunwind uses, too. */
enum {
	REGISTER_NUMBER_LIBDW_MISSES = -1, /* none */
	REGISTER_NUMBER_RETURN = REGISTER_LR,
	REGISTER_NUMBER_SP = 31,
	REGISTER_NUMBER_PC = 32, /* of libunwind; the tables use the column of x30 */
	REGISTER_NUMBERS = 33,
	REGISTER_COLUMNS = 32,           /* of unwind tables, that ljspy follows */
	REGISTER_NUMBERS_IN_TABLES = 96, /* with those of vector registers, which ljspy does not follow */
};

/* DW_CFA_AARCH64_negate_ra_state: the return address is signed from here on, or no more. */
enum { TABLE_OP_NEGATES_SIGNATURE = 0x2d };

/* sizeof(MCode) (lj_jit.h), in which LuaJIT counts its machine code: SnapShot.mcofs. */
enum { MCODE_BYTES = 4 };

#endif
