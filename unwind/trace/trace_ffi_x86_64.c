/* SPDX-License-Identifier: MIT */
#include "unwind/trace/trace_ffi.h"

#include <string.h>

enum {
	DIRECT_BYTES = 5,   /* call rel32 */
	INDIRECT_BYTES = 2, /* call r64, without its REX prefix */
	REX_B = 0x41,
};

/*
 * "call r64" by a register that calls keep: rbx, rbp, r12 and up. asm_callx() calls so what is not constant
 * or too far for rel32. Of LuaJIT's own functions, emit_call() calls those that are too far by rax.
 */
static bool is_by_kept_register(const uint8_t *end, size_t length)
{
	enum { BX = 3, BP = 5, R12 = 4 };
	uint8_t reg = end[-1] & 7;

	if (end[-2] != 0xff || (end[-1] & 0xf8) != 0xd0)
		return false;
	return reg == BX || reg == BP || (reg >= R12 && length > INDIRECT_BYTES && end[-3] == REX_B);
}

enum trace_callee trace_callee_before(const uint8_t *code, size_t length, uint64_t pc, uint64_t *ret_address)
{
	const uint8_t *end = code + length;
	bool by_register = length >= INDIRECT_BYTES && is_by_kept_register(end, length);
	int32_t offset;

	if (length >= DIRECT_BYTES && end[-DIRECT_BYTES] == 0xe8) {
		/* The last bytes of an offset may look like the other kind of call. */
		if (by_register)
			return TRACE_CALLEE_UNKNOWN;
		memcpy(&offset, end - sizeof(offset), sizeof(offset));
		*ret_address = pc + (uint64_t)(int64_t)offset;
		return TRACE_CALLEE_CONSTANT;
	}
	return by_register ? TRACE_CALLEE_VARIABLE : TRACE_CALLEE_UNKNOWN;
}
