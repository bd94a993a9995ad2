/* SPDX-License-Identifier: MIT */
/*
 * What arm64 instructions of traces do. The names of fields and groups are those of the Arm
 * Architecture Reference Manual, C4.1. Facts: lj_asm_arm64.h, lj_emit_arm64.h, lj_target_arm64.h.
 */
#include "unwind/trace/trace_code_parts.h"

#include <stdlib.h>

#include "unwind/lua/luajit.h"
#include "unwind/native/vm_decoder_arm64.h"

enum {
	RID_BASE = 19,
	RID_GL = 22,
	RID_TMP = 30, /* lr */
	RID_SP = 31,  /* or zero */
	RID_D0 = 32,
	FLAGS_ONLY = 31, /* as the register written: the zero register */
	HEAD_MAX = 128,
	GC_CHECK_MAX = 14, /* instructions from the loads of gc.total and gc.threshold to the exit */
	TAG_SHIFT = 47,
	HIGH_WORD = 32,
	TAG_MAX = 14,               /* cmn xN, #-itype */
	NO_PATCH = (int)0xaa1f03ff, /* orr xzr, xzr, xzr: ARM64_NOPATCH_GC_CHECK */
	NOP = (int)0xd503201f,
};

/* Constants in registers, as far as instructions since the last jump or call show them. */
struct constants {
	uint64_t value[RID_SP];
	uint32_t known; /* registers as bits */
};

static uint64_t general(unsigned int number)
{
	return number == RID_SP ? 0 : UINT64_C(1) << number;
}

static uint64_t vector(unsigned int number)
{
	return UINT64_C(1) << (RID_D0 + number);
}

/*---- Constants ----*/

/* False for the zero register and the stack pointer, which hold none. */
static bool know(struct constants *constants, unsigned int number, uint64_t value, bool is_wide)
{
	if (number >= RID_SP)
		return false;
	constants->value[number] = is_wide ? value : (uint32_t)value;
	constants->known |= UINT32_C(1) << number;
	return true;
}

static bool is_known(const struct constants *constants, unsigned int number)
{
	return number < RID_SP && constants->known >> number & 1;
}

/* movz, movn, movk, and add or sub of an immediate to a known one. True if the result is known. */
static bool follow_constant(struct constants *constants, uint32_t word)
{
	enum { MOVN = 0, MOVK = 3 };
	unsigned int rd = rd_of(word), rn = rn_of(word), by = 16 * bits_of(word, 21, 2);
	uint64_t part = (uint64_t)bits_of(word, 5, 16) << by;
	bool is_wide = bits_of(word, 31, 1);

	if (has_bits(word, 0x1f800000, 0x12800000)) {
		unsigned int op = bits_of(word, 29, 2);

		if (op == MOVK && !is_known(constants, rd))
			return false;
		if (op == MOVK)
			part |= constants->value[rd] & ~(UINT64_C(0xffff) << by);
		return know(constants, rd, op == MOVN ? ~part : part, is_wide);
	}
	if (is_add_immediate(word) && is_known(constants, rn))
		return know(constants, rd, constants->value[rn] + (uint64_t)instruction_addend(word),
			    is_wide);
	return false;
}

/*---- Memory ----*/

