/* SPDX-License-Identifier: MIT */
#include "unwind/elf/registers.h"

#include <stddef.h>
#include <string.h>

static const struct {
	size_t offset;
	unsigned int set;
} numbers[REGISTER_NUMBERS] = {
	{ offsetof(struct registers, rax), REGISTER_OTHERS },
	{ offsetof(struct registers, rdx), REGISTER_OTHERS },
	{ offsetof(struct registers, rcx), REGISTER_OTHERS },
	{ offsetof(struct registers, rbx), REGISTER_RBX },
	{ offsetof(struct registers, rsi), REGISTER_OTHERS },
	{ offsetof(struct registers, rdi), REGISTER_OTHERS },
	{ offsetof(struct registers, rbp), REGISTER_RBP },
	{ offsetof(struct registers, sp), 0 },
	{ offsetof(struct registers, r8), REGISTER_OTHERS },
	{ offsetof(struct registers, r9), REGISTER_OTHERS },
	{ offsetof(struct registers, r10), REGISTER_OTHERS },
	{ offsetof(struct registers, r11), REGISTER_OTHERS },
	{ offsetof(struct registers, r12), REGISTER_R12 },
	{ offsetof(struct registers, r13), REGISTER_R13 },
	{ offsetof(struct registers, r14), REGISTER_R14 },
	{ offsetof(struct registers, r15), REGISTER_R15 },
	{ offsetof(struct registers, pc), 0 },
};

void registers_call_arguments(const struct registers *registers,
			      uint64_t ret_arguments[static CALL_ARGUMENTS])
{
	const uint64_t arguments[CALL_ARGUMENTS] = { registers->rdi, registers->rsi, registers->rdx,
						     registers->r10, registers->r8,  registers->r9 };

	memcpy(ret_arguments, arguments, sizeof(arguments));
}

int64_t registers_call_result(const struct registers *registers)
{
	return (int64_t)registers->rax;
}

void registers_take(const struct kernel_registers *regs, struct registers *ret_registers)
{
	*ret_registers = (struct registers){
		.rax = regs->rax,
		.rbx = regs->rbx,
		.rcx = regs->rcx,
		.rdx = regs->rdx,
		.rsi = regs->rsi,
		.rdi = regs->rdi,
		.rbp = regs->rbp,
		.sp = regs->rsp,
		.r8 = regs->r8,
		.r9 = regs->r9,
		.r10 = regs->r10,
		.r11 = regs->r11,
		.r12 = regs->r12,
		.r13 = regs->r13,
		.r14 = regs->r14,
		.r15 = regs->r15,
		.pc = regs->rip,
		.flags = regs->eflags,
		.call_number = regs->orig_rax,
		.thread_pointer = regs->fs_base,
	};
}

uint64_t registers_code_address(const struct registers *registers, uint64_t value)
{
	(void)registers;
	return value;
}

bool registers_returned(const struct registers *called, struct memory *stack, struct registers *ret_caller)
{
	struct registers caller = *called;

	if (!memory_u64(stack, called->sp, &caller.pc))
		return false;
	caller.sp += sizeof(caller.pc);
	*ret_caller = caller;
	return true;
}

uint64_t *registers_locate(struct registers *registers, int number)
{
	if (number < 0 || number >= REGISTER_NUMBERS)
		return NULL;
	return (uint64_t *)(void *)((char *)registers + numbers[number].offset);
}

bool registers_get(const struct registers *registers, int number, uint64_t *ret_value)
{
	if (number < 0 || number >= REGISTER_NUMBERS || (registers->unknown & numbers[number].set))
		return false;
	*ret_value = *(const uint64_t *)(const void *)((const char *)registers + numbers[number].offset);
	return true;
}

unsigned int registers_set_of(int number)
{
	return number >= 0 && number < REGISTER_NUMBERS ? numbers[number].set : REGISTER_OTHERS;
}

bool registers_are_kept(int number)
{
	return (registers_set_of(number) & ~(unsigned int)REGISTER_OTHERS) != 0;
}
