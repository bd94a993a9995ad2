/* SPDX-License-Identifier: MIT */
#include "unwind/jit/trace_key.h"

bool trace_key_constant(const struct layout *layout, const struct proto *proto, unsigned index,
			uint64_t *ret_object)
{
	unsigned size = layout_ref_size(layout);
	uint64_t k = 0, object = 0;

	/* Object constants lie below GCproto.k. */
	if (!proto_load(proto, proto->address + (uint64_t)layout->GCproto_k, &k, size) ||
	    !proto_load(proto, k - (uint64_t)(index + 1) * size, &object, size))
		return false;
	*ret_object = object;
	return true;
}

bool trace_key_of_bytecode(const struct layout *layout, const struct proto *proto, enum bytecode_op op,
			   uint32_t instruction, uint64_t *ret_key)
{
	switch ((int)op) {
	case BC_TGETS:
	case BC_TSETS: return trace_key_constant(layout, proto, bytecode_c(instruction), ret_key);
	case BC_GGET:
	case BC_GSET: return trace_key_constant(layout, proto, bytecode_d(instruction), ret_key);
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