static void take_memory(struct machine_instruction *machine, uint32_t word, uint64_t base)
{
	enum { STORE, LOAD, VECTOR_STORE_128 };
	bool is_vector = bits_of(word, 26, 1), is_two = is_pair(word);
	unsigned int rd = rd_of(word), rn = rn_of(word), opc = bits_of(word, 22, 2);
	unsigned int scale = bits_of(word, 30, 2);
	uint64_t registers = is_vector ? vector(rd) : general(rd);

	machine->is_quick = false;
	machine->read |= general(rn);
	if (is_two) {
		unsigned int shift = is_vector ? 2 + bits_of(word, 30, 2) : 2 + bits_of(word, 31, 1);

		registers |= is_vector ? vector(rt2_of(word)) : general(rt2_of(word));
		machine->displacement = signed_bits_of(word, 15, 7) * (1 << shift);
		machine->other_displacement = machine->displacement + (1 << shift);
		machine->stores = !bits_of(word, 22, 1);
	} else {
		if (is_vector && opc & 2)
			scale = 4;
		if (is_load_scaled(word))
			machine->displacement = (int64_t)bits_of(word, 10, 12) << scale;
		else if (is_load_indexed(word))
			machine->read |= general(rm_of(word));
		else
			machine->displacement = signed_bits_of(word, 12, 9);
		machine->other_displacement = machine->displacement;
		machine->stores = opc == STORE || (is_vector && opc == VECTOR_STORE_128);
	}
	machine->loads = !machine->stores;
	if (machine->stores) {
		machine->stored = registers;
		machine->read |= registers;
	} else {
		machine->written = registers;
	}
	machine->on_stack = rn == RID_SP;
	machine->by_base = general(rn) & base;
	machine->by_global = rn == RID_GL;
	machine->reloads = machine->loads && (rn == RID_SP || rn == RID_GL);
}

/*---- Data processing ----*/

static uint32_t add_or_sub(uint32_t word)
{
	return bits_of(word, 30, 1) ? DOES_SUB : DOES_ADD;
}

/* Of those that set flags, the ones that keep nothing else compare. */
static void take_result(struct machine_instruction *machine, uint32_t word, uint32_t does, bool sets_flags)
{
	unsigned int rd = rd_of(word);

	machine->does = sets_flags && rd == FLAGS_ONLY ? DOES_COMPARE : does;
	machine->written = general(rd);
	machine->read |= general(rn_of(word));
}

static void take_immediate(struct machine_instruction *machine, uint32_t word)
{
	static const uint32_t logical[] = { DOES_AND, DOES_OR, DOES_XOR, DOES_AND };
	unsigned int rd = rd_of(word);

	switch (bits_of(word, 23, 6)) {
	case 0x20:
	case 0x21: /* adr, adrp */ machine->written = general(rd); break;
	case 0x22:
		take_result(machine, word, add_or_sub(word), bits_of(word, 29, 1));
		machine->immediate = instruction_addend(word);
		/* cmn tmp, #-itype: the tag that asr has left. */
		if (machine->does == DOES_COMPARE && !bits_of(word, 30, 1) && bits_of(word, 31, 1) &&
		    bits_of(word, 10, 12) <= TAG_MAX)
			machine->does = DOES_CHECK_TYPE;
		break;
	case 0x24:
		take_result(machine, word, logical[bits_of(word, 29, 2)], bits_of(word, 29, 2) == 3);
		break;
	case 0x25: machine->written = general(rd); break; /* movz and the like */
	case 0x26:
		take_result(machine, word, DOES_SHIFT | DOES_CONVERT | DOES_AND, false);
		if (bits_of(word, 29, 2) == 0 && bits_of(word, 16, 6) == TAG_SHIFT)
			machine->does = DOES_CHECK_TYPE;
		break;
	default: /* extr */
		take_result(machine, word, DOES_SHIFT, false);
		machine->read |= general(rm_of(word));
		break;
	}
}

