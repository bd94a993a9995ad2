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

/* Is this IR_CALLXS one that calls such a callee? */
static bool is_call_of(const struct trace *trace, const struct layout *layout,
		       const struct trace_instruction *call, enum trace_callee callee, uint64_t address)
{
	uint32_t function = function_of(trace, layout, call);
	uint64_t value;

	if (callee == TRACE_CALLEE_VARIABLE)
		return true;
	return function < TRACE_REF_BIAS && trace_constant(trace, layout, function, &value) &&
	       value == address;
}

bool trace_calls_by_ffi(const struct trace *trace, const struct layout *layout, const uint8_t *code,
			uint64_t pc)
{
	struct trace_instruction ins;
	enum trace_callee callee;
	uint64_t address = 0;
	uint32_t nins;

	if (!trace->bytes || !code || pc - trace->mcode > trace->szmcode)
		return false;
	callee = trace_callee_before(code, (size_t)(pc - trace->mcode), pc, &address);
	if (callee == TRACE_CALLEE_UNKNOWN)
		return false;
	nins = trace_nins(trace, layout);
	for (uint32_t ref = TRACE_REF_BASE; ref < nins; ref++)
		if (trace_instruction(trace, layout, ref, &ins) && ins.op == IR_CALLXS &&
		    is_call_of(trace, layout, &ins, callee, address))
			return true;
	return false;
}
