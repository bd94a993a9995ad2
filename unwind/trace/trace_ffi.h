/* SPDX-License-Identifier: MIT */
/*
 * trace_ffi: does a trace call a function through the FFI?
 *
 * A trace calls LuaJIT's own functions by constant addresses, and any other only by IR_CALLXS. So the machine
 * code of the call, with the functions of all IR_CALLXS, tells both apart without any names.
 * Facts: lj_asm.c (asm_gencall()), lj_asm_x86.h and lj_asm_arm64.h (asm_callx()), emit_call() of lj_emit_*.h.
 */
#ifndef LJSPY_TRACE_FFI_H
#define LJSPY_TRACE_FFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luajit-layouts/layout.h"
#include "unwind/trace/trace.h"

/*
 * Is the call that returns to pc one through the FFI? code is the trace's machine code, or NULL if it is
 * unknown. False if that cannot be told, too.
 */
bool trace_calls_by_ffi(const struct trace *trace, const struct layout *layout, const uint8_t *code,
			uint64_t pc);

/*---- Each machine has its own ----*/

enum trace_callee {
	TRACE_CALLEE_UNKNOWN,
	TRACE_CALLEE_CONSTANT, /* *ret_address */
	TRACE_CALLEE_VARIABLE, /* what a register holds in the way of IR_CALLXS alone */
};

/* What the call calls that the first length bytes of a trace's code end with; they end at pc. */
enum trace_callee trace_callee_before(const uint8_t *code, size_t length, uint64_t pc, uint64_t *ret_address);

#endif