static void take_registers(struct machine_instruction *machine, uint32_t word)
{
	static const uint32_t logical[] = { DOES_AND, DOES_OR, DOES_XOR, DOES_AND };
	bool is_wide = bits_of(word, 31, 1);

	machine->read |= general(rm_of(word));
	if (has_bits(word, 0x1f000000, 0x0a000000)) {
		take_result(machine, word, logical[bits_of(word, 29, 2)], bits_of(word, 29, 2) == 3);
		if (bits_of(word, 21, 1))
			machine->does |= DOES_NOT;
		if (rn_of(word) == RID_SP && bits_of(word, 29, 2) == 1 && !bits_of(word, 21, 1))
			machine->does = is_wide ? 0 : DOES_CONVERT; /* mov */
	} else if (has_bits(word, 0x1f000000, 0x0b000000)) {
		take_result(machine, word, add_or_sub(word) | DOES_ADDRESS, bits_of(word, 29, 1));
		if (rn_of(word) == RID_SP && bits_of(word, 30, 1) && machine->does != DOES_COMPARE)
			machine->does = DOES_NEG;
		/* cmp tag, value, lsr #32 */
		if (machine->does == DOES_COMPARE && is_wide && !bits_of(word, 21, 1) &&
		    bits_of(word, 22, 2) == 1 && bits_of(word, 10, 6) == HIGH_WORD)
			machine->does = DOES_CHECK_TYPE;
	} else if (has_bits(word, 0x1fe00000, 0x1a400000)) { /* ccmp */
		machine->does = DOES_COMPARE;
		machine->read |= general(rn_of(word));
	} else if (has_bits(word, 0x1fe00000, 0x1a800000)) { /* csel */
		take_result(machine, word, DOES_MIN | DOES_MAX, false);
	} else if (has_bits(word, 0x1f000000, 0x1b000000)) {
		take_result(machine, word, DOES_MUL, false);
		machine->read |= general(rt2_of(word));
		machine->is_quick = false;
	} else if (has_bits(word, 0x5fe00000, 0x1ac00000)) {
		bool divides = bits_of(word, 11, 5) == 1;

		take_result(machine, word, divides ? DOES_DIV : DOES_SHIFT, false);
		machine->is_slow = divides;
		machine->is_quick = !divides;
	} else {
		take_result(machine, word, 0, false);
	}
}

static void take_vector(struct machine_instruction *machine, uint32_t word)
{
	static const uint32_t two_sources[16] = { DOES_MUL, DOES_DIV, DOES_ADD, DOES_SUB,           DOES_MAX,
						  DOES_MIN, DOES_MAX, DOES_MIN, DOES_MUL | DOES_NEG };
	unsigned int rd = rd_of(word), opcode;
	bool gives_general = false;

	machine->is_quick = false;
	machine->read |= vector(rn_of(word));
	if (has_bits(word, 0xff200c00, 0x1e200800)) {
		opcode = bits_of(word, 12, 4);
		machine->does = two_sources[opcode];
		machine->is_slow = opcode == 1;
		machine->read |= vector(rm_of(word));
	} else if (has_bits(word, 0xff207c00, 0x1e204000)) { /* one source */
		opcode = bits_of(word, 15, 6);
		machine->does = opcode == 1                  ? DOES_ABS
				: opcode == 2                ? DOES_NEG
				: opcode == 3 || opcode >= 8 ? DOES_ROUND
				: opcode == 0                ? 0
							     : DOES_CONVERT;
		machine->is_slow = opcode == 3;
	} else if (has_bits(word, 0xff203c00, 0x1e202000) || has_bits(word, 0xff200c00, 0x1e200400)) {
		machine->does = DOES_COMPARE | DOES_CONVERT; /* fcmp, fccmp */
		machine->read |= vector(rm_of(word));
		return;
	} else if (has_bits(word, 0xff200c00, 0x1e200c00)) { /* fcsel */
		machine->does = DOES_MIN | DOES_MAX;
		machine->read |= vector(rm_of(word));
	} else if (has_bits(word, 0x7f20fc00, 0x1e200000)) { /* to or from a general register */
		opcode = bits_of(word, 16, 3);
		gives_general = opcode != 2 && opcode != 3 && opcode != 7;
		machine->does = opcode >= 6 ? 0 : DOES_CONVERT;
		if (!gives_general)
			machine->read = general(rn_of(word));
	} else if (has_bits(word, 0xff000000, 0x1f000000)) { /* fmadd and the like */
		machine->does = DOES_MUL | DOES_ADD | DOES_SUB;
		machine->read |= vector(rm_of(word)) | vector(rt2_of(word));
	}
	machine->written = gives_general ? general(rd) : vector(rd);
}

/*---- Jumps ----*/

