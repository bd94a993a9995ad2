/* SPDX-License-Identifier: MIT */
#include "unwind/trace/trace_ffi.h"

#include "unwind/trace/trace_block.h"

/* The function that an IR_CALLXS calls: for some calling conventions, its type stands beside it. */
static uint32_t function_of(const struct trace *trace, const struct layout *layout,
			    const struct trace_instruction *call)
{
	struct trace_instruction operand;

	if (trace_instruction(trace, layout, call->op2, &operand) && operand.op == IR_CARG)
		return operand.op1;
	return call->op2;
}

/* May this IR_CALLXS be the call of that callee? */
static bool may_be(const struct trace *trace, const struct layout *layout,
		   const struct trace_instruction *call, enum trace_callee callee, uint64_t address)
{
	uint32_t function = function_of(trace, layout, call);
	bool is_constant = function < TRACE_REF_BIAS;
	uint64_t value;

	switch (callee) {
	case TRACE_CALLEE_CONSTANT:
		return is_constant && (!trace_constant(trace, layout, function, &value) || value == address);
	case TRACE_CALLEE_VARIABLE: return !is_constant;
	case TRACE_CALLEE_UNKNOWN: break;
	}
	return true;
}

bool trace_may_call_by_ffi(const struct trace *trace, const struct layout *layout, const uint8_t *code,
			   uint64_t pc)
{
	enum trace_callee callee = TRACE_CALLEE_UNKNOWN;
	struct trace_instruction ins;
	uint64_t address = 0;
	uint32_t nins;

	if (!trace->bytes)
		return true;
	if (code && pc - trace->mcode <= trace->szmcode)
		callee = trace_callee_before(code, (size_t)(pc - trace->mcode), pc, &address);
	nins = trace_nins(trace, layout);
	for (uint32_t ref = TRACE_REF_BASE; ref < nins; ref++)
		if (trace_instruction(trace, layout, ref, &ins) && ins.op == IR_CALLXS &&
		    may_be(trace, layout, &ins, callee, address))
			return true;
	return false;
}
