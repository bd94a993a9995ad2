/* SPDX-License-Identifier: MIT */
#include "unwind/trace/trace_ffi.h"

#include <string.h>

/*
 * "bl". What is too far for it is called by a register, as what is not constant ("blr"). LuaJIT's own
 * functions are never so far: lj_mcode.c puts all machine code within half its reach of them.
 */
enum trace_callee trace_callee_before(const uint8_t *code, size_t length, uint64_t pc, uint64_t *ret_address)
{
	enum { BL = 0x25, OPCODE_SHIFT = 26, WORD = 4 };
	const uint32_t blr = 0xd63f0000, not_register = 0xfffffc1f;
	uint32_t word;

	if (length < WORD)
		return TRACE_CALLEE_UNKNOWN;
	memcpy(&word, code + length - WORD, sizeof(word));
	if ((word & not_register) == blr)
		return TRACE_CALLEE_VARIABLE;
	if (word >> OPCODE_SHIFT != BL)
		return TRACE_CALLEE_UNKNOWN;
	/* The offset in words, with its sign, from the call on. */
	*ret_address = pc - WORD + (uint64_t)(int64_t)((int32_t)(word << (32 - OPCODE_SHIFT)) >> 4);
	return TRACE_CALLEE_CONSTANT;
}