/* False for other instructions. */
static bool take_jump(struct machine_instruction *machine, uint32_t word, const struct trace *trace,
		      bool is_loop)
{
	struct vm_instruction instruction = { trace->mcode + machine->offset, word };

	if (is_call(word) || is_call_register(word)) {
		machine->calls = true;
		machine->is_quick = false;
		if (is_call(word))
			machine->target = instruction_target(&instruction);
		return true;
	}
	if (is_jump_register(word)) {
		machine->jumps = true;
		return true;
	}
	if (!is_branch(word) && !is_conditional(word) && !is_compare_branch(word) && !is_test_branch(word))
		return false;
	machine->target = instruction_target(&instruction);
	machine->jumps = is_branch(word);
	if (is_compare_branch(word) || is_test_branch(word))
		machine->read |= general(rd_of(word));
	/* A loop ends with a jump to its begin; if that has a condition, the jump after it is an exit. */
	machine->exits = (!machine->jumps || is_loop) && machine->target - trace->mcode >= trace->szmcode;
	return true;
}

static void take_apart(const struct trace_block_code *block, uint32_t word, struct constants *constants,
		       struct machine_instruction *machine)
{
	const uint64_t base = trace_register(RID_BASE) | trace_register(block->ir[0].reg);
	bool is_constant = follow_constant(constants, word);

	machine->id = word >> 21;
	machine->is_quick = true;
	if (take_jump(machine, word, block->trace, trace_loop_offset(block->trace, block->layout) != 0)) {
		constants->known = 0;
		return;
	}
	if (has_bits(word, 0x3b000000, 0x18000000)) { /* a literal */
		machine->loads = machine->reloads = true;
		machine->is_quick = false;
		machine->written = bits_of(word, 26, 1) ? vector(rd_of(word)) : general(rd_of(word));
	} else if (is_pair(word) || is_load_scaled(word) || is_load_unscaled(word) || is_load_indexed(word)) {
		take_memory(machine, word, base);
	} else if (has_bits(word, 0x1c000000, 0x10000000)) {
		take_immediate(machine, word);
	} else if (has_bits(word, 0x0e000000, 0x0a000000)) {
		take_registers(machine, word);
	} else if (has_bits(word, 0x0e000000, 0x0e000000)) {
		take_vector(machine, word);
	}
	if (is_constant)
		machine->immediate = (int64_t)constants->value[rd_of(word)];
	else
		constants->known &= ~(uint32_t)machine->written;
}

static uint32_t word_at(const uint8_t *bytes, size_t index)
{
	return (uint32_t)load_bytes(bytes + index * INSTRUCTION_BYTES, 0, INSTRUCTION_BYTES);
}

bool trace_code_disassemble(struct trace_block_code *block, const uint8_t *bytes)
{
	size_t count = block->trace->szmcode / INSTRUCTION_BYTES;
	struct constants constants = { .known = 0 };

	while (count && word_at(bytes, count - 1) == (uint32_t)NOP)
		count--;
	block->code = calloc(count + 1, sizeof(*block->code));
	if (!block->code || !count)
		return false;
	for (size_t i = 0; i < count; i++) {
		block->code[i].offset = (uint32_t)(i * INSTRUCTION_BYTES);
		take_apart(block, word_at(bytes, i), &constants, &block->code[i]);
		if (word_at(bytes, i) == (uint32_t)NO_PATCH)
			block->code[i].checks_gc = true;
	}
	block->count = count;
	return true;
}

/*---- What several instructions show ----*/

/* Does the head have it: a move, a place on the stack, BASE, or the check of the stack's size? */
static bool is_of_head(const struct trace_block_code *block, const struct machine_instruction *machine)
{
	const uint64_t tmp = trace_register(RID_TMP), sp = 0;
	bool is_move = !machine->does && machine->written && machine->read && !machine->loads &&
		       !machine->stores;

	if (machine->exits || machine->calls || machine->jumps)
		return false;
	if (machine->on_stack || is_move)
		return true;
	if (machine->by_global && machine->loads)
		return machine->displacement == block->layout->g_jit_base ||
		       machine->displacement == block->layout->g_cur_L;
	if (machine->does & (DOES_ADD | DOES_SUB) && machine->written == sp && machine->immediate)
		return true; /* of the stack pointer */
	return machine->written == tmp || (machine->read & tmp && machine->does == DOES_COMPARE);
}

