/*
 * registers: the general registers of a stopped thread.
 *
 * One structure per architecture; everything that gives a register a meaning
 * for LuaJIT's VM is in unwind/vm_x86_64.c.
 */
#ifndef LJSPY_REGISTERS_H
#define LJSPY_REGISTERS_H

#include <stdint.h>

struct registers {
	uint64_t rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp;
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
	uint64_t rip;
	uint64_t orig_rax;	/* system call number; -1 outside of one */
};

#endif
