/* SPDX-License-Identifier: MIT */
#include "unwind/elf/registers.h"

#include <stddef.h>
#include <string.h>

/*
 * Without the kernel's word: bits 48 to 54, below the bit that tells the kernel's
 * addresses (Documentation/arm64/pointer-authentication.rst; 48 bits of address).
 */
#define SIGNED_BITS_USUAL UINT64_C(0x007f000000000000)

void registers_call_arguments(const struct registers *registers,
			      uint64_t ret_arguments[static CALL_ARGUMENTS])
{
	memcpy(ret_arguments, registers->x, CALL_ARGUMENTS * sizeof(registers->x[0]));
	ret_arguments[0] = registers->call_argument;
}

int64_t registers_call_result(const struct registers *registers)
{
	return (int64_t)registers->x[REGISTER_X0];
}

void registers_take(const struct kernel_registers *regs, struct registers *ret_registers)
{
	struct registers registers = {
		.sp = regs->sp,
		.pc = regs->pc,
		.flags = regs->pstate,
		.call_number = UINT64_MAX,
		.signed_bits = SIGNED_BITS_USUAL,
	};

	_Static_assert(sizeof(registers.x) == sizeof(regs->regs), "x0 to x30");
	memcpy(registers.x, regs->regs, sizeof(registers.x));
	*ret_registers = registers;
}

uint64_t registers_code_address(const struct registers *registers, uint64_t value)
{
	return value & ~(registers->signed_bits ? registers->signed_bits : SIGNED_BITS_USUAL);
}

bool registers_returned(const struct registers *called, struct memory *stack, struct registers *ret_caller)
{
	(void)stack;
	if (called->unknown & REGISTER_OTHERS)
		return false;
	*ret_caller = *called;
	ret_caller->pc = registers_code_address(called, called->x[REGISTER_LR]);
	return true;
}

uint64_t *registers_locate(struct registers *registers, int number)
{
	if (number >= 0 && number < X_REGISTERS)
		return &registers->x[number];
	switch (number) {
	case REGISTER_NUMBER_SP: return &registers->sp;
	case REGISTER_NUMBER_PC: return &registers->pc;
	default: return NULL;
	}
}

bool registers_get(const struct registers *registers, int number, uint64_t *ret_value)
{
	if (number < 0 || number >= REGISTER_NUMBERS || (registers->unknown & registers_set_of(number)))
		return false;
	if (number < X_REGISTERS)
		*ret_value = registers->x[number];
	else
		*ret_value = number == REGISTER_NUMBER_SP ? registers->sp : registers->pc;
	return true;
}

unsigned int registers_set_of(int number)
{
	if (number == REGISTER_NUMBER_SP || number == REGISTER_NUMBER_PC)
		return 0;
	return number >= REGISTER_X19 && number <= REGISTER_FP
		       ? (unsigned int)REGISTER_FIRST_KEPT << (number - REGISTER_X19)
		       : REGISTER_OTHERS;
}

bool registers_are_kept(int number)
{
	return number >= REGISTER_X19 && number <= REGISTER_FP;
}
