/* SPDX-License-Identifier: MIT */
#include "unwind/vm/vm_flow.h"

#include <stdlib.h>

#include <capstone/capstone.h>

enum { CODE_MAX = 256 << 10 };

static bool is_end(const cs_insn *insn)
{
	return insn->id == X86_INS_JMP || insn->id == X86_INS_RET;
}

static void add_instruction(struct vm_flow *flow, csh capstone, const cs_insn *insn)
{
	const cs_x86 *x86 = &insn->detail->x86;

	if (is_end(insn))
		flow->ends[flow->end_count++] = insn->address + insn->size;
	if (cs_insn_group(capstone, insn, CS_GRP_JUMP) && x86->op_count == 1 &&
	    x86->operands[0].type == X86_OP_IMM)
		flow->jumps[flow->jump_count++] = (struct vm_jump){
			.from = insn->address,
			.to = (uint64_t)x86->operands[0].imm,
		};
}

static void decode(struct vm_flow *flow, const uint8_t *code, size_t length, uint64_t address)
{
	cs_insn *insn;
	csh capstone;

	if (cs_open(CS_ARCH_X86, CS_MODE_64, &capstone) != CS_ERR_OK)
		return;
	cs_option(capstone, CS_OPT_DETAIL, CS_OPT_ON);
	insn = cs_malloc(capstone);
	while (insn && length) {
		if (cs_disasm_iter(capstone, &code, &length, &address, insn)) {
			add_instruction(flow, capstone, insn);
			continue;
		}
		code++;
		length--;
		address++;
	}
	if (insn)
		cs_free(insn, 1);
	cs_close(&capstone);
}

bool vm_flow_read(struct memory *memory, const struct vm_code *vm, struct vm_flow *ret_flow)
{
	size_t length = vm->end - vm->begin;
	uint8_t *code;

	*ret_flow = (struct vm_flow){ 0 };
	if (length > CODE_MAX)
		return false;
	code = malloc(length);
	ret_flow->jumps = calloc(length, sizeof(*ret_flow->jumps));
	ret_flow->ends = calloc(length, sizeof(*ret_flow->ends));
	if (code && ret_flow->jumps && ret_flow->ends &&
	    memory_read(memory, vm->begin, code, length) == MEMORY_OK)
		decode(ret_flow, code, length, vm->begin);
	free(code);
	return ret_flow->end_count > 0;
}

void vm_flow_clear(struct vm_flow *flow)
{
	free(flow->jumps);
	free(flow->ends);
}
