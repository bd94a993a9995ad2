/* SPDX-License-Identifier: MIT */
#include "unwind/symbols/leaf_function.h"

#include <capstone/capstone.h>

#include "unwind/elf/register_part_x86_64.h"

enum { BYTES_MAX = 64 << 10 };

/* Is it the stack pointer or a register that calls keep, by any of its names? */
static bool is_kept(uint16_t number)
{
	int index = register_part(number).index;

	return index == RSP || index == RBP || index == RBX || index >= R12;
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
