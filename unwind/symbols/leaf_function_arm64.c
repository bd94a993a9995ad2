/* SPDX-License-Identifier: MIT */
#include "unwind/symbols/leaf_function.h"

#include <capstone/capstone.h>

enum { BYTES_MAX = 64 << 10 };

/* Is it the stack pointer, the link register, or a register that calls keep? */
static bool is_kept(unsigned int reg)
{
	return (reg >= ARM64_REG_X19 && reg <= ARM64_REG_X28) ||
	       (reg >= ARM64_REG_W19 && reg <= ARM64_REG_W30) || reg == ARM64_REG_X29 ||
	       reg == ARM64_REG_X30 || reg == ARM64_REG_SP || reg == ARM64_REG_WSP;
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
		if (insn->id == ARM64_INS_RET)
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

	if (length > BYTES_MAX || cs_open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, &capstone) != CS_ERR_OK)
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
