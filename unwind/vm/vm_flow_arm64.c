/* SPDX-License-Identifier: MIT */
#include "unwind/vm/vm_flow.h"

#include <stdlib.h>

#include <capstone/capstone.h>

enum { CODE_MAX = 256 << 10, INSTRUCTION_BYTES = 4 };

static bool is_end(const cs_insn *insn)
{
	return (insn->id == ARM64_INS_B && insn->detail->arm64.cc == ARM64_CC_INVALID) ||
	       insn->id == ARM64_INS_BR || insn->id == ARM64_INS_RET;
}

/* The target is the last operand: of cbz and tbz, others come first. */
static bool jumps(csh capstone, const cs_insn *insn, uint64_t *ret_target)
{
	const cs_arm64 *arm64 = &insn->detail->arm64;
	const cs_arm64_op *last = arm64->operands + arm64->op_count - 1;

	if (!cs_insn_group(capstone, insn, CS_GRP_JUMP) || arm64->op_count == 0 || last->type != ARM64_OP_IMM)
		return false;
	*ret_target = (uint64_t)last->imm;
	return true;
}

static void add_instruction(struct vm_flow *flow, csh capstone, const cs_insn *insn)
{
	uint64_t target;

	if (is_end(insn))
		flow->ends[flow->end_count++] = insn->address + insn->size;
	if (jumps(capstone, insn, &target))
		flow->jumps[flow->jump_count++] = (struct vm_jump){ .from = insn->address, .to = target };
}

static void decode(struct vm_flow *flow, const uint8_t *code, size_t length, uint64_t address)
{
	cs_insn *insn;
	csh capstone;

	if (cs_open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, &capstone) != CS_ERR_OK)
		return;
	cs_option(capstone, CS_OPT_DETAIL, CS_OPT_ON);
	insn = cs_malloc(capstone);
	while (insn && length >= INSTRUCTION_BYTES) {
		if (cs_disasm_iter(capstone, &code, &length, &address, insn)) {
			add_instruction(flow, capstone, insn);
			continue;
		}
		code += INSTRUCTION_BYTES;
		length -= INSTRUCTION_BYTES;
		address += INSTRUCTION_BYTES;
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
