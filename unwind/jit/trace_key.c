/* SPDX-License-Identifier: MIT */
#include "unwind/jit/trace_key.h"

bool trace_key_of_bytecode(const struct layout *layout, const struct proto *proto, enum bytecode_op op,
			   uint32_t instruction, uint64_t *ret_key)
{
	switch ((int)op) {
	case BC_TGETS:
	case BC_TSETS: return proto_kgc(layout, proto, bytecode_c(instruction), ret_key);
	case BC_GGET:
	case BC_GSET: return proto_kgc(layout, proto, bytecode_d(instruction), ret_key);
	default: return false;
	}
}

bool trace_key_of_lookup(const struct trace *trace, const struct layout *layout,
			 const struct trace_instruction *ins, uint64_t *ret_key)
{
	struct trace_instruction slot;
	uint32_t key = ins->op2;

	if (key < TRACE_REF_BIAS && trace_instruction(trace, layout, key, &slot) && slot.op == IR_KSLOT)
		key = slot.op1;
	return key < TRACE_REF_BIAS && trace_constant(trace, layout, key, ret_key);
}
