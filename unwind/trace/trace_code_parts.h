/* SPDX-License-Identifier: MIT */
/*
 * trace_code_parts: what each machine's file of trace_code provides for the common one.
 *
 * Registers are LuaJIT's numbers (RID_*, lj_target_*.h) as bits.
 */
#ifndef LJSPY_TRACE_CODE_PARTS_H
#define LJSPY_TRACE_CODE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/trace/trace_block.h"
#include "unwind/trace/trace_code.h"

/* What a machine instruction does, as IR operations do it, too. */
enum trace_does {
	DOES_ADD = 1 << 0,
	DOES_SUB = 1 << 1,
	DOES_MUL = 1 << 2,
	DOES_DIV = 1 << 3,
	DOES_NEG = 1 << 4,
	DOES_ABS = 1 << 5,
	DOES_MIN = 1 << 6,
	DOES_MAX = 1 << 7,
	DOES_ROUND = 1 << 8,
	DOES_CONVERT = 1 << 9,
	DOES_AND = 1 << 10,
	DOES_OR = 1 << 11,
	DOES_XOR = 1 << 12,
	DOES_NOT = 1 << 13,
	DOES_SHIFT = 1 << 14,
	DOES_COMPARE = 1 << 15,
	DOES_ADDRESS = 1 << 16,    /* calculates an address */
	DOES_CHECK_TYPE = 1 << 17, /* compares the tag of a value that it has loaded */
};

/* A machine instruction, by properties that show its purpose. */
struct machine_instruction {
	uint32_t offset;
	uint32_t does;   /* enum trace_does */
	unsigned int id; /* the same for instructions of one kind */
	bool exits;      /* a jump out of the trace, with a condition or by a loop's other way */
	bool jumps;      /* without a condition: what follows is not reached from it */
	bool calls;
	bool in_head;
	bool is_quick;    /* takes a cycle at most: general registers only */
	bool is_slow;     /* takes a dozen cycles or more, in which no later instruction finishes */
	bool jumped_to;   /* the target of a jump within the trace */
	bool checks_gc;   /* part of the GC step at the start of a loop or trace */
	bool lowers_base; /* the end of asm_retf(): stores the lowered BASE */
	bool stores;
	bool loads;
	bool reloads;   /* only loads a register from its place in memory */
	bool on_stack;  /* its memory operand is on the native stack */
	bool by_base;   /* its memory operand is addressed by BASE */
	bool by_global; /* its memory operand is one of g's: by DISPATCH or GL, or at a fixed address */
	uint64_t written, stored, read; /* registers */
	int64_t displacement;           /* of its memory operand */
	int64_t other_displacement;     /* of the second one that it loads or stores; else the same */
	int64_t immediate;
	uint64_t target;
	uint32_t low, high; /* the IR instructions that it may belong to, without high */
	uint32_t low_snapshot, high_snapshot;
};

/* An IR instruction's operands, as they may show in machine code. */
struct operands {
	uint64_t reg[2];      /* as a bit */
	uint32_t constant[2]; /* the lower 32 bits; 0 if none, or too small to be significant */
};

/* A trace's code and IR. */
struct trace_block_code {
	const struct trace *trace;
	const struct layout *layout;
	struct machine_instruction *code;
	size_t count;
	size_t moved_from;            /* of code: the first after asm_tail_link() has stored a raised BASE */
	struct trace_instruction *ir; /* by reference, less TRACE_REF_BASE */
	struct operands *operands;    /* likewise */
	uint32_t ir_count;
};

static inline uint64_t trace_register(uint8_t rid)
{
	return rid < TRACE_REGISTERS ? UINT64_C(1) << rid : 0;
}

/* Take the code apart: fill in code and count. False when out of memory or without any. */
bool trace_code_disassemble(struct trace_block_code *block, const uint8_t *bytes);

/* The length of the head, in instructions: what moves registers to where the trace has them. */
size_t trace_code_head(const struct trace_block_code *block);

/* Set what depends on several instructions: in_head, checks_gc, lowers_base, moved_from. */
void trace_code_mark(struct trace_block_code *block);

#endif
