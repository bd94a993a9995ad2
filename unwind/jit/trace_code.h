/* SPDX-License-Identifier: MIT */
/*
 * trace_code: which IR instruction a piece of machine code was assembled for.
 *
 * The assembler keeps the order of the IR, and the IR keeps the register of
 * each result. So the disassembled code is aligned with the IR as a whole,
 * each part within the bounds that snapshots and exits set. All that depends
 * on the machine is behind this header, in trace_code_x86_64.c.
 * Facts: lj_asm.c, lj_asm_x86.h.
 */
#ifndef LJSPY_TRACE_CODE_H
#define LJSPY_TRACE_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/jit/traces.h"

enum { TRACE_CODE_BYTES_MAX = 1 << 17 };	/* of one trace's machine code; LuaJIT's areas are smaller */

/* The number of the exit that a jump out of a trace takes, or -1. */
typedef int (*trace_exit_number)(const void *context, uint64_t target);

/* One machine instruction. */
struct code_piece {
	uint32_t offset;
	uint32_t ref;			/* IR instruction that it was assembled for */
	uint32_t low_snapshot, high_snapshot;	/* it surely belongs to one of these */
	uint32_t lowered;		/* so often jit_base has been lowered before it (IR_RETF) */
	bool is_quick;			/* takes no time of its own; only what is before it leads to it */
	bool is_after_slow;		/* what is before it takes far longer, and alone leads to it */
	bool base_is_moved;		/* the trace links to a higher frame, and jit_base says so already */
};

struct trace_code {
	struct code_piece *pieces;
	size_t count;
};

/* False when memory is short or the code cannot be understood. */
bool trace_code_align(struct trace_code *code, const struct trace *trace,
		      const struct layout *layout, const uint8_t *bytes,
		      trace_exit_number exit_number, const void *context);
void trace_code_clear(struct trace_code *code);

#endif
