/* SPDX-License-Identifier: MIT */
#include "unwind/elf/register_part_x86_64.h"

#include "unwind/elf/registers.h"

struct register_part register_part(x86_reg reg)
{
	static const x86_reg names[REGISTER_COUNT][4] = {
		{ X86_REG_RAX, X86_REG_EAX, X86_REG_AX, X86_REG_AL },
		{ X86_REG_RCX, X86_REG_ECX, X86_REG_CX, X86_REG_CL },
		{ X86_REG_RDX, X86_REG_EDX, X86_REG_DX, X86_REG_DL },
		{ X86_REG_RBX, X86_REG_EBX, X86_REG_BX, X86_REG_BL },
		{ X86_REG_RSP, X86_REG_ESP, X86_REG_SP, X86_REG_SPL },
		{ X86_REG_RBP, X86_REG_EBP, X86_REG_BP, X86_REG_BPL },
		{ X86_REG_RSI, X86_REG_ESI, X86_REG_SI, X86_REG_SIL },
		{ X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL },
		{ X86_REG_R8, X86_REG_R8D, X86_REG_R8W, X86_REG_R8B },
		{ X86_REG_R9, X86_REG_R9D, X86_REG_R9W, X86_REG_R9B },
		{ X86_REG_R10, X86_REG_R10D, X86_REG_R10W, X86_REG_R10B },
		{ X86_REG_R11, X86_REG_R11D, X86_REG_R11W, X86_REG_R11B },
		{ X86_REG_R12, X86_REG_R12D, X86_REG_R12W, X86_REG_R12B },
		{ X86_REG_R13, X86_REG_R13D, X86_REG_R13W, X86_REG_R13B },
		{ X86_REG_R14, X86_REG_R14D, X86_REG_R14W, X86_REG_R14B },
		{ X86_REG_R15, X86_REG_R15D, X86_REG_R15W, X86_REG_R15B },
	};
	static const x86_reg high[] = { X86_REG_AH, X86_REG_CH, X86_REG_DH, X86_REG_BH };

	for (int i = 0; i < REGISTER_COUNT; i++)
		for (unsigned int n = 0; n < 4; n++)
			if (names[i][n] == reg)
				return (struct register_part){ i, 8U >> n, 0 };
	for (int i = 0; i < 4; i++)
		if (high[i] == reg)
			return (struct register_part){ i, 1, 8 };
	return (struct register_part){ .index = -1 };
}

int register_dwarf_number(int index)
{
	/* The first eight differ in order from the machine's encoding. */
	static const int first[] = { 0, 2, 1, 3, REGISTER_NUMBER_SP, 6, 4, 5 };

	return index < (int)(sizeof(first) / sizeof(first[0])) ? first[index] : index;
}
