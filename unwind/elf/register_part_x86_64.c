/* SPDX-License-Identifier: MIT */
#include "unwind/elf/register_part_x86_64.h"

#include "unwind/elf/registers.h"

#define PARTS(index, whole, half, quarter, byte) \
	[X86_REG_##whole] = { index, 8, 0 }, [X86_REG_##half] = { index, 4, 0 }, \
	[X86_REG_##quarter] = { index, 2, 0 }, [X86_REG_##byte] = { index, 1, 0 }

struct register_part register_part(x86_reg reg)
{
	static const struct register_part parts[X86_REG_ENDING] = {
		PARTS(0, RAX, EAX, AX, AL),       PARTS(1, RCX, ECX, CX, CL),
		PARTS(2, RDX, EDX, DX, DL),       PARTS(3, RBX, EBX, BX, BL),
		PARTS(4, RSP, ESP, SP, SPL),      PARTS(5, RBP, EBP, BP, BPL),
		PARTS(6, RSI, ESI, SI, SIL),      PARTS(7, RDI, EDI, DI, DIL),
		PARTS(8, R8, R8D, R8W, R8B),      PARTS(9, R9, R9D, R9W, R9B),
		PARTS(10, R10, R10D, R10W, R10B), PARTS(11, R11, R11D, R11W, R11B),
		PARTS(12, R12, R12D, R12W, R12B), PARTS(13, R13, R13D, R13W, R13B),
		PARTS(14, R14, R14D, R14W, R14B), PARTS(15, R15, R15D, R15W, R15B),
		[X86_REG_AH] = { 0, 1, 8 },       [X86_REG_CH] = { 1, 1, 8 },
		[X86_REG_DH] = { 2, 1, 8 },       [X86_REG_BH] = { 3, 1, 8 },
	};

	if ((unsigned int)reg < X86_REG_ENDING && parts[reg].size)
		return parts[reg];
	return (struct register_part){ .index = -1 };
}

int register_dwarf_number(int index)
{
	/* The first eight differ in order from the machine's encoding. */
	static const int first[] = { 0, 2, 1, 3, REGISTER_NUMBER_SP, 6, 4, 5 };

	return index < (int)(sizeof(first) / sizeof(first[0])) ? first[index] : index;
}