/* Is it the exit of the head's check of the stack's size? */
static bool checks_stack(const struct trace_block_code *block, size_t i)
{
	return block->code[i].exits && i >= 2 && block->code[i - 1].does == DOES_COMPARE &&
	       block->code[i - 2].does == (DOES_SUB | DOES_ADDRESS) &&
	       block->code[i - 2].written == trace_register(RID_TMP);
}

size_t trace_code_head(const struct trace_block_code *block)
{
	size_t length = 0, whole = 0;
	bool has_tmp = false;

	/* lr is of the head only in the check of the stack's size, which comes first. */
	for (; length < block->count && length < HEAD_MAX; length++) {
		const struct machine_instruction *machine = &block->code[length];

		if (block->trace->root && checks_stack(block, length)) {
			has_tmp = false;
			whole = length + 1;
			continue;
		}
		if (!is_of_head(block, machine) || (!block->trace->root && machine->loads))
			break;
		has_tmp |= (machine->written | machine->read) & trace_register(RID_TMP);
		if (!has_tmp)
			whole = length + 1;
	}
	return whole;
}

/* From the loads of gc.total and gc.threshold to the exit after the step (asm_gc_check()). */
static void mark_gc_check(struct trace_block_code *block, size_t exit)
{
	uint32_t end = block->code[exit].offset + INSTRUCTION_BYTES;

	for (size_t i = exit; i-- > 0 && exit - i < GC_CHECK_MAX;) {
		const struct machine_instruction *skip = &block->code[i];

		if (!skip->target || skip->calls || skip->target - block->trace->mcode != end)
			continue;
		for (size_t k = i < 3 ? 0 : i - 3; k <= exit; k++)
			block->code[k].checks_gc = true;
		return;
	}
}

static void mark_gc_checks(struct trace_block_code *block)
{
	for (size_t i = 2; i < block->count; i++) {
		const struct machine_instruction *at = &block->code[i];

		/* cbnz x0, exit */
		if (at->exits && at->read == trace_register(0) &&
		    (at[-1].calls || (at[-1].checks_gc && at[-2].calls)))
			mark_gc_check(block, i);
	}
}

/* str BASE, [GL, jit_base] */
static bool stores_base(const struct trace_block_code *block, const struct machine_instruction *store)
{
	return store->stores && store->by_global && store->displacement == block->layout->g_jit_base;
}

/* asm_retf(): sub BASE, BASE, #8*delta; str BASE, [GL, jit_base] */
static bool lowers_base(const struct trace_block_code *block, size_t i)
{
	const struct machine_instruction *sub = &block->code[i], *store = sub + 1;

	return sub->does == DOES_SUB && sub->written && sub->immediate < 0 &&
	       sub->immediate % SLOT_SIZE == 0 && stores_base(block, store) && store->stored == sub->written;
}

/* asm_tail_link(): add BASE, BASE, #8*baseslot; str BASE, [GL, jit_base] */
static size_t moved_base_from(const struct trace_block_code *block)
{
	enum { TAIL_MAX = 8 };

	for (size_t i = block->count; i-- > 1 && block->count - i < TAIL_MAX;) {
		const struct machine_instruction *store = &block->code[i], *add = store - 1;

		if (stores_base(block, store) && add->does == DOES_ADD && add->immediate > 0 &&
		    add->written == trace_register(RID_BASE))
			return i + 1;
	}
	return block->count;
}

void trace_code_mark(struct trace_block_code *block)
{
	size_t head = trace_code_head(block);

	for (size_t i = 0; i < block->count; i++) {
		block->code[i].in_head = i < head;
		if (i + 1 < block->count)
			block->code[i + 1].lowers_base = lowers_base(block, i);
	}
	mark_gc_checks(block);
	block->moved_from = moved_base_from(block);
}

bool trace_code_has_stubs(void)
{
	return true;
}
