/* SPDX-License-Identifier: MIT */
#include "unwind/symbols/leaf_function.h"

#include <capstone/capstone.h>

enum { BYTES_MAX = 64 << 10 };

/* Is it the stack pointer or a register that calls keep, by any of its names? */
static bool is_kept(uint16_t number)
{
	static const uint16_t kept[] = {
		X86_REG_RSP,  X86_REG_ESP,  X86_REG_SP,   X86_REG_SPL,  X86_REG_RBP,  X86_REG_EBP,
		X86_REG_BP,   X86_REG_BPL,  X86_REG_RBX,  X86_REG_EBX,  X86_REG_BX,   X86_REG_BL,
		X86_REG_BH,   X86_REG_R12,  X86_REG_R12D, X86_REG_R12W, X86_REG_R12B, X86_REG_R13,
		X86_REG_R13D, X86_REG_R13W, X86_REG_R13B, X86_REG_R14,  X86_REG_R14D, X86_REG_R14W,
		X86_REG_R14B, X86_REG_R15,  X86_REG_R15D, X86_REG_R15W, X86_REG_R15B,
	};

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (kept[i] == number)
			return true;
	return false;
}

static bool changes_kept(csh capstone, const cs_insn *insn)
{
	cs_regs read, written;
	uint8_t read_count, written_count;

	if (cs_regs_access(capstone, insn, read, &read_count, written, &written_count) != CS_ERR_OK)
		return true;
	for (uint8_t i = 0; i < written_count; i++)
		if (is_kept(written[i]))
			return true;
	return false;
}

static bool is_leaf(csh capstone, cs_insn *insn, const uint8_t *code, size_t length)
{
	uint64_t address = 0;
	bool returns = false;

	while (length) {
		if (!cs_disasm_iter(capstone, &code, &length, &address, insn))
			return false;
		if (insn->id == X86_INS_RET)
			returns = true;
		else if (changes_kept(capstone, insn))
			return false;
	}
	return returns;
}

bool leaf_function(const uint8_t *code, size_t length)
{
	bool leaf = false;
	cs_insn *insn;
	csh capstone;

	if (length > BYTES_MAX || cs_open(CS_ARCH_X86, CS_MODE_64, &capstone) != CS_ERR_OK)
		return false;
	cs_option(capstone, CS_OPT_DETAIL, CS_OPT_ON);
	insn = cs_malloc(capstone);
	if (insn) {
		leaf = is_leaf(capstone, insn, code, length);
		cs_free(insn, 1);
	}
	cs_close(&capstone);
	return leaf;
}
