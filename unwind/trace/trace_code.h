/* SPDX-License-Identifier: MIT */
/*
 * trace_code: find the IR instruction that each machine instruction was assembled for.
 *
 * The assembler keeps the order of the IR, and the IR keeps the register of each
 * result. So ljspy aligns the disassembled code with the IR as a whole, within the
 * bounds that snapshots and exits set. trace_code_x86_64.c holds everything that
 * depends on the machine.
 * Facts: lj_asm.c, lj_asm_x86.h.
 */
#ifndef LJSPY_TRACE_CODE_H
#define LJSPY_TRACE_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "luajit-layouts/layout.h"
#include "unwind/trace/trace.h"

enum { TRACE_CODE_BYTES_MAX = 1 << 17 }; /* of one trace's machine code; LuaJIT's areas are smaller */

/* Where jumps out of a trace lead: number() returns the number of the exit that one takes, or -1. */
struct trace_exits {
	int (*number)(const void *context, uint64_t target);
	const void *context;
};

/* One machine instruction. */
struct code_piece {
	uint32_t offset;
	uint32_t ref;                         /* the IR instruction that it was assembled for */
	uint32_t low_snapshot, high_snapshot; /* it certainly belongs to one of these */
	uint32_t lowered;                     /* how often jit_base was lowered before it (IR_RETF) */
	bool is_quick;      /* takes no time itself; reached only from the piece before it */
	bool is_after_slow; /* reached only from the piece before it, which takes far longer */
	bool base_is_moved; /* the trace links to a higher frame; jit_base is that frame's */
	bool joins_loop;    /* it may be IR_LOOP's, which moves values to where the loop has them */
};

struct trace_code {
	struct code_piece *pieces;
	size_t count;
};

/*
 * Align a trace's machine code, szmcode bytes. False, with nothing to clear, when out of memory or if the
 * code makes no sense.
 */
bool trace_code_align(struct trace_code *code, const struct trace *trace, const struct layout *layout,
		      const uint8_t *bytes, const struct trace_exits *exits);
void trace_code_clear(struct trace_code *code);

/* Has each trace exit stubs of its own, behind its machine code? */
bool trace_code_has_stubs(void);

#endif
